/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures message passing with any transport: between two processes, between two threads, from a side to
 * itself, or from many processes to one. Prints half of the round trip time, and the throughput in bytes;
 * with many senders, the messages per second. C17 and C++17.
 *
 * Each side has a core of its own; the receiver of many is on the first, the senders on all others. A
 * message begins with a number, and the receiver checks the sum of these numbers. */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "bench.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAIR_BYTES_MAX = 65536, PAIR_SIDES = 65, PAIR_BURST = 8, PAIR_WARM_UP = 200 };

typedef struct pair_carrier {
  size_t shared;              /* size in bytes of the memory that all sides share, zeroed */
  void (*make)(void *shared); /* called before the sides begin; may be null */
  /* Called by each side; `other` is the side to which it sends, which may be itself. */
  void (*begin)(int side, int other, size_t size);
  void (*send)(int side, const void *data, size_t size);
  uint64_t (*receive)(int side, size_t size); /* into private memory; returns the first word */
  void (*end)(int side);                      /* may be null */
} pair_carrier;

/* Barriers for all sides. A side sleeps there: polling would take CPU time from the sides that still compute. */
typedef struct pair_meeting {
  pthread_barrier_t begun, ended;
} pair_meeting;

typedef struct pair_run {
  const pair_carrier *carrier;
  size_t size;
  uint64_t to_and_fro, one_way;
  int senders; /* 0: two sides */
  pair_meeting *meeting;
  int side, other;
} pair_run;

static unsigned char pair_data[PAIR_SIDES][PAIR_BYTES_MAX] __attribute__((aligned(64)));

static inline void pair_must(int well, const char *what) {
  if (well) return;
  perror(what);
  exit(1);
}

static inline void pair_send(const pair_run *x, uint64_t number) {
  unsigned char *data = pair_data[x->side];
  memcpy(data, &number, sizeof number);
  x->carrier->send(x->side, data, x->size);
}
static inline uint64_t pair_receive(const pair_run *x) {
  return x->carrier->receive(x->side, x->size);
}

static inline void pair_meeting_make(pair_meeting *m, unsigned sides) {
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pair_must(pthread_barrier_init(&m->begun, &shared, sides) == 0, "pthread_barrier_init");
  pair_must(pthread_barrier_init(&m->ended, &shared, sides) == 0, "pthread_barrier_init");
}

static inline uint64_t pair_sum(uint64_t n) { return n * (n + 1) / 2; }

/* Waits `ns` ns, long enough that the other side sleeps. The pauses are not part of the measured time. */
static inline void pair_pause(double ns) {
  for (double until = bench_now() + ns * 1e-9; bench_now() < until;) bench_relax();
}

static inline void pair_first(const pair_run *x) {
  uint64_t sum = 0, n = x->to_and_fro;
  for (uint64_t i = 0; i < PAIR_WARM_UP; i++) {
    pair_send(x, i);
    pair_receive(x);
  }
  const char *pause_us = getenv("BENCH_PAUSE_US");
  double pause = pause_us ? atof(pause_us) * 1e3 : 0, paused = 0;
  double start = bench_now();
  for (uint64_t i = 1; i <= n; i++) {
    double before = pause > 0 ? bench_now() : 0;
    if (pause > 0) pair_pause(pause);
    if (pause > 0) paused += bench_now() - before;
    pair_send(x, i);
    sum += pair_receive(x);
  }
  if (n) bench_say("us", (bench_now() - start - paused) / (double)n / 2 * 1e6);
  bench_expect("the sum", sum, pair_sum(n));
  n = x->one_way;
  if (!n) return;
  start = bench_now();
  for (uint64_t i = 1; i <= n; i++) pair_send(x, i);
  bench_expect("the other's sum", pair_receive(x), pair_sum(n));
  bench_say("mb_per_s", (double)(n * x->size) / (bench_now() - start) * 1e-6);
}

static inline void pair_second(const pair_run *x) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < x->to_and_fro + PAIR_WARM_UP; i++) pair_send(x, pair_receive(x));
  if (!x->one_way) return;
  for (uint64_t i = 0; i < x->one_way; i++) sum += pair_receive(x);
  pair_send(x, sum);
}

