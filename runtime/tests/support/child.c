/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The program that the tests of process units load: a correct one, or, by its first argument, one
 * that does not serve, or that serves and then writes to random places. */
#include "child.h"
#include "leaves_memory.h"
#include "procedures.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <levada/srpc.h>

#include "../../src/ipc/link.h"

static page *shown;

static void show(const char *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) exit(3);
  shown = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (shown == MAP_FAILED) exit(3);
  close(fd);
}

/* ---- procedures ------------------------------------------------------------------------------ */

static lvd_status child_sleeps(lvd_call_frame *f) {
  return lvd_fiber_sleep(*(const int64_t *)f->argument);
}
LVD_PROCEDURE(child_sleeps)

static lvd_a32 in_call;

/* Until it is cancelled. */
static lvd_status child_waits(lvd_call_frame *f) {
  (void)f;
  lvd_store_release_u32(&in_call, 1);
  return lvd_fiber_sleep(INT64_MAX / 4);
}
LVD_PROCEDURE(child_waits)

static uint64_t fib(uint64_t n);
LVD_FORKABLE(uint64_t, fib, uint64_t)
static uint64_t fib(uint64_t n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  uint64_t second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

/* Forks until some calls were stolen; returns their number. */
static lvd_status child_forks(lvd_call_frame *f) {
  uint64_t stolen = 0;
  while (stolen < 10) {
    LVD_FORK(first, fib, 12);
    if (fib(16) != 987 || LVD_JOIN(first, fib) != 144) return LVD_E_FAULT;
    stolen += lvd_stolen();
  }
  memcpy(f->result, &stolen, sizeof stolen);
  f->result_size = sizeof stolen;
  return LVD_OK;
}
LVD_PROCEDURE(child_forks)

static lvd_status child_crashes(lvd_call_frame *f) {
  (void)f;
  volatile int *volatile nowhere = (volatile int *)64;
  *nowhere = 1;
  return LVD_OK;
}
LVD_PROCEDURE(child_crashes)

/* Claims falsely that it has failed, in words that a real child would not use. */
static lvd_status child_lies(lvd_call_frame *f) {
  (void)f;
  lvd_record r = {.kind = LVD_RECORD_FAULT, .size = UINT32_MAX, .number = 7, .room = 7};
  memset(r.name, '!', sizeof r.name);
  for (size_t i = 0; i < sizeof r.data; i++) r.data[i] = (unsigned char)i;
  lvd_status status = lvd_link_send(lvd_unit_link(lvd_unit_parent()), &r);
  r.size = 5;
  memcpy(r.data, "again", 5);
  return status == LVD_OK ? lvd_link_send(lvd_unit_link(lvd_unit_parent()), &r) : status;
}
LVD_PROCEDURE(child_lies)

/* Each ends its process in its own way. */
static lvd_status child_aborts(lvd_call_frame *f) {
  (void)f;
  abort();
}
LVD_PROCEDURE(child_aborts)
static lvd_status child_exits(lvd_call_frame *f) {
  leaves_memory();
  exit(*(const int *)f->argument);
}
LVD_PROCEDURE(child_exits)
static lvd_status child_quits(lvd_call_frame *f) { _exit(*(const int *)f->argument); }
LVD_PROCEDURE(child_quits)
static void *aborts(void *unused) {
  (void)unused;
  abort();
}
static lvd_status child_thread_aborts(lvd_call_frame *f) {
  (void)f;
  pthread_t thread;
  return pthread_create(&thread, NULL, aborts, NULL) ? LVD_E_SYSTEM
                                                     : lvd_fiber_sleep(INT64_MAX / 4);
}
LVD_PROCEDURE(child_thread_aborts)

static lvd_status child_fails(lvd_call_frame *f) {
  (void)f;
  lvd_actor_fail(NULL, LVD_FAULT_CHECK, 0, "%s is not what it should be", "\x1b[31mthis");
}
LVD_PROCEDURE(child_fails)

static lvd_status child_spins(lvd_call_frame *f) {
  for (volatile size_t i = 0; i != 1; i = f->argument_size) {
  }
  return LVD_OK;
}
LVD_PROCEDURE(child_spins)

static lvd_status child_sends(lvd_call_frame *f) {
  const order *o = f->argument;
  lvd_stream *s;
  lvd_status status = open_stream(lvd_unit_parent(), o->back, o->capacity, o->threshold, &s);
  if (status != LVD_OK) return status;
  status = send_elements(s, o->count, o->seed, shown ? &shown->pushed : NULL);
  lvd_stream_close(s);
  lvd_stream_destroy(s);
  return status;
}
LVD_PROCEDURE(child_sends)

static lvd_status child_receives(lvd_call_frame *f) {
  const order *o = f->argument;
  lvd_stream *s;
  lvd_status status = open_stream(lvd_unit_parent(), o->name, o->capacity, o->threshold, &s);
  if (status != LVD_OK) return status;
  status = receive_elements(s, f->result, o->seed, shown ? &shown->got : NULL);
  f->result_size = 8;
  lvd_stream_close(s);
  lvd_stream_destroy(s);
  return status;
}
LVD_PROCEDURE(child_receives)

/* Forwards what it gets. */
static lvd_status child_pipes(lvd_call_frame *f) {
  const order *o = f->argument;
  lvd_stream *in, *out;
  lvd_status status = open_stream(lvd_unit_parent(), o->name, o->capacity, o->threshold, &in);
  if (status == LVD_OK)
    status = open_stream(lvd_unit_parent(), o->back, o->capacity, o->threshold, &out);
  if (status != LVD_OK) return status;
  uint64_t x;
  while ((status = lvd_stream_get(in, &x, sizeof x)) == LVD_OK) {
    lvd_stream_pop(in);
    status = lvd_stream_put(out, &x, sizeof x);
    lvd_stream_push(out);
    if (status != LVD_OK) break;
  }
  lvd_stream_close(in);
  lvd_stream_close(out);
  lvd_stream_destroy(in);
  lvd_stream_destroy(out);
  return status == LVD_E_EOF ? LVD_OK : status;
}
LVD_PROCEDURE(child_pipes)

/* Owns the sending end of one stream, and waits for the other, perhaps without result. */
static lvd_status child_waits_for_both(lvd_call_frame *f) {
  const order *o = f->argument;
  lvd_stream *in, *out;
  uint64_t x;
  lvd_status status = open_stream(lvd_unit_parent(), o->name, 0, 0, &in);
  if (status == LVD_OK) status = open_stream(lvd_unit_parent(), o->back, 0, 0, &out);
  if (status == LVD_OK) status = lvd_stream_wait_room(out, 1, -1);
  if (status == LVD_OK && o->seed) status = lvd_fiber_sleep((int64_t)o->seed);
  if (status == LVD_OK) status = lvd_stream_get(in, &x, sizeof x);
  if (status == LVD_OK) status = lvd_stream_put(out, &x, sizeof x);
  return status;
}
LVD_PROCEDURE(child_waits_for_both)

/* Opens a stream, and does nothing with it. */
static lvd_status child_opens(lvd_call_frame *f) {
  const order *o = f->argument;
  lvd_stream *s;
  const lvd_stream_options so = {.name = o->name, .elem_size = (uint32_t)o->count};
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &so, &s);
  if (status == LVD_OK) lvd_stream_destroy(s);
  return status;
}
LVD_PROCEDURE(child_opens)

