/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lines that misuse of the paper's API causes in programs that check no status, and the exit
 * status of the program. */
#include "../support/bench.h"
#include "../support/leaves_memory.h"

#include <levada/srpc.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/platform.h"

/* ---- the lines of a program ------------------------------------------------------------------ */

static int told_in = -1; /* file in place of the error output */
static char told[1 << 16];

/* All lines so far. */
static const char *lines(void) {
  ssize_t n = pread(told_in, told, sizeof told - 1, 0);
  CHECK(n >= 0);
  told[n] = 0;
  return told;
}

static int count_of(const char *text, const char *part) {
  int n = 0;
  for (; (text = strstr(text, part)); text += strlen(part)) n++;
  return n;
}

/* Runs a program that returns 0 from its main; returns the exit status of the process. */
static int exit_of(void (*program)(void)) {
  int how = -1;
  told_in = memfd_create("told", MFD_CLOEXEC);
  CHECK(told_in >= 0);
  fflush(NULL);
  pid_t id = fork();
  CHECK(id >= 0);
  if (id == 0) {
    CHECK(dup2(told_in, STDERR_FILENO) == STDERR_FILENO);
    leaves_memory();
    program();
    exit(0);
  }
  CHECK_EQ(waitpid(id, &how, 0), id);
  if (!WIFEXITED(how)) printf("%s", lines());
  CHECK(WIFEXITED(how));
  return WEXITSTATUS(how);
}

static void expect(const char *line) {
  if (!strstr(lines(), line)) printf("not told: %s\nbut:\n%s", line, lines());
  CHECK(strstr(lines(), line) != NULL);
}

static void expect_count(int count) {
  if (count_of(lines(), "levada: ") != count) printf("%s", lines());
  CHECK_EQ(count_of(lines(), "levada: "), count);
}

/* ---- a misspelt name ------------------------------------------------------------------------- */

static void square(void) {}
PB_PROCEDURE(square)
static lvd_status for_calls(lvd_call_frame *f) { return f ? LVD_OK : LVD_E_STATE; }
LVD_PROCEDURE(for_calls)

static void misspells(void) {
  TASKID t = pb_create("Sqaure", 0);
  CHECK(t == NULL);
  CHECK_EQ(pb_status(), LVD_E_NOT_FOUND);
  /* Calls with no task return at once. */
  CHECK_EQ(pb_rpc(t), LVD_E_ARGUMENT);
  CHECK_EQ(pb_status(), LVD_E_ARGUMENT);
  CHECK_EQ(pb_wait(t), LVD_E_ARGUMENT);
  CHECK_EQ(pb_wait_timeout(t, -1), LVD_E_ARGUMENT);
  CHECK_EQ(pb_release(t), LVD_E_ARGUMENT);
  CHECK_EQ(pb_signal(t, 1), LVD_E_ARGUMENT);
  CHECK_EQ(pb_cancel(t), LVD_E_ARGUMENT);
  CHECK_EQ(pb_task_error_text(t, NULL, 0), 0);
}
static void misspells_and_finishes(void) {
  misspells();
  CHECK_EQ(pb_finish(), LVD_E_NOT_FOUND);
  CHECK(strstr(pb_error_text(), "did you mean \"square\"?"));
  /* The next run in the same process reports again. */
  misspells();
  CHECK_EQ(pb_finish(), LVD_E_NOT_FOUND);
  pb_create("square", 0);
  CHECK_EQ(pb_finish(), LVD_OK);
}
static void misspells_in_silence(void) {
  pb_set_diagnostics(false);
  misspells();
  CHECK_EQ(pb_finish(), LVD_OK);
}
static void gives_other_names(void) {
  static const char name[] =
      "a name of more than sixty-three bytes, which no procedure can have at all";
  CHECK(pb_create("nothing like it", 0) == NULL);
  CHECK(pb_create("for_calls", 0) == NULL);
  CHECK(pb_create("\x1b[31msquare", 0) == NULL);
  CHECK(pb_create(name, 0) == NULL);
  CHECK(pb_create(NULL, 0) == NULL);
  CHECK(pb_create_in(0, "squares", 0) == NULL);
  CHECK(pb_create_in(1, "square", 0) == NULL);
}