static inline void pair_itself(const pair_run *x) {
  uint64_t sum = 0, n = x->to_and_fro;
  double start = bench_now();
  for (uint64_t i = 1; i <= n; i++) {
    pair_send(x, i);
    sum += pair_receive(x);
  }
  if (n) bench_say("us", (bench_now() - start) / (double)n * 1e6);
  bench_expect("the sum", sum, pair_sum(n));
  /* A burst must fit into the queue, since no other side receives. */
  const uint64_t burst = x->size > 16 * 1024 ? 2 : PAIR_BURST;
  n = x->one_way / burst * burst;
  sum = 0;
  start = bench_now();
  for (uint64_t i = 0; i < n; i += burst) {
    for (uint64_t k = 1; k <= burst; k++) pair_send(x, i + k);
    for (uint64_t k = 0; k < burst; k++) sum += pair_receive(x);
  }
  if (n) bench_say("mb_per_s", (double)(n * x->size) / (bench_now() - start) * 1e-6);
  bench_expect("the sum", sum, pair_sum(n));
}

static inline void pair_many_send(const pair_run *x) {
  for (uint64_t i = 1; i <= x->one_way; i++) pair_send(x, i);
}
static inline void pair_many_receive(const pair_run *x) {
  uint64_t sum = 0, n = x->one_way * (uint64_t)x->senders;
  double start = bench_now();
  for (uint64_t i = 0; i < n; i++) sum += pair_receive(x);
  bench_say("messages_per_s", (double)n / (bench_now() - start));
  bench_expect("the sum", sum, pair_sum(x->one_way) * (uint64_t)x->senders);
}

static void *pair_side(void *argument) {
  const pair_run *x = (const pair_run *)argument;
  x->carrier->begin(x->side, x->other, x->size);
  /* The first message of each sender, which opens its connection, is not measured. */
  if (x->senders && x->side) pair_send(x, 0);
  for (int i = 0; i < x->senders && !x->side; i++) pair_receive(x);
  pthread_barrier_wait(&x->meeting->begun);
  if (x->senders)
    (x->side ? pair_many_send : pair_many_receive)(x);
  else if (x->side == x->other)
    pair_itself(x);
  else
    (x->side ? pair_second : pair_first)(x);
  pthread_barrier_wait(&x->meeting->ended);
  if (x->carrier->end) x->carrier->end(x->side);
  return NULL;
}

/* `where` is processes, threads, itself, or the number of senders to one receiver. */
static inline int pair_main(const pair_carrier *carrier, const char *where, size_t size,
                            uint64_t to_and_fro, uint64_t one_way) {
  pair_run x = {carrier, size, to_and_fro, one_way, 0, NULL, 0, 1}, y;
  size_t whole = sizeof *x.meeting > 4096 ? sizeof *x.meeting : 4096;
  unsigned char *shared = (unsigned char *)mmap(
      NULL, whole + carrier->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pair_must(shared != MAP_FAILED, "mmap");
  if (size < 8 || size > PAIR_BYTES_MAX) {
    fprintf(stderr, "a size is from 8 to %d bytes\n", PAIR_BYTES_MAX);
    return 2;
  }
  x.meeting = (pair_meeting *)(void *)shared;
  if (carrier->make) carrier->make(shared + whole);
  int first = bench_core(0), second = bench_core(strcmp(where, "itself") == 0 ? 0 : 1);
  alarm(100);
  if (strcmp(where, "itself") == 0) {
    x.other = 0;
    pair_meeting_make(x.meeting, 1);
    bench_pin(first);
    pair_side(&x);
  } else if (strcmp(where, "threads") == 0) {
    pthread_t thread;
    pair_meeting_make(x.meeting, 2);
    y = x;
    y.side = 1;
    y.other = 0;
    bench_pin(second); /* the new thread's, too */
    pair_must(pthread_create(&thread, NULL, pair_side, &y) == 0, "pthread_create");
    bench_pin(first);
    pair_side(&x);
    pthread_join(thread, NULL);
  } else {
    int n = strcmp(where, "processes") == 0 ? 1 : atoi(where), how, well = 1;
    if (strcmp(where, "processes") != 0) x.senders = n;
    if (n < 1 || n >= PAIR_SIDES) {
      fprintf(stderr, "WHERE is processes, threads, itself, or a number up to %d\n",
              PAIR_SIDES - 1);
      return 2;
    }
    pair_meeting_make(x.meeting, 1 + (unsigned)n);
    for (int i = 1; i <= n; i++) {
      pid_t id = fork();
      pair_must(id >= 0, "fork");
      if (id) continue;
      alarm(100);
      x.side = i;
      x.other = 0;
      if (n == 1) bench_pin(second);
      cpu_set_t set;
      if (n > 1 && sched_getaffinity(0, sizeof set, &set) == 0) {
        CPU_CLR(first, &set);
        sched_setaffinity(0, sizeof set, &set);
      }
      pair_side(&x);
      exit(0);
    }
    x.other = 1;
    bench_pin(first);
    pair_side(&x);
    while (wait(&how) > 0) well &= how == 0;
    if (!well) fprintf(stderr, "another side has failed\n");
    return !well;
  }
  return 0;
}

#endif
