/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* C programs as applications (levada/program.h): one program loaded several times (program.c). */
#include <levada/call.h>
#include <levada/levada.h>
#include <levada/native.h>
#include <levada/program.h>
#include <levada/srpc.h>

#include <unistd.h>

#include "../support/test.h"

#ifdef LEVADA_PROGRAM

enum { LIMIT_MS = 60000 };

typedef struct loaded {
  lvd_program *program;
  lvd_app *app;
} loaded;

static lvd_runtime *runtime(uint32_t workers) {
  lvd_runtime *rt;
  lvd_runtime_options o = {.workers = workers};
  CHECK_EQ(lvd_runtime_create(&o, &rt), LVD_OK);
  return rt;
}

static loaded load(lvd_runtime *rt, const char *what, const char *most) {
  const char *argv[] = {"program", what, most};
  char why[256];
  loaded l;
  CHECK_EQ(lvd_program_open(LEVADA_PROGRAM, most ? 3 : 2, argv, &l.program, why, sizeof why),
           LVD_OK);
  CHECK_EQ(lvd_app_load(rt, lvd_program_network(l.program), NULL, &l.app, why, sizeof why), LVD_OK);
  CHECK_EQ(lvd_app_start(l.app), LVD_OK);
  return l;
}

static void unload(loaded l) {
  lvd_app_unload(l.app);
  lvd_program_close(l.program);
}

/* ---- what they do ---------------------------------------------------------------------------- */

/* Each has its own variables, procedures and stream numbers, separate from the process's program,
 * too. */
void test_program_app_side_by_side(void) {
  enum { PROGRAMS = 12 };
  static const char *const what[] = {"forks", "calls", "leaves"}, *const most[] = {"0", "1",
                                                                                   "5000"};
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime(workers);
    pb_set_diagnostics(false);
    CHECK_EQ(pb_boot(), LVD_OK);
    CHECK_EQ(stream_create(1), LVD_OK);
    loaded all[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++) all[i] = load(rt, what[i % 3], most[i / 3 % 3]);
    for (int i = 0; i < PROGRAMS; i++) CHECK_EQ(lvd_app_wait(all[i].app, LIMIT_MS * MS_NS), LVD_OK);
    CHECK(pb_create("twice", 0) == NULL);
    CHECK_EQ(stream_create(1), LVD_E_STATE);
    CHECK_EQ(stream_close(1), LVD_OK);
    for (int i = 0; i < PROGRAMS; i++) unload(all[i]);
    CHECK_EQ(pb_finish(), LVD_OK);
    lvd_runtime_destroy(rt);
  }
}

/* Nothing is left of earlier ones; they are named after their files. */
void test_program_app_again(void) {
  lvd_runtime *rt = runtime(2);
  for (int i = 0; i < 50; i++) {
    loaded l = load(rt, "calls", "10");
    CHECK(strcmp(lvd_app_name(l.app), "levada_program") == 0 ||
          strcmp(lvd_app_name(l.app), "liblevada_program") == 0);
    CHECK_EQ(lvd_app_wait(l.app, LIMIT_MS * MS_NS), LVD_OK);
    unload(l);
  }
  lvd_runtime_destroy(rt);
}

/* ---- how they end ---------------------------------------------------------------------------- */

static void fails(lvd_runtime *rt, const char *what, lvd_fault_kind kind, const char *words) {
  loaded l = load(rt, what, "0");
  lvd_fault fault;
  CHECK_EQ(lvd_app_wait(l.app, LIMIT_MS * MS_NS), LVD_E_FAULT);
  CHECK(lvd_app_fault(l.app, &fault));
  CHECK_EQ(fault.kind, kind);
  if (!strstr(fault.message, words)) printf("%s\n", fault.message);
  CHECK(strstr(fault.message, words) != NULL);
  unload(l);
}