/* Calls the parent as often as requested, with what it gets back; reports that in between. */
static lvd_status child_calls_back(lvd_call_frame *f) {
  const order *o = f->argument;
  uint64_t x = o->seed;
  lvd_status status = LVD_OK;
  for (uint64_t n = 0; n < o->count && status == LVD_OK; n++) {
    lvd_call *c;
    size_t size = sizeof x;
    status = lvd_call_start(lvd_unit_parent(), o->name, &x, sizeof x, NULL, &c);
    if (status == LVD_OK) status = lvd_call_wait(c, &x, &size, -1, NULL);
    if (status == LVD_OK && shown) lvd_store_release_u64(&shown->pushed, n + 1);
  }
  *(uint64_t *)f->result = x;
  f->result_size = sizeof x;
  return status;
}
LVD_PROCEDURE(child_calls_back)

/* An argument and a result that are too large for a call to the parent. */
static lvd_status child_calls_largely(lvd_call_frame *f) {
  static const unsigned char large[257];
  const lvd_call_options o = {.result_room = 257};
  lvd_call *c;
  (void)f;
  if (lvd_call_start(lvd_unit_parent(), "parent_adds", large, 257, NULL, &c) != LVD_E_LIMIT)
    return LVD_E_FAULT;
  return lvd_call_start(lvd_unit_parent(), "parent_adds", large, 8, &o, &c);
}
LVD_PROCEDURE(child_calls_largely)

/* ---- srpc interface -------------------------------------------------------------------------- */

