/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Common functions of the measured programs: pinned threads, clocks, output of results.
 *
 * Each program makes one run and prints one figure per line, `name value`; the driver (../run)
 * repeats, interleaves and compares. A wrong result is printed to stderr and ends the program with
 * status 1. C17 and C++17. */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The `index`-th core that this program may use. */
static inline int bench_core(int index) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &set) && index-- == 0) return cpu;
  fprintf(stderr, "two cores are needed, and this program may not use two\n");
  exit(1);
}

static inline void bench_pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static inline double bench_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static inline double bench_now(void) { return bench_clock(CLOCK_MONOTONIC); }
static inline double bench_cpu(void) { return bench_clock(CLOCK_PROCESS_CPUTIME_ID); }

static inline void bench_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* The delay between two polls, the same for all contenders: a few pause instructions, so that the
 * waiting thread does not take the cache line away from the writer. */
static inline void bench_poll(void) {
  for (int i = 0; i < 16; i++) bench_relax();
}

/* CPU time in ns of one iteration of an empty loop: one cycle, or two while the other hardware thread of
 * the core is busy. */
static inline double bench_round(void) {
  enum { ROUNDS = 5000000 };
  double from = bench_clock(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < ROUNDS; i++) __asm__ volatile("");
  return (bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / ROUNDS * 1e9;
}

/* Runs two pinned threads that start at the same time: `first` on the first core, in the calling thread,
 * and `second` on the second core. Returns the seconds until both have ended. */
typedef struct bench_start {
  pthread_barrier_t barrier;
  int cpu;
  void *(*run)(void *);
  void *argument;
} bench_start;

static inline void *bench_second(void *argument) {
  bench_start *s = (bench_start *)argument;
  bench_pin(s->cpu);
  pthread_barrier_wait(&s->barrier);
  return s->run(s->argument);
}

static inline double bench_pair(void *(*first)(void *), void *(*second)(void *), void *argument) {
  bench_start s;
  pthread_t thread;
  int cpu = bench_core(0);
  s.cpu = bench_core(1);
  s.run = second;
  s.argument = argument;
  pthread_barrier_init(&s.barrier, NULL, 2);
  if (pthread_create(&thread, NULL, bench_second, &s) != 0) {
    perror("pthread_create");
    exit(1);
  }
  bench_pin(cpu);
  pthread_barrier_wait(&s.barrier);
  double start = bench_now();
  first(argument);
  pthread_join(thread, NULL);
  return bench_now() - start;
}

static inline uint64_t bench_number(int argc, char **argv, int index, const char *usage) {
  char *end;
  if (index < argc) {
    uint64_t n = strtoull(argv[index], &end, 10);
    if (*argv[index] && !*end) return n;
  }
  fprintf(stderr, "usage: %s %s\n", argv[0], usage);
  exit(2);
}

static inline void bench_expect(const char *what, uint64_t got, uint64_t expected) {
  if (got == expected) return;
  fprintf(stderr, "wrong result: %s is %llu, not %llu\n", what, (unsigned long long)got,
          (unsigned long long)expected);
  exit(1);
}

static inline void bench_say(const char *name, double value) { printf("%s %.9g\n", name, value); }

#endif