void test_srpc_misuse_names(void) {
  CHECK_EQ(exit_of(misspells), 1);
  expect("levada: pb_create(\"Sqaure\"): no procedure has this name; did you mean \"square\"?\n");
  expect_count(1);
  CHECK_EQ(exit_of(misspells_and_finishes), 1);
  expect_count(2);
  CHECK_EQ(exit_of(misspells_in_silence), 0);
  expect_count(0);
  CHECK_EQ(exit_of(gives_other_names), 1);
  expect("PB_PROCEDURE(nothing like it) at file scope registers one");
  expect("LVD_PROCEDURE(for_calls) registers one for lvd_call_start");
  expect("pb_create(\"?[31msquare\")");
  expect("...\"): a name has at most 63 bytes");
  expect("pb_create(NULL): a task needs the name of a procedure");
  expect("pb_create_in(0, \"squares\"): no procedure has this name; did you mean \"square\"?");
  expect("pb_create_in(1, \"square\"): no process of this number is loaded");
  expect_count(7);
}

/* ---- a stream that was not created ----------------------------------------------------------- */

static void sends_ten(void *unused) {
  (void)unused;
  stream_create(1);
  for (u32 i = 0; i < 10; i++) {
    stream_put(1, i);
    stream_push(1);
  }
}

static void forgets_one(void) {
  u32 a = 0;
  stream_create(1);
  for (int i = 0; i < 10; i++) {
    stream_get(1, a);
    stream_pop(1);
    stream_put(2, a);
    stream_push(2);
  }
}
PB_PROCEDURE(forgets_one)

static void forgets(void) {
  TASKID t = pb_create("forgets_one", 0);
  CHECK(stream_rpc(t, sends_ten) == t);
  pb_wait(t);
}
static void forgets_and_finishes(void) {
  forgets();
  CHECK_EQ(pb_finish(), LVD_E_STATE);
  CHECK(strstr(pb_error_text(), "stream_create(2) comes first"));
}

/* No side receives what is put. */
static void receives_nowhere(void) {
  CHECK(stream_rpc(square, sends_ten) != NULL);
  CHECK_EQ(pb_finish(), LVD_E_PEER_GONE);
}

void test_srpc_misuse_not_created(void) {
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(exit_of(i ? forgets_and_finishes : forgets), 1);
    expect("levada: stream_put(2) in forgets_one: the caller has not created stream 2; "
           "stream_create(2) comes first (it has created 1)\n");
    expect_count(1);
  }
  CHECK_EQ(exit_of(receives_nowhere), 1);
  expect("levada: stream 1: 10 elements were put, and no other side has created the stream\n");
  expect_count(1);
}

/* ---- elements of two sizes ------------------------------------------------------------------- */

static lvd_status first_get;

static void gets_wide(void) {
  u64 wide = 7;
  stream_create(1);
  first_get = stream_get(1, wide);
  CHECK_EQ(wide, 7);
}
PB_PROCEDURE(gets_wide)