static void pipe_between(STREAM_ID in, STREAM_ID out) {
  u32 a;
  stream_create(in);
  stream_create(out);
  while (stream_get(in, a) == LVD_OK) {
    stream_pop(in);
    a = a + 1;
    stream_put(out, a);
    stream_push(out);
  }
}
static void remote_pipe(void) { pipe_between(0, 1); }
static void other_pipe(void) { pipe_between(4, 5); } /* of a program with another name (main) */
PB_PROCEDURE(remote_pipe)

/* Has its parent add, and forwards the result. */
static void remote_asks(void) {
  u32 sum = 0;
  stream_create(6);
  stream_create(7);
  stream_create(8);
  TASKID adds = pb_create("here_adds", 0);
  if (!adds || pb_create("here_nobody", 0) || pb_rpc(adds) != LVD_OK) return;
  for (u32 i = 0; i < 100; i++) stream_put(6, i);
  stream_close(6);
  if (pb_signal(adds, 1000) != LVD_OK || stream_get(7, sum) != LVD_OK) return;
  if (pb_wait(adds) == LVD_OK && pb_release(adds) == LVD_OK) stream_put(8, sum);
}
PB_PROCEDURE(remote_asks)

/* One task opens a stream, and another task of this process claims the other end meanwhile. */
static lvd_a32 opens;
static u32 sum_there;

static void there_gets(void) {
  u32 a;
  while (!lvd_load_acquire_u32(&opens)) lvd_fiber_yield();
  stream_create(9);
  while (stream_get(9, a) == LVD_OK) sum_there += a;
}
PB_PROCEDURE(there_gets)

static void remote_both(void) {
  lvd_store_release_u32(&opens, sum_there = 0);
  stream_create(8);
  stream_create(9);
  TASKID gets = pb_create_in(0, "there_gets", 0);
  if (!gets || pb_rpc(gets) != LVD_OK) return;
  lvd_store_release_u32(&opens, 1);
  for (u32 i = 0; i < 100; i++) stream_put(9, i);
  stream_close(9);
  if (pb_release(gets) == LVD_OK) stream_put(8, sum_there);
}
PB_PROCEDURE(remote_both)

/* Reports how its wait for elements that are never sent has ended. */
static void wants(STREAM_ID in, STREAM_ID out, int i) {
  u32 a;
  stream_create(in);
  stream_create(out);
  if (shown) lvd_store_release_u32(&shown->told[i], UINT32_MAX);
  lvd_status status = stream_get(in, a);
  if (shown) lvd_store_release_u32(&shown->told[i], 1 + (uint32_t)status);
}
static void remote_wants(void) { wants(0, 1, 0); }
static void remote_wants_too(void) { wants(4, 5, 1); }
PB_PROCEDURE(remote_wants)
PB_PROCEDURE(remote_wants_too)

/* The same for a thread, which main waits for. */
static pthread_t wanting;
static bool wants_too;
static void *thread_wants(void *unused) {
  pthread_setname_np(pthread_self(), "wants");
  wants(0, 1, 0);
  return unused;
}
static void remote_thread(void) {
  wants_too = pthread_create(&wanting, NULL, thread_wants, NULL) == 0;
}
PB_PROCEDURE(remote_thread)

static void remote_signal(void) {
  u32 data = 0;
  stream_create(2);
  if (pb_wait_signal(&data, -1) != LVD_OK) return;
  stream_put(2, data);
}
PB_PROCEDURE(remote_signal)

static void remote_crashes(void) { child_crashes(NULL); }
PB_PROCEDURE(remote_crashes)

static void remote_nothing(void) { stream_create(3); }
PB_PROCEDURE(remote_nothing)

/* Puts into a stream that it has not created. */
static void remote_misuses(void) {
  u32 a = 1;
  stream_create(78);
  stream_put(77, a);
}
PB_PROCEDURE(remote_misuses)

static void remote_gets(void) {
  u32 a;
  stream_create(9);
  while (stream_get(9, a) == LVD_OK) stream_pop(9);
}
PB_PROCEDURE(remote_gets)

static void remote_waits(void) {
  u32 data = 0;
  pb_wait_signal(&data, -1);
}
PB_PROCEDURE(remote_waits)

/* ---- bad ones -------------------------------------------------------------------------------- */

/* The memory that the parent shares, by the descriptor that it passed. */
static unsigned char *memory_of_parent(size_t *size, int *bell) {
  int memory;
  struct stat st;
  const char *value = getenv("LEVADA_UNIT");
  if (!value || sscanf(value, "%d,%d", &memory, bell) != 2 || fstat(memory, &st) != 0) exit(3);
  *size = (size_t)st.st_size;
  void *p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (p == MAP_FAILED) exit(3);
  return p;
}