void test_program_app_failures(void) {
  lvd_runtime *rt = runtime(2);
  loaded other = load(rt, "waits", NULL);
  fails(rt, "fails", LVD_FAULT_NATIVE, "main has returned 3");
  fails(rt, "what", LVD_FAULT_NATIVE, "main has returned 102");
  fails(rt, "faults", LVD_FAULT_MEMORY, "");
  fails(rt, "misuses", LVD_FAULT_NATIVE,
        "pb_create(\"Twise\"): no procedure has this name; did you mean");
  CHECK_EQ(lvd_app_wait(other.app, 0), LVD_E_TIMEOUT);
  unload(other);
  lvd_runtime_destroy(rt);
}

void test_program_app_stop(void) {
  lvd_runtime *rt = runtime(2);
  for (int i = 0; i < 20; i++) {
    loaded l = load(rt, "waits", NULL);
    if (i % 2) usleep(1000);
    CHECK_EQ(lvd_app_stop_timeout(l.app, LIMIT_MS * MS_NS), LVD_OK);
    CHECK_EQ(lvd_app_wait(l.app, 0), LVD_E_STOPPED);
    unload(l);
  }
  lvd_runtime_destroy(rt);
}

static void until_it_runs(loaded l, uint64_t versions) {
  while (lvd_app_get_progress(l.app, NULL) != versions) {
    CHECK_EQ(lvd_app_wait(l.app, 0), LVD_E_TIMEOUT);
    usleep(100);
  }
}

static lvd_a32 held_up, may_go;
static lvd_run_result endless_run(lvd_actor *self) {
  (void)self;
  lvd_add_release_u32(&held_up, 1);
  while (!lvd_load_acquire_u32(&may_go)) continue;
  return LVD_RUN_DONE;
}

static lvd_app *endless_at(lvd_runtime *rt, uint32_t worker) {
  static const lvd_actor_class cls = {.name = "Endless", .run = endless_run};
  static const lvd_actor_desc actor = {"endless", &cls, NULL, 0};
  static const lvd_network net = {LVD_ABI_VERSION, "endless", 1, 0, &actor, NULL};
  lvd_app_options o = {.placement = &worker};
  uint32_t before = lvd_load_acquire_u32(&held_up);
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &net, &o, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  while (lvd_load_acquire_u32(&held_up) == before) usleep(1000);
  return app;
}

/* A program was suspended while it computed, and what its worker runs now does not end: it can
 * continue nowhere else, but ends when it is told to. It also does when all other workers are
 * delayed in the same way, and its forks have not been stolen. */
void test_program_app_held_up(void) {
#if defined __SANITIZE_THREAD__
  SKIP("the thread sanitizer keeps back the signal by which it would be suspended");
#endif
  static const char *const what[] = {"computes", "computes amid forks"};
  static const uint32_t first = 0;
  lvd_app_options o = {.placement = &first};
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime(workers);
    for (int i = 0; i < 4; i++) {
      const char *argv[] = {"program", what[i % 2]};
      loaded l;
      lvd_store_relaxed_u32(&held_up, 0);
      lvd_store_relaxed_u32(&may_go, 0);
      lvd_app *other = workers > 1 && i > 1 ? endless_at(rt, 1) : NULL;
      CHECK_EQ(lvd_program_open(LEVADA_PROGRAM, 2, argv, &l.program, NULL, 0), LVD_OK);
      CHECK_EQ(lvd_app_load(rt, lvd_program_network(l.program), &o, &l.app, NULL, 0), LVD_OK);
      CHECK_EQ(lvd_app_start(l.app), LVD_OK);
      until_it_runs(l, 1);
      lvd_app *endless = endless_at(rt, 0);
      CHECK_EQ(lvd_app_stop_timeout(l.app, LIMIT_MS * MS_NS), LVD_OK);
      unload(l);
      lvd_store_release_u32(&may_go, 1);
      app_ended(endless, LVD_OK);
      if (other) app_ended(other, LVD_OK);
      loaded forks = load(rt, "forks", NULL);
      CHECK_EQ(lvd_app_wait(forks.app, LIMIT_MS * MS_NS), LVD_OK);
      unload(forks);
    }
    lvd_runtime_destroy(rt);
  }
}

