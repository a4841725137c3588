/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures the lateness of periodic work in plain threads: each of four threads has a task due every millisecond,
 * with as much work as the network `late.Late` has for an element. Prints for each task how many ns after its due
 * time it was complete.
 *   late ELEMENTS */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, ELEMENTS_MAX = 100000, PERIOD_NS = 1000000, TURNS = 100000 };

struct one {
  pthread_t thread;
  uint32_t kept;
  int64_t late[ELEMENTS_MAX];
};

static int count;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *run(void *argument) {
  struct one *one = argument;
  int64_t due = now();
  for (int i = 0; i < count; i++) {
    due += PERIOD_NS;
    struct timespec t = {due / 1000000000, due % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
    for (int turn = 0; turn < TURNS; turn++) one->kept = one->kept * 1664525 + 1013904223;
    *(volatile uint32_t *)&one->kept = one->kept;
    one->late[i] = now() - due;
  }
  return NULL;
}

int main(int argc, char **argv) {
  static struct one all[THREADS];
  count = argc > 1 ? atoi(argv[1]) : 0;
  if (count < 1 || count > ELEMENTS_MAX) return 2;
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&all[i].thread, NULL, run, &all[i]) != 0) return 1;
  for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  for (int i = 0; i < THREADS; i++)
    for (int k = 0; k < count; k++) printf("%" PRId64 "\n", all[i].late[k]);
  return 0;
}