typedef struct scribbler {
  unsigned char *memory;
  size_t size;
  int bell;
  uint64_t random;
} scribbler;

static uint64_t next(scribbler *s) {
  s->random ^= s->random << 13, s->random ^= s->random >> 7, s->random ^= s->random << 17;
  return s->random;
}

/* Writes random values to the shared memory, mostly where small numbers matter. */
static void scribble(void *argument) {
  scribbler *s = argument;
  size_t used = 1 << 19 < s->size ? 1 << 19 : s->size;
  for (;;) {
    for (int i = 0; i < 64; i++) {
      uint64_t r = next(s);
      uint32_t value = (uint32_t)(r >> 32);
      if (r & 1) value %= 64;
      size_t at = next(s) % (used / 4) * 4;
      if (r & 2) at = at / 4096 * 4096 + at % 1024; /* heads */
      memcpy(s->memory + at, &value, 4);
    }
    if (next(s) % 8 == 0 && write(s->bell, "", 1) < 0) {
    }
    if (next(s) % 64 == 0) usleep(200);
  }
}

static void *scribble_thread(void *argument) {
  scribble(argument);
  return NULL;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "srpc";
  if (argc > 2) show(argv[2]);
  if (getenv("LEVADA_TEST_PAGE")) show(getenv("LEVADA_TEST_PAGE"));
  if (strcmp(what, "sleep") == 0) {
    sleep(60);
    return 0;
  }
  if (strcmp(what, "exit") == 0) return 0;
  if (strcmp(what, "layout") == 0) {
    /* As a program that is linked with a later library. */
    size_t size;
    int bell;
    unsigned char *memory = memory_of_parent(&size, &bell);
    ((uint32_t *)memory)[LVD_CACHE_LINE / 4] = 1 + LVD_ABI_VERSION + 1;
    if (write(bell, "", 1) < 0) return 3;
    sleep(60);
    return 0;
  }
  if (strcmp(what, "wild") == 0) {
    static scribbler s;
    s.memory = memory_of_parent(&s.size, &s.bell);
    s.bell = dup(s.bell);
    s.random = strtoull(argv[3], NULL, 10) | 1;
    pthread_t thread;
    pthread_create(&thread, NULL, scribble_thread, &s);
  }
  if (strstr(argv[0], "other")) pb_register("other_pipe", (void *)other_pipe);
  if (strcmp(what, "srpc") == 0) {
    lvd_status status = pb_boot();
    if (wants_too) pthread_join(wanting, NULL);
    return status == LVD_E_STOPPED ? 0 : 1;
  }
  if (strcmp(what, "parent") == 0 || strcmp(what, "called") == 0) {
    /* Loads a child of its own, and is killed in the middle of its streams or of a call from it. */
    lvd_runtime *rt;
    lvd_app *app;
    lvd_unit *unit;
    const char *const arguments[] = {"serve", argv[2], NULL};
    const lvd_unit_options o = {.argument = arguments, .may_call = "child_"};
    if (lvd_runtime_create(NULL, &rt) != LVD_OK || lvd_app_open(rt, NULL, &app) != LVD_OK ||
        lvd_unit_load(app, argv[0], &o, &unit) != LVD_OK)
      return 3;
    const order endless = {.name = "child_waits", .back = "endless", .count = UINT64_MAX};
    if (strcmp(what, "called") == 0) {
      lvd_call *c;
      lvd_call_start(unit, "child_calls_back", &endless, sizeof endless, NULL, &c);
      while (!lvd_load_acquire_u32(&in_call)) lvd_fiber_sleep(1000000);
      lvd_store_release_u64(&shown->pushed, 1);
      lvd_store_release_u32(&shown->grandchild, (uint32_t)lvd_unit_process(unit));
      lvd_call_wait(c, NULL, NULL, -1, NULL);
      return 3;
    }
    lvd_call *call[2];
    lvd_stream *s;
    if (lvd_call_start(unit, "child_sends", &endless, sizeof endless, NULL, &call[0]) != LVD_OK ||
        lvd_call_start(unit, "child_spins", NULL, 0, NULL, &call[1]) != LVD_OK ||
        open_stream(unit, "endless", 64, 1, &s) != LVD_OK)
      return 3;
    lvd_store_release_u32(&shown->grandchild, (uint32_t)lvd_unit_process(unit));
    uint64_t count = 0;
    receive_elements(s, &count, 0, NULL);
    return 3;
  }
  return lvd_unit_serve(NULL) == LVD_OK ? 0 : 1;
}
