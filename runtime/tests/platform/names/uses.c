/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program that uses each interface, and of the C library only ISO C. It is linked with functions
 * that have all other names of the C library (names.py) and end the program. */
#include <levada/fork.h>
#include <levada/lease.h>
#include <levada/levada.h>
#include <levada/mcapi_ext.h>
#include <levada/shield.h>
#include <levada/srpc.h>
#include <levada/window.h>
#include <mcapi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* For linkers that do not replace a part of the library by another. */
_Noreturn void taken(const char *name) {
  fprintf(stderr, "the library calls the program's %s\n", name);
  abort();
}

/* ---- streaming RPC; calls of another process ------------------------------------------------- */

static unsigned sum;

static void numbers(void *unused) {
  (void)unused;
  stream_create(0);
  for (unsigned i = 0; i < 1000; i++) {
    stream_put(0, i);
    stream_push(0);
  }
}

static void adds(void) {
  stream_create(0);
  for (unsigned i; stream_get(0, i) == LVD_OK; stream_pop(0)) sum += i;
}

static void streams(void) {
  CHECK(stream_rpc(adds, numbers));
  CHECK(pb_finish() == LVD_OK);
  CHECK(sum == 499500);
}

static lvd_status twice(lvd_call_frame *f) {
  unsigned x;
  memcpy(&x, f->argument, sizeof x);
  x *= 2;
  memcpy(f->result, &x, sizeof x);
  f->result_size = sizeof x;
  return LVD_OK;
}
LVD_PROCEDURE(twice)

static void calls(lvd_app *app, const char *program) {
  lvd_unit *u;
  lvd_call *c;
  unsigned x = 21;
  size_t size = sizeof x;
  if (lvd_unit_load(app, program, NULL, &u) != LVD_OK) {
    fprintf(stderr, "%s: %s\n", program, lvd_window_error_text());
    exit(1);
  }
  CHECK(lvd_call_start(u, "twice", &x, sizeof x, NULL, &c) == LVD_OK);
  CHECK(lvd_call_wait(c, &x, &size, -1, NULL) == LVD_OK);
  CHECK(x == 42);
  CHECK(lvd_unit_unload(u) == LVD_OK);
}

/* ---- dataflow -------------------------------------------------------------------------------- */

enum { COUNT = 1000 };

