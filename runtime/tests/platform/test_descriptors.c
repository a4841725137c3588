/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs with closed standard streams: the library opens no descriptor with their numbers, for
 * each interface and each set of closed streams. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Failed checks are written to a copy of the error output, which is closed in some processes. */
static FILE *report(void) {
  static FILE *copy;
  if (copy == NULL) {
    copy = fdopen(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100), "w");
    if (copy == NULL) _exit(1);
    setvbuf(copy, NULL, _IONBF, 0);
  }
  return copy;
}
#undef stderr
#define stderr report()

#include "../mcapi/test_mcapi.h"
#include "../support/bench.h"

#include <levada/mcapi_ext.h>
#include <levada/program.h>
#include <levada/shield.h>

#include <errno.h>

enum { STREAMS = 3, SETS = 1 << STREAMS };

static int closed; /* a bit per closed stream */

static void fail_with_name(int stream) {
  char link[40], file[400];
  snprintf(link, sizeof link, "/proc/self/fd/%d", stream);
  ssize_t length = readlink(link, file, sizeof file);
  fprintf(stderr, "stream %d, which was closed, is %.*s\n", stream, length < 0 ? 0 : (int)length,
          file);
  exit(1);
}

/* Called where the library has descriptors open. A descriptor that a worker creates has the lowest
 * number for a moment (platform/linux/syscall.h), but does not keep it. */
static void still_closed(void) {
  for (int i = 0; i < STREAMS; i++) {
    if (!(closed >> i & 1)) continue;
    uint64_t until = now_ns() + UINT64_C(300000000000);
    while (fcntl(i, F_GETFD) >= 0) {
      if (now_ns() > until) fail_with_name(i);
      sleep_ms(1);
    }
  }
}

/* Runs each in a process of its own. */
static void in_each_set(void (*use)(void)) {
  report();
  for (int set = 1; set < SETS; set++) {
    int how = -1;
    pid_t id = fork();
    CHECK(id >= 0);
    if (id == 0) {
      closed = set;
      for (int i = 0; i < STREAMS; i++)
        if (set >> i & 1) close(i);
      use();
      still_closed();
      _exit(0);
    }
    CHECK_EQ(waitpid(id, &how, 0), id);
    if (how == 0) continue;
    fprintf(stderr, "with the set %d of streams closed: status %d\n", set, how);
    CHECK_EQ(how, 0);
  }
}

/* ---- networks, fibers, programs, forks ------------------------------------------------------- */

static void a_network(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = 1000;
  sink s = {0};
  builder b;
  pipeline(&b, 2, &count, &s, 16);
  lvd_app *app = app_begun(rt, &b);
  still_closed();
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  still_closed();
  lvd_app_unload(app);
  check_pipeline(&s, count, 2);
  lvd_runtime_destroy(rt);
}

static int ends[2]; /* of a pipe */

/* Waits in the poller. */
static void reads(void *argument) {
  char byte = 0;
  (void)argument;
  CHECK_EQ(lvd_wait_readable(ends[0]), LVD_OK);
  still_closed();
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  CHECK_EQ(byte, 'x');
}

static void a_fiber(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  lvd_fiber *f;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, reads, NULL, NULL, &f), LVD_OK);
  sleep_ms(2);
  still_closed();
  CHECK_EQ(write(ends[1], "x", 1), 1);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  still_closed();
  lvd_runtime_destroy(rt);
}

static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

static void forks(void) {
  CHECK_EQ(lvd_fork_workers(2), LVD_OK);
  CHECK_EQ(fib(16), 987);
  still_closed();
}

#ifdef LEVADA_PROGRAM
static void a_program(void) {
  lvd_program *program;
  const char *const argv[] = {"forks"};
  char why[200];
  CHECK_EQ(lvd_program_open(LEVADA_PROGRAM, 1, argv, &program, why, sizeof why), LVD_OK);
  still_closed();
  lvd_program_close(program);
}
#endif

void test_descriptors_runtime(void) {
  in_each_set(a_network);
  CHECK_EQ(pipe(ends), 0); /* numbers from 3 on, as in other programs */
  in_each_set(a_fiber);
  in_each_set(forks);
#ifdef LEVADA_PROGRAM
  in_each_set(a_program);
#endif
}

/* ---- processes, windows, shields ------------------------------------------------------------- */

static void a_process(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  still_closed();
  call_twice_of_many(&u, 1, 1);
  order o = {.back = "back", .count = 500, .seed = 3};
  lvd_call *c = call(u, "child_sends", &o);
  lvd_stream *from;
  uint64_t count = 0;
  CHECK_EQ(open_stream(u, o.back, 0, 0, &from), LVD_OK);
  CHECK_EQ(receive_elements(from, &count, o.seed, NULL), LVD_E_EOF);
  CHECK_EQ(count, o.count);
  still_closed();
  CHECK_EQ(result(c), LVD_OK);
  lvd_stream_destroy(from);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}

#ifdef LEVADA_NATIVE_CHILD
static void a_window(void) {
  bench b = bench_of(2);
  lvd_unit *u;
  CHECK_EQ(lvd_unit_load(b.app, "native:" LEVADA_NATIVE_CHILD, NULL, &u), LVD_OK);
  still_closed();
  call_twice_of_many(&u, 1, 1);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
#endif

static void a_shield(void) {
  const lvd_shield_options o = {.cores = "2,3", .exclude = "usual", .command = SHIELD_COMMAND};
  lvd_shield *s;
  lvd_shield_report r;
  CHECK_EQ(lvd_shield_raise(&o, &s), LVD_OK);
  still_closed();
  CHECK_EQ(lvd_shield_status(s, &r), LVD_OK);
  CHECK_EQ(lvd_shield_lower(s), LVD_OK);
}

void test_descriptors_processes(void) {
  can_start();
  in_each_set(a_process);
#ifdef LEVADA_NATIVE_CHILD
  in_each_set(a_window);
#endif
  in_each_set(a_shield);
}

/* ---- MCAPI ----------------------------------------------------------------------------------- */

/* Everything that has descriptors there: the domain's file, FIFOs, queues, and those of
 * endpoints. */
static void a_node(void) {
  mcapi_status_t s;
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  size_t size;
  char text[8];
  void *packet;
  node_is(1);
  still_closed();
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2);
  mcapi_msg_send(a, b, "whole", 6, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  for (int i = 0; i < 100; i++)
    printf("a line that the program has for its output, if it has one\n");
  fflush(stdout);
  mcapi_msg_recv(b, text, sizeof text, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(strcmp(text, "whole") == 0);
  CHECK(lvd_mcapi_descriptor(b, &s) >= STREAMS);
  still_closed();
  mcapi_pktchan_connect_i(a, b, &r, &s);
  CHECK(mcapi_wait(&r, &size, MCAPI_TIMEOUT_INFINITE, &s));
  mcapi_pktchan_recv_open_i(&in, b, &r, &s);
  mcapi_request_t opening = r;
  mcapi_pktchan_send_open_i(&out, a, &r, &s);
  CHECK(mcapi_wait(&r, &size, MCAPI_TIMEOUT_INFINITE, &s));
  CHECK(mcapi_wait(&opening, &size, MCAPI_TIMEOUT_INFINITE, &s));
  mcapi_pktchan_send(out, "packet", 7, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_pktchan_recv(in, &packet, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(size == 7 && strcmp(packet, "packet") == 0);
  still_closed();
  node_ends();
}

void test_mcapi_closed_streams(void) {
  test_domain();
  node_is(7); /* another process of the domain; its start and death are noticed */
  node_ends();
  in_each_set(a_node);
}
