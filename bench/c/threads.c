/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The measurements of stream.c with threads: `create N` creates and joins N threads, `trip FAR N` makes N
 * round trips with a mutex and a condition variable between two threads, on one core or two, `threads N`
 * measures the memory of N waiting threads. */
#include "bench.h"

#include <unistd.h>

static uint64_t count, turn;
static double took;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Takes every second turn. */
static void *take_turns(void *second) {
  double from = bench_now();
  pthread_mutex_lock(&lock);
  for (uint64_t i = 0; i < count; i++) {
    while (turn % 2 != (second != NULL)) pthread_cond_wait(&changed, &lock);
    turn++;
    pthread_cond_signal(&changed);
  }
  pthread_mutex_unlock(&lock);
  took = bench_now() - from;
  return NULL;
}
static void *take_first(void *unused) {
  (void)unused;
  return take_turns(NULL);
}
static void *take_second(void *unused) {
  (void)unused;
  return take_turns(&turn);
}

static void *nothing(void *sum) {
  ++*(uint64_t *)sum;
  return NULL;
}

static void *wait_for_end(void *unused) {
  pthread_mutex_lock(&lock);
  turn++;
  pthread_cond_broadcast(&changed);
  while (turn <= count) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return unused;
}

static void thread(pthread_t *t, const pthread_attr_t *attributes, void *(*body)(void *), void *x) {
  if (pthread_create(t, attributes, body, x) == 0) return;
  perror("pthread_create");
  exit(1);
}

static double resident(void) {
  unsigned long all, own;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%lu %lu", &all, &own) != 2) exit(1);
  fclose(f);
  return (double)own * (double)sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv) {
  static const char usage[] = "create N | trip FAR N | threads N";
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "create")) {
    count = bench_number(argc, argv, 2, usage);
    uint64_t sum = 0;
    bench_pin(bench_core(0));
    double from = bench_now();
    for (uint64_t i = 0; i < count; i++) {
      pthread_t t;
      thread(&t, NULL, nothing, &sum);
      pthread_join(t, NULL);
    }
    took = bench_now() - from;
    bench_expect("the number of threads", sum, count);
  } else if (!strcmp(mode, "trip")) {
    uint64_t far = bench_number(argc, argv, 2, usage);
    count = bench_number(argc, argv, 3, usage);
    if (far) {
      took = bench_pair(take_first, take_second, NULL);
    } else {
      bench_pin(bench_core(0));
      pthread_t t;
      thread(&t, NULL, take_second, NULL);
      take_first(NULL);
      pthread_join(t, NULL);
    }
    bench_expect("the number of turns", turn, 2 * count);
  } else if (!strcmp(mode, "threads")) {
    count = bench_number(argc, argv, 2, usage);
    pthread_t *t = (pthread_t *)calloc(count, sizeof *t);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    double before = resident();
    for (uint64_t i = 0; i < count; i++) thread(&t[i], &small, wait_for_end, NULL);
    pthread_mutex_lock(&lock);
    while (turn < count) pthread_cond_wait(&changed, &lock);
    bench_say("bytes_each", (resident() - before) / (double)count);
    turn++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (uint64_t i = 0; i < count; i++) pthread_join(t[i], NULL);
    return 0;
  } else {
    bench_number(0, argv, 1, usage);
  }
  bench_say("ns", took / (double)count * 1e9);
  return 0;
}