static lvd_run_result source_run(lvd_actor *self) {
  unsigned *next = self->state;
  for (; *next < COUNT; ++*next) {
    if (!lvd_room(&self->out[0], 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    LVD_PUT(&self->out[0], unsigned, *next);
  }
  return LVD_RUN_DONE;
}

static unsigned got;
static lvd_run_result sink_run(lvd_actor *self) {
  for (; lvd_elements(&self->in[0], 1); got++) CHECK(LVD_GET(&self->in[0], unsigned) == got);
  if (lvd_ended(&self->in[0]) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

static const lvd_action_class action[] = {{"act", "uses.c", 0}};
static const lvd_port_class port[] = {{"Port", sizeof(unsigned)}};
static const lvd_actor_class source = {
    "Source", "uses.c", sizeof(unsigned), 0,    0,          1,    1,
    NULL,     port,     action,           NULL, source_run, NULL, NULL};
static const lvd_actor_class sink = {"Sink", "uses.c", 0,      0,    1,        0,    1,
                                     port,   NULL,     action, NULL, sink_run, NULL, NULL};
static const lvd_actor_desc actors[] = {{"source", &source, NULL, 0}, {"sink", &sink, NULL, 0}};
static const lvd_port_ref to_sink[] = {{1, 0}};
static const lvd_channel_desc channels[] = {{{0, 0}, 1, to_sink, sizeof(unsigned), 0, 0, 0}};
static const lvd_network network = {LVD_ABI_VERSION, "uses", 2, 1, actors, channels};

static void sleeps(void *unused) {
  (void)unused;
  CHECK(lvd_fiber_sleep(1000000) == LVD_OK);
}

static void dataflow(const char *program, const char *image) {
  lvd_runtime *rt;
  lvd_app *app, *other;
  lvd_fiber *f;
  char why[256];
  CHECK(lvd_runtime_create(NULL, &rt) == LVD_OK);
  CHECK(lvd_app_load(rt, &network, NULL, &app, why, sizeof why) == LVD_OK);
  CHECK(lvd_app_start(app) == LVD_OK);
  CHECK(lvd_app_wait(app, -1) == LVD_OK);
  CHECK(got == COUNT);
  lvd_app_unload(app);
  CHECK(lvd_app_open(rt, NULL, &other) == LVD_OK);
  CHECK(lvd_fiber_start(other, sleeps, NULL, NULL, &f) == LVD_OK);
  CHECK(lvd_fiber_join(f, -1) == LVD_OK);
  calls(other, program);
  if (*image) calls(other, image); /* behind a window */
  lvd_app_unload(other);
  lvd_runtime_destroy(rt);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

/* ---- MCAPI ----------------------------------------------------------------------------------- */

static void messages(void) {
  mcapi_status_t s;
  mcapi_info_t info;
  size_t size = 0;
  char text[8] = "";
  mcapi_request_t r[3];
  mcapi_pktchan_recv_hndl_t receiver;
  mcapi_pktchan_send_hndl_t sender;
  void *packet;
  mcapi_initialize(7, 1, NULL, NULL, &info, &s);
  CHECK(s == MCAPI_SUCCESS);
  mcapi_endpoint_t a = mcapi_endpoint_create(1, &s), b = mcapi_endpoint_create(2, &s);
  mcapi_msg_send(a, b, "hello", 6, 0, &s);
  CHECK(s == MCAPI_SUCCESS);
  mcapi_msg_recv(b, text, sizeof text, &size, &s);
  CHECK(s == MCAPI_SUCCESS && size == 6 && strcmp(text, "hello") == 0);
  mcapi_msg_recv_i(b, text, sizeof text, &r[0], &s);
  CHECK(!mcapi_wait(&r[0], &size, 1, &s) && s == MCAPI_TIMEOUT);
  mcapi_cancel(&r[0], &s);
  mcapi_pktchan_connect_i(a, b, &r[0], &s);
  mcapi_pktchan_recv_open_i(&receiver, b, &r[1], &s);
  mcapi_pktchan_send_open_i(&sender, a, &r[2], &s);
  for (int i = 0; i < 3; i++)
    CHECK(mcapi_wait(&r[i], &size, MCA_INFINITE, &s) && s == MCAPI_SUCCESS);
  mcapi_pktchan_send(sender, "packet", 7, &s);
  CHECK(s == MCAPI_SUCCESS);
  mcapi_pktchan_recv(receiver, &packet, &size, &s);
  CHECK(s == MCAPI_SUCCESS && size == 7 && strcmp(packet, "packet") == 0);
  mcapi_pktchan_release(packet, &s);
  mcapi_finalize(&s);
  CHECK(s == MCAPI_SUCCESS);
}

/* ---- core reservation ------------------------------------------------------------------------ */

static void shield(const char *command) {
  lvd_shield *s;
  lvd_shield_report report;
  const lvd_shield_options o = {.cores = "2,3", .exclude = "usual", .command = command};
  CHECK(lvd_shield_raise(&o, &s) == LVD_OK);
  CHECK(lvd_shield_status(s, &report) == LVD_OK);
  CHECK(lvd_shield_lower(s) == LVD_OK);
}

/* uses SHIELD_COMMAND [IMAGE] */
int main(int argc, char **argv) {
  if (lvd_unit_is_loaded()) return lvd_unit_serve(NULL) != LVD_OK;
  CHECK(argc >= 2);
  streams();
  dataflow(argv[0], argc > 2 ? argv[2] : "");
  CHECK(lvd_fork_workers(2) == LVD_OK);
  CHECK(fib(16) == 987);
  messages();
  shield(argv[1]);
  puts("ok");
  return 0;
}