static void gets_another_size(void) {
  u32 a = 0;
  TASKID t = pb_create("gets_wide", 0);
  stream_create(1);
  CHECK_EQ(stream_put(1, a), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK_EQ(first_get, LVD_E_ARGUMENT);
  CHECK_EQ(pb_finish(), LVD_E_ARGUMENT);
}

void test_srpc_misuse_sizes(void) {
  CHECK_EQ(exit_of(gets_another_size), 1);
  expect(
      "levada: stream_get(1) in gets_wide: an element of 8 bytes; the elements of this stream have "
      "4 bytes, as the first that was put or got: both sides need one type\n");
  expect_count(1);
}

/* ---- a side that never comes ----------------------------------------------------------------- */

static void gets_for_ever(void) {
  u32 a;
  stream_create(10);
  while (stream_get(10, a) == LVD_OK) stream_pop(10);
}
static void puts_for_ever(void) {
  u32 a = 0;
  stream_create(11);
  stream_configure(11, 4, 1);
  while (stream_put(11, a) == LVD_OK) stream_push(11);
}
PB_PROCEDURE(gets_for_ever)
PB_PROCEDURE(puts_for_ever)

/* Limit for a line to appear, in waits of 10 ms: more than a loaded machine needs. */
enum { WAITS_MAX = 25000 };

static bool all_are_named(void) {
  const char *text = lines();
  return strstr(text, "stream 10:") && strstr(text, "stream 11:") && strstr(text, "stream 12:");
}

static void waits_at_all_ends(void) {
  TASKID wait[] = {pb_create("gets_for_ever", 0), pb_create("puts_for_ever", 0)};
  for (int i = 0; i < 2; i++) CHECK_EQ(pb_rpc(wait[i]), LVD_OK);
  u32 a = 0;
  /* A thread that waits repeatedly, with a timeout. */
  stream_create(12);
  stream_set_timeout(12, 10000000);
  for (int i = 0; i < WAITS_MAX && !all_are_named(); i++)
    CHECK_EQ(stream_get(12, a), LVD_E_TIMEOUT);
  for (int i = 0; i < 2; i++) CHECK_EQ(pb_cancel(wait[i]), LVD_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ(pb_wait(wait[i]), LVD_OK);
  /* It was a hint: the elements left in stream 11 are the misuse. */
  CHECK_EQ(pb_finish(), LVD_E_PEER_GONE);
}

void test_srpc_misuse_unclaimed(void) {
  CHECK_EQ(exit_of(waits_at_all_ends), 1);
  expect(
      "levada: stream 10: gets_for_ever has waited 2 s to get, and no other side has created the "
      "stream; does it have the same number there?\n");
  expect("levada: stream 11: puts_for_ever has waited 2 s for room, and no other side");
  expect("levada: stream 12: a thread has waited 2 s to get, and no other side");
  expect("levada: stream 11: 4 elements were put, and no other side has created the stream\n");
  expect_count(4);
}

/* Another side comes during the wait: no line, unless it took too long. */
static void sends_soon(void) {
  stream_create(13);
  u32 a = 17;
  lvd_fiber_sleep(20000000);
  stream_put(13, a);
  stream_push(13);
  lvd_fiber_sleep(20000000);
}
PB_PROCEDURE(sends_soon)

static uint64_t took_ns;

static void waits_for_little(void) {
  u32 a = 0;
  TASKID t = pb_create("sends_soon", 0);
  uint64_t begin = now_ns();
  CHECK_EQ(stream_create(13), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(stream_get(13, a), LVD_OK);
  CHECK_EQ(a, 17);
  CHECK_EQ(stream_get(13, a), LVD_E_EOF);
  took_ns = now_ns() - begin;
  CHECK_EQ(pb_finish(), LVD_OK);
  if (took_ns < 1500000000) expect_count(0);
}

void test_srpc_misuse_claimed(void) { CHECK_EQ(exit_of(waits_for_little), 0); }

/* ---- a deadlock ------------------------------------------------------------------------------ */

static lvd_status told_get;

/* Until its end: it may be told of a deadlock a moment later than the caller is. */
static void await_end(TASKID t) {
  while (pb_wait(t) == LVD_E_DEADLOCK) continue;
}

static void gets_one(void) {
  u32 a = 0;
  stream_create(3);
  told_get = stream_get(3, a);
  stream_pop(3);
}
PB_PROCEDURE(gets_one)

/* The element becomes visible when it is pushed, and its sender waits for the receiver's end. */
static void forgets_to_push(void) {
  u32 a = 5;
  TASKID t = pb_create("gets_one", 0);
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(stream_put(3, a), LVD_OK);
  await_end(t);
  CHECK_EQ(told_get, LVD_E_DEADLOCK);
}
static void forgets_to_push_and_finishes(void) {
  forgets_to_push();
  CHECK(pb_finish() != LVD_OK);
}
static void forgets_to_push_in_silence(void) {
  pb_set_diagnostics(false);
  forgets_to_push();
}

static TASKID other;
static void waits_for_other(void) { pb_wait(other); }
PB_PROCEDURE(waits_for_other)

/* A procedure waits for another, that for an element of the program, and the program for the first.
 */
static void waits_in_a_cycle(void) {
  TASKID one = pb_create("waits_for_other", 0), starts = pb_create("gets_for_ever", 0);
  other = starts;
  CHECK_EQ(pb_rpc(one), LVD_OK);
  CHECK_EQ(pb_rpc(starts), LVD_OK);
  stream_create(10);
  await_end(one);
  await_end(starts);
}

void test_srpc_misuse_deadlock(void) {
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(exit_of(i ? forgets_to_push_and_finishes : forgets_to_push), 1);
    expect("levada: stream_get(3) in gets_one: 1 element was put and not pushed, and the sender "
           "waits; stream_push comes after stream_put\n");
  }
  CHECK_EQ(exit_of(forgets_to_push_in_silence), 0);
  expect_count(0);
  CHECK_EQ(exit_of(waits_in_a_cycle), 1);
  /* Of all that wait, the one that is told first lets the others go on. */
  expect(": a deadlock, in which each waits for another\n");
}

/* ---- every call ------------------------------------------------------------------------------ */

static TASKID itself;
static void is_wrong_inside(void) {
  u32 a = 0;
  CHECK_EQ(pb_load("anything"), LVD_E_STATE);
  CHECK_EQ(pb_finish(), LVD_E_STATE);
  CHECK_EQ(pb_wait(itself), LVD_E_STATE);
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(stream_create(3), LVD_E_STATE);
  CHECK_EQ(stream_push(3), LVD_E_STATE); /* it may have nothing to push */
  CHECK_EQ(stream_put(3, a), LVD_OK);
  CHECK_EQ(stream_configure(3, 4, 1), LVD_E_STATE);
  CHECK_EQ(stream_close(3), LVD_OK);
  CHECK_EQ(stream_put(3, a), LVD_E_STATE);
}
PB_PROCEDURE(is_wrong_inside)

static void waits_for_signal_here(void) { pb_wait_signal(NULL, -1); }
PB_PROCEDURE(waits_for_signal_here)

/* In this order, since consequences of a misuse are not reported. */
static void is_wrong_everywhere(void) {
  u32 a = 0;
  CHECK_EQ(pb_rpc(NULL), LVD_E_ARGUMENT);
  CHECK_EQ(stream_push(5), LVD_E_STATE); /* counts as a consequence */
#ifndef LVD_EMULATED /* a failed exec is not seen in the process that forked for it */
  CHECK_EQ(pb_load("no such program"), LVD_E_NOT_FOUND);
#endif
  CHECK_EQ(pb_register(NULL, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(pb_register("square", (void *)sends_ten), LVD_E_STATE);
  CHECK_EQ(pb_stack_size((8 << 20) + 1), LVD_E_ARGUMENT);
  CHECK_EQ(pb_wait_signal(NULL, 0), LVD_E_STATE);
  TASKID t = pb_create("waits_for_signal_here", 0);
  CHECK_EQ(pb_wait(t), LVD_E_STATE);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_E_STATE);
  CHECK(stream_rpc(t, sends_ten) == NULL);
  CHECK(stream_rpc(square, NULL) == NULL);
  CHECK_EQ(pb_signal(t, 1), LVD_OK);
  CHECK_EQ(pb_release(t), LVD_OK);
  CHECK_EQ(pb_release(t), LVD_E_STATE);
  CHECK_EQ(pb_cancel(t), LVD_E_STATE);
  CHECK_EQ(pb_signal(t, 1), LVD_E_STATE);
  CHECK_EQ(stream_with(4, t), LVD_E_STATE);
  CHECK_EQ(stream_with(4, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(stream_create(-1), LVD_E_ARGUMENT);
  CHECK_EQ(stream_configure(4, UINT32_MAX, 0), LVD_E_ARGUMENT);
  CHECK_EQ(stream_set_timeout(4096, 0), LVD_E_ARGUMENT);
  CHECK_EQ(stream_close(4), LVD_E_STATE);
  CHECK_EQ(stream_get(4, a), LVD_E_STATE);
  CHECK_EQ(srpc_put(-2, &a, 4), LVD_E_ARGUMENT);
  CHECK_EQ(stream_create(4), LVD_OK);
  CHECK_EQ(srpc_put(4, &a, 0), LVD_E_ARGUMENT);
  CHECK_EQ(stream_put(4, a), LVD_OK);
  CHECK_EQ(pb_rpc(itself = pb_create("is_wrong_inside", 0)), LVD_OK);
  CHECK_EQ(pb_wait(itself), LVD_OK);
  CHECK_EQ(pb_wait(itself), LVD_E_STATE);
  CHECK_EQ(pb_finish(), LVD_E_ARGUMENT);
}

void test_srpc_misuse_each(void) {
  static const char *const said[] = {
      "pb_rpc(NULL): there is no task; its pb_create has failed",
#ifndef LVD_EMULATED
      "pb_load(\"no such program\"): there is no such program",
#endif
      "pb_register: a procedure has a name and a function",
      "pb_register(\"square\"): another function has this name",
      "pb_stack_size(8388609): a stack has at most 8 MiB",
      "pb_wait_signal: only a procedure has signals",
      "pb_wait of the task waits_for_signal_here: it was not started: pb_rpc or stream_rpc comes "
      "first",
      "pb_rpc of the task waits_for_signal_here: it runs already; pb_wait waits for its end",
      "stream_rpc of the task waits_for_signal_here: it runs already; pb_wait waits for its end",
      "stream_rpc: there is no transmitter",
      "pb_release of the task waits_for_signal_here: it was released before",
      "pb_cancel of the task waits_for_signal_here: it was released before",
      "pb_signal of the task waits_for_signal_here: it was released before",
      "stream_with(4): the task waits_for_signal_here was released before",
      "stream_with(4, NULL): there is no task",
      "stream_create(-1): streams have the numbers 0 to 1023",
      "stream_configure(4, 4294967295, 0): a capacity and a threshold are at most",
      "stream_set_timeout(4096): streams have the numbers 0 to 1023",
      "stream_close(4): the caller has not created stream 4; stream_create(4) comes first",
      "stream_get(4): the caller has not created stream 4; stream_create(4) comes first",
      "stream_put(-2): streams have the numbers 0 to 1023",
      "stream_put(4): an element has 1 to 16777216 bytes, not 0",
      "pb_load(\"anything\"): threads load programs, procedures do not",
      "pb_finish() in is_wrong_inside: a procedure would wait for its own end",
      "pb_wait of the task is_wrong_inside in is_wrong_inside: it would wait for itself",
      "pb_wait of the task is_wrong_inside: it was waited for before; pb_rpc or stream_rpc starts "
      "it again",
      "stream_create(3) in is_wrong_inside: the caller has created it already",
      "stream_configure(3) in is_wrong_inside: this comes before the first element is put or got",
      "stream_put(3) in is_wrong_inside: the caller has closed it"};
  CHECK_EQ(exit_of(is_wrong_everywhere), 1);
  for (size_t i = 0; i < COUNT(said); i++) expect(said[i]);
  /* and the elements put into streams 3 and 4, which were never received */
  expect_count((int)COUNT(said) + 2);
}

/* Repeated misuse is reported a few dozen times at most. */
static void misuses_without_end(void) {
  for (int i = 0; i < 1000; i++) CHECK_EQ(stream_create(PB_STREAMS + i), LVD_E_ARGUMENT);
}
void test_srpc_misuse_bounded(void) {
  CHECK_EQ(exit_of(misuses_without_end), 1);
  expect_count(33);
  expect("levada: further lines like these are left out\n");
}

/* The program's own exit status is kept. */
static void exits_with_three(void) {
  pb_create("nothing like it", 0);
  exit(3);
}
static void exits_quickly(void) {
  pb_create("nothing like it", 0);
  quick_exit(0);
}
static int begun;
static void runs_last(void) {
  CHECK_EQ(begun, 1);
  fprintf(stderr, "in order\n");
}
static void runs_first(void) { begun = 1; }
static void exits_with_handlers(void) {
  CHECK_EQ(atexit(runs_last), 0);
  pb_create("nothing like it", 0);
  CHECK_EQ(atexit(runs_first), 0);
}
void test_srpc_misuse_exit(void) {
  CHECK_EQ(exit_of(exits_with_three), 3);
  CHECK_EQ(exit_of(exits_quickly), 1);
  CHECK_EQ(exit_of(exits_with_handlers), 1);
  expect("in order\n");
}

/* ---- in a loaded process --------------------------------------------------------------------- */

static void sends_wide(void *unused) {
  (void)unused;
  u64 wide = 1;
  stream_create(0);
  stream_put(0, wide);
  stream_push(0);
}

static void await_line(const char *part) {
  for (int i = 0; i < WAITS_MAX && !strstr(lines(), part); i++) lvd_fiber_sleep(10000000);
}

static void misuses_elsewhere(void) {
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  CHECK(pb_create("remote_pip", 0) == NULL);
  TASKID t = pb_create("remote_misuses", 0), pipes = pb_create("remote_pipe", 0);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK(stream_rpc(pipes, sends_wide) == pipes);
  CHECK_EQ(pb_wait(pipes), LVD_OK); /* it gets an element of another size, and returns */
  /* A stream at which a procedure there waits, and that nothing here creates. */
  CHECK_EQ(pb_rpc(pipes), LVD_OK);
  await_line("stream 0: process");
  CHECK_EQ(pb_cancel(pipes), LVD_OK);
  CHECK_EQ(pb_wait(pipes), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_E_NOT_FOUND);
}

void test_process_srpc_misuse(void) {
  can_start();
  CHECK_EQ(exit_of(misuses_elsewhere), 1);
  expect("levada: pb_create(\"remote_pip\"): no procedure has this name; did you mean "
         "\"remote_pipe\"?\n");
  expect("(levada_child): stream_put(77) in remote_misuses: the caller has not created stream 77; "
         "stream_create(77) comes first (it has created 78)\n");
  /* The side that came second. */
  CHECK(strstr(lines(), "(levada_child): stream_get(0) in remote_pipe: an element of 4 bytes; ") ||
        strstr(lines(), "levada: stream_put(0) in transmitter: an element of 8 bytes; "));
  expect("(levada_child) has used it for 2 s, and nothing here has created the stream; ");
}

/* A side that stays from one use of a number hides the next use, until it has left. */
static void uses_again(void) {
  u32 a = 0;
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  TASKID pipes = pb_create("remote_pipe", 0), gets = pb_create("remote_gets", 0);
  CHECK_EQ(stream_create(0), LVD_OK);
  CHECK_EQ(stream_create(1), LVD_OK);
  CHECK_EQ(pb_rpc(pipes), LVD_OK);
  CHECK_EQ(stream_put(0, a), LVD_OK);
  CHECK_EQ(stream_flush(0), LVD_OK);
  CHECK_EQ(stream_get(1, a), LVD_OK);
  CHECK_EQ(pb_cancel(pipes), LVD_OK);
  CHECK_EQ(pb_wait(pipes), LVD_OK);
  CHECK_EQ(pb_rpc(pipes), LVD_OK);
  /* That was looked at before this line. */
  CHECK_EQ(pb_rpc(gets), LVD_OK);
  await_line("stream 9: process");
  CHECK(!strstr(lines(), "stream 0: process"));
  CHECK_EQ(stream_close(0), LVD_OK);
  await_line("stream 0: process");
  CHECK_EQ(pb_cancel(pipes), LVD_OK);
  CHECK_EQ(pb_cancel(gets), LVD_OK);
  CHECK_EQ(pb_wait(pipes), LVD_OK);
  CHECK_EQ(pb_wait(gets), LVD_OK);
  CHECK_EQ(stream_close(1), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
}

void test_process_srpc_misuse_again(void) {
  can_start();
  CHECK_EQ(exit_of(uses_again), 0);
  expect("stream 9: process");
  expect("stream 0: process");
  expect_count(2);
}
