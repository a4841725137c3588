/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fault tests: a damaged header; images that are too long, empty, at a wrong address, or with a wrong
 * checksum; programs that commit an error, hang, or are stopped. After each, a correct program must run. */
#include "../jobs/wrong.h"
#include "check.h"
#include "near.h"

static image wrong;

/* Tells the program what to do. */
static outcome run_wrong(enum wrong what) {
  link l;
  if (near_run(&l, &wrong) != LVD_OK) return (outcome){0};
  *link_put(&l, 1) = what;
  link_push(&l, 1);
  return near_wait();
}

static bool right(void) {
  outcome o = run_wrong(WRONG_NOT);
  return o.state == LVD_REMOTE_EXITED && o.status == 42 && o.trouble == BRIDGE_NONE;
}

static bool refused(uint32_t length, uint32_t sum, uint32_t address, lvd_status why) {
  link l;
  near_put(&wrong);
  if (near_start(&l, length, sum, address) != LVD_OK) return false;
  outcome o = near_wait();
  return o.state == LVD_REMOTE_REFUSED && o.status == (uint32_t)why;
}

static bool in_image(uint32_t pc) {
  return pc >= BRIDGE_PROGRAM && pc < BRIDGE_PROGRAM + wrong.length;
}

static void images(void) {
  check("a damaged header: the loader does not come", !near_boot(2, true));
  check("... and comes when it is right", near_boot(2, false));
  check("a wrong checksum is refused",
        refused(wrong.length, wrong.sum ^ 1, BRIDGE_PROGRAM, LVD_E_CORRUPT));
  check("an image cut off is refused",
        refused(wrong.length - 4, wrong.sum, BRIDGE_PROGRAM, LVD_E_CORRUPT));
  check("an image longer than its place is refused",
        refused(3 * LVD_WINDOW_UNIT + 4, wrong.sum, BRIDGE_PROGRAM, LVD_E_ARGUMENT));
  check("an image of nothing is refused", refused(0, 0, BRIDGE_PROGRAM, LVD_E_ARGUMENT));
  check("an image over the loader's memory is refused",
        refused(wrong.length, wrong.sum, BRIDGE_RAM, LVD_E_ARGUMENT));
  check("an image beyond the memory is refused",
        refused(wrong.length, wrong.sum, BRIDGE_RAM_END - 4, LVD_E_ARGUMENT));
  check("and then a right one runs", right());
}

static void programs(void) {
  static const struct {
    const char *name;
    enum wrong what;
    enum bridge_trouble trouble;
    bool in_image;
    uint32_t value;
  } cases[] = {
      {"an illegal instruction is reported", WRONG_ILLEGAL, BRIDGE_TRAP, true, 0},
      {"a load that is not aligned is reported", WRONG_ALIGNED, BRIDGE_TRAP, true, 0},
      {"a load from nowhere is reported", WRONG_LOAD, BRIDGE_WILD, true, WRONG_ADDRESS},
      {"a store over the loader is reported", WRONG_STORE, BRIDGE_WILD, true, 0x10},
      {"a jump to nowhere is reported", WRONG_JUMP, BRIDGE_WILD, false, WRONG_ADDRESS},
      {"a program that hangs is reported", WRONG_HANG, BRIDGE_HUNG, true, 0},
  };
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    outcome o = run_wrong(cases[i].what);
    enum lvd_remote_state state =
        cases[i].trouble == BRIDGE_HUNG ? LVD_REMOTE_HUNG : LVD_REMOTE_FAILED;
    bool good = o.state == state && o.trouble == cases[i].trouble && o.value == cases[i].value &&
                (!cases[i].in_image || in_image(o.pc));
    check(cases[i].name, good && near_boot(2, false) && right());
  }
}

static void stops(void) {
  bool good = true;
  for (int round = 0; round < 8; round++) {
    link l;
    /* The program waits for its word, which is not sent. */
    good = good && near_boot(2, false) && near_run(&l, &wrong) == LVD_OK;
    while (good && lvd_load_acquire_u32(&near_window->state) != LVD_REMOTE_RUNNING) bridge_sleep();
    /* In the last round the word is sent, and the program ends by itself. */
    if (round < 7) continue;
    *link_put(&l, 1) = WRONG_NOT;
    link_push(&l, 1);
    outcome o = near_wait();
    good = good && o.state == LVD_REMOTE_EXITED && o.status == 42;
  }
  check("stopped while it runs, and loaded again, eight times", good);
  outcome o = near_stop();
  check("the loader stops when it is told, and takes the next image",
        o.state == LVD_REMOTE_STOPPED && right());
}

void check_faults(void) {
  wrong = NEAR_TAKE(wrong);
  images();
  programs();
  stops();
}