/* It is abandoned while another fiber of it runs elsewhere, and yields. */
void test_program_app_held_up_with_fibers(void) {
#if defined __SANITIZE_THREAD__
  SKIP("the thread sanitizer keeps back the signal by which it would be suspended");
#endif
  static const uint32_t first = 0;
  const char *argv[] = {"program", "computes with another"};
  lvd_app_options o = {.placement = &first};
  lvd_runtime *rt = runtime(2);
  for (int i = 0; i < 3; i++) {
    loaded l;
    lvd_store_relaxed_u32(&held_up, 0);
    lvd_store_relaxed_u32(&may_go, 0);
    CHECK_EQ(lvd_program_open(LEVADA_PROGRAM, 2, argv, &l.program, NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_load(rt, lvd_program_network(l.program), &o, &l.app, NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_start(l.app), LVD_OK);
    until_it_runs(l, 1);
    lvd_app *endless = endless_at(rt, 0);
    /* so it is abandoned as soon as it is told to end, and before the others are */
    usleep(1300000);
    CHECK_EQ(lvd_app_stop_timeout(l.app, LIMIT_MS * MS_NS), LVD_OK);
    CHECK(!lvd_app_fault(l.app, NULL)); /* it has not continued on another thread */
    unload(l);
    lvd_store_release_u32(&may_go, 1);
    app_ended(endless, LVD_OK);
  }
  lvd_runtime_destroy(rt);
}

/* What main has registered is removed with the program, like what its constructors have
 * registered. */
void test_program_app_registers(void) {
  lvd_runtime *rt = runtime(2);
  for (int i = 0; i < 3; i++) {
    loaded l = load(rt, "registers", NULL);
    CHECK_EQ(lvd_app_wait(l.app, LIMIT_MS * MS_NS), LVD_OK);
    unload(l);
    CHECK(!lvd_procedure_find("registered"));
  }
  lvd_runtime_destroy(rt);
}

/* Each gets the data of its predecessor, and starts when that has ended. */
void test_program_app_versions(void) {
  enum { VERSIONS = 30 };
  lvd_runtime *rt = runtime(2);
  loaded all[VERSIONS];
  for (int i = 0; i < VERSIONS; i++) {
    const char *argv[] = {"program", "follows"};
    char why[256];
    CHECK_EQ(lvd_program_open(LEVADA_PROGRAM, 2, argv, &all[i].program, why, sizeof why), LVD_OK);
    CHECK_EQ(
        lvd_app_load(rt, lvd_program_network(all[i].program), NULL, &all[i].app, why, sizeof why),
        LVD_OK);
    if (i > 0) {
      CHECK_EQ(lvd_app_set_data_successor(all[i].app, all[i - 1].app), LVD_OK);
      CHECK_EQ(lvd_app_drain(all[i - 1].app), LVD_OK);
      CHECK_EQ(lvd_app_wait(all[i - 1].app, LIMIT_MS * MS_NS), LVD_OK);
    }
    CHECK_EQ(lvd_app_start(all[i].app), LVD_OK);
    until_it_runs(all[i], (uint64_t)i + 1);
  }
  CHECK_EQ(lvd_app_stop_timeout(all[VERSIONS - 1].app, LIMIT_MS * MS_NS), LVD_OK);
  for (int i = VERSIONS; i-- > 0;) unload(all[i]);
  lvd_runtime_destroy(rt);
}

/* A program that listens is told, whether it waits already or not; one that does not listen
 * continues, and the request is withdrawn. */
void test_program_app_drains(void) {
  int ends[2];
  char fd[12];
  lvd_runtime *rt = runtime(2);
  CHECK_EQ(pipe(ends), 0);
  snprintf(fd, sizeof fd, "%d", ends[0]);
  for (int i = 0; i < 100; i++) {
    loaded l = load(rt, "listens", fd);
    until_it_runs(l, 1);
    if (i % 2) usleep((useconds_t)i * 10);
    CHECK_EQ(lvd_app_drain(l.app), LVD_OK);
    CHECK_EQ(lvd_app_wait(l.app, LIMIT_MS * MS_NS), LVD_OK);
    CHECK_EQ(lvd_app_drain(l.app), LVD_E_STATE);
    unload(l);
  }
  /* There is input, but not for it. */
  CHECK_EQ(write(ends[1], "x", 1), 1);
  loaded leaves = load(rt, "leaves input", fd);
  CHECK_EQ(lvd_app_drain(leaves.app), LVD_OK);
  CHECK_EQ(lvd_app_wait(leaves.app, LIMIT_MS * MS_NS), LVD_OK);
  unload(leaves);
  loaded deaf = load(rt, "waits", NULL);
  CHECK_EQ(lvd_app_cancel_drain(deaf.app), LVD_E_STATE);
  CHECK_EQ(lvd_app_drain(deaf.app), LVD_OK);
  CHECK_EQ(lvd_app_wait(deaf.app, 20 * MS_NS), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_cancel_drain(deaf.app), LVD_OK);
  CHECK(!lvd_app_is_draining(deaf.app));
  CHECK_EQ(lvd_app_drain(deaf.app), LVD_OK);
  CHECK(lvd_app_is_draining(deaf.app));
  CHECK_EQ(lvd_app_cancel_drain(deaf.app), LVD_E_STATE);
  unload(deaf);
  close(ends[0]);
  close(ends[1]);
  lvd_runtime_destroy(rt);
}

static void refuses(const char *path, const char *words) {
  lvd_program *program = (lvd_program *)1;
  char why[256];
  CHECK_EQ(lvd_program_open(path, 0, NULL, &program, why, sizeof why), LVD_E_ARGUMENT);
  CHECK(!program);
  if (!strstr(why, words) || !strstr(why, path)) printf("%s\n", why);
  CHECK(strstr(why, words) && strstr(why, path));
  CHECK_EQ(lvd_program_open(path, 0, NULL, &program, NULL, 0), LVD_E_ARGUMENT);
}

void test_program_app_wrong_objects(void) {
  refuses("/nowhere/program.so", "No such file");
  refuses("/tmp", "Is a directory");
  refuses("/dev/null", "Invalid argument");
  refuses(__FILE__, "invalid ELF header");
  refuses(LEVADA_NO_MAIN, "has no main");
  lvd_program *program;
  CHECK_EQ(lvd_program_open(NULL, 0, NULL, &program, NULL, 0), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_program_open(LEVADA_PROGRAM, 1, NULL, &program, NULL, 0), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_program_open(LEVADA_PROGRAM, 0, NULL, NULL, NULL, 0), LVD_E_ARGUMENT);
  CHECK(!lvd_program_network(NULL));
  lvd_program_close(NULL);
}
#else /* nothing is loaded where programs are for another processor */
void test_program_app_side_by_side(void) {
  printf("skipped: the tests are built for another processor\n");
}
void test_program_app_again(void) { test_program_app_side_by_side(); }
void test_program_app_failures(void) { test_program_app_side_by_side(); }
void test_program_app_stop(void) { test_program_app_side_by_side(); }
void test_program_app_versions(void) { test_program_app_side_by_side(); }
void test_program_app_drains(void) { test_program_app_side_by_side(); }
void test_program_app_held_up(void) { test_program_app_side_by_side(); }
void test_program_app_held_up_with_fibers(void) { test_program_app_side_by_side(); }
void test_program_app_registers(void) { test_program_app_side_by_side(); }
void test_program_app_wrong_objects(void) { test_program_app_side_by_side(); }
#endif
