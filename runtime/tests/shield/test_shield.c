/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shields: how the library handles the command's replies. SHIELD_COMMAND is shield_command.c;
 * crates/levada/tests/shield_library.rs tests with the real command. */
#include "../support/test.h"

#include <levada/shield.h>

#include <errno.h>
#include <sys/wait.h>

static lvd_status begin(const char *what, int64_t timeout_ns, lvd_shield **out) {
  const lvd_shield_options o = {
      .cores = "2,3", .exclude = what, .command = SHIELD_COMMAND, .timeout_ns = timeout_ns};
  return lvd_shield_raise(&o, out);
}

static void no_child_is_left(void) { CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); }

void test_shield_reports(void) {
  lvd_shield *s;
  CHECK_EQ(begin("usual", 0, &s), LVD_OK);
  lvd_shield_report r;
  CHECK_EQ(lvd_shield_status(s, &r), LVD_OK);
  CHECK(strcmp(r.cores, "2-3") == 0 && strcmp(r.method, "cpuset-v1") == 0);
  CHECK_EQ(r.took_ns, 12000000);
  CHECK(r.threads == 41 && r.kernel_threads == 2 && r.interrupts == 3);
  CHECK(r.evicted == 1 && !r.full);
  CHECK_EQ(lvd_shield_status(s, &r), LVD_OK);
  CHECK(r.evicted == 2 && r.full);
  CHECK_EQ(lvd_shield_lower(s), LVD_OK);
  CHECK_EQ(*lvd_shield_error_text(), 0);
  no_child_is_left();

  const lvd_shield_options o = {.thread = 7, .exclude = "thread", .command = SHIELD_COMMAND};
  CHECK_EQ(lvd_shield_raise(&o, &s), LVD_OK);
  CHECK_EQ(lvd_shield_lower(s), LVD_OK);
  CHECK_EQ(lvd_shield_lower(NULL), LVD_OK);
  no_child_is_left();
}

static void begins_in_a_fiber(void *argument) {
  (void)argument;
  lvd_shield *s;
  CHECK_EQ(begin("usual", 0, &s), LVD_E_STATE);
}

void test_shield_refusals(void) {
  lvd_shield *s = NULL;
  const lvd_shield_options bad[] = {
      {.cores = ""},         {.cores = "--quiet"}, {.cores = "-1"},    {.cores = "3; rm"},
      {.exclude = "--fifo"}, {.method = "magic"},  {.method = ""},     {.process = -1},
      {.thread = -1},        {.command = ""},      {.timeout_ns = -1},
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    CHECK_EQ(lvd_shield_raise(&bad[i], &s), LVD_E_ARGUMENT);
    CHECK(*lvd_shield_error_text());
  }
  CHECK_EQ(lvd_shield_raise(NULL, NULL), LVD_E_ARGUMENT);
#ifndef LVD_EMULATED /* where spawn cannot report that a program does not exist */
  CHECK_EQ(lvd_shield_raise(&(lvd_shield_options){.command = "/nowhere/levada"}, &s),
           LVD_E_NOT_FOUND);
#endif
  CHECK_EQ(begin("refuses", 0, &s), LVD_E_SYSTEM);
  CHECK(strcmp(lvd_shield_error_text(), "core \"3\" is shielded already") == 0);
  CHECK_EQ(begin("dies", 0, &s), LVD_E_PEER_GONE);
  /* The command's end is waited for at most until the timeout. */
  CHECK_EQ(begin("silent", 1000000, &s), LVD_E_TIMEOUT);
  CHECK_EQ(begin("endless", 0, &s), LVD_E_PEER_GONE);
  CHECK(!s);
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  lvd_fiber *f;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, begins_in_a_fiber, NULL, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  lvd_runtime_destroy(rt);
}

void test_shield_ends(void) {
  lvd_shield *s;
  lvd_shield_report r;
  CHECK_EQ(begin("released", 0, &s), LVD_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_shield_status(s, &r), LVD_E_EOF);
  CHECK_EQ(r.threads, 41); /* the last known values */
  CHECK_EQ(lvd_shield_lower(s), LVD_OK);
  CHECK_EQ(begin("killed", 0, &s), LVD_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_shield_status(s, &r), LVD_E_PEER_GONE);
  CHECK_EQ(lvd_shield_lower(s), LVD_E_PEER_GONE);
  CHECK_EQ(begin("fails", 0, &s), LVD_OK);
  CHECK_EQ(lvd_shield_lower(s), LVD_E_SYSTEM);
  CHECK(strcmp(lvd_shield_error_text(), "thread 5: no such process") == 0);
  /* The timeout is that of the start, too, which takes long on a busy machine. */
  lvd_status status = LVD_E_TIMEOUT;
  for (int64_t ns = 300000000; status == LVD_E_TIMEOUT && ns < 60000000000; ns *= 2)
    status = begin("mute", ns, &s);
  CHECK_EQ(status, LVD_OK);
  CHECK_EQ(lvd_shield_status(s, &r), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_shield_lower(s), LVD_OK);
  no_child_is_left();
}
