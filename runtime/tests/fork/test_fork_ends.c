/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs that fork, and how they end: by exit from any point, after fork(2), in exit handlers.
 * Each is a child process of the test. Also how deep their stacks grow. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/test.h"

static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}
static void spin_ns(uint64_t ns) {
  uint64_t until = now_ns() + ns;
  while (now_ns() < until) {
  }
}

/* The program's status; its limit is five minutes. */
static int status_of(void (*program)(void)) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    lvd_fork_workers(3);
    program();
    exit(0);
  }
  for (uint64_t start = now_ns();; sleep_ms(1)) {
    int status;
    pid_t ended = waitpid(child, &status, WNOHANG);
    CHECK(ended >= 0);
    if (ended) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    if (now_ns() - start < 300000000000u) continue;
    kill(child, SIGKILL);
    CHECK(!"it ends");
  }
}

static void forks(void) { CHECK_EQ(fib(20), 6765); }

#ifdef __SANITIZE_ADDRESS__
#define SKIP_LEAKS()                                                                               \
  SKIP("the leak checker reports the memory of a program that exits with open forks")
#else
#define SKIP_LEAKS()
#endif

/* ---- exit ---------------------------------------------------------------------------------- */

static pid_t main_thread;
static void leave_taken(int n) {
  spin_ns(1000);
  if (gettid() != main_thread) exit(n);
}
LVD_FORKABLE_VOID(leave_taken, int)
static void exit_in_taken(void) {
  main_thread = gettid();
  for (;;) {
    LVD_FORK(f, leave_taken, 3);
    spin_ns(100000);
    LVD_JOIN(f, leave_taken);
  }
}
static void exit_in_block(void) {
  LVD_FORK(f, fib, 25);
  LVD_FORK(g, fib, 25);
  spin_ns(100000);
  exit(4);
  LVD_JOIN(g, fib);
  LVD_JOIN(f, fib);
}
static void *forking_thread(void *unused) {
  forks();
  return unused;
}
static void in_threads(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, forking_thread, NULL), 0);
  for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}
static void *exits(void *unused) {
  forks();
  exit(5);
  return unused;
}
static void exit_in_thread(void) {
  pthread_t t;
  forks();
  CHECK_EQ(pthread_create(&t, NULL, exits, NULL), 0);
  pause();
}
static void at_exit(void) {
  atexit(forks); /* after the runtime has ended */
  forks();
  atexit(forks); /* before */
}
static void first_at_exit(void) { atexit(forks); }

/* Other threads are in the middle of work, and stay there. */
static int endless(int n) {
  for (;;) spin_ns(1000000);
  return n;
}
LVD_FORKABLE(int, endless, int)
static lvd_a32 busy;
static void *never_ends(void *unused) {
  LVD_FORK(f, endless, 1);
  LVD_FORK(g, fib, 20); /* publishes the other one */
  lvd_store_relaxed_u32(&busy, 1);
  for (;;) CHECK_EQ(fib(15), 610);
  LVD_JOIN(g, fib);
  LVD_JOIN(f, endless);
  return unused;
}
static void busy_thread(void) {
  pthread_t t;
  forks();
  CHECK_EQ(pthread_create(&t, NULL, never_ends, NULL), 0);
  while (!lvd_load_relaxed_u32(&busy)) spin_ns(1000);
  spin_ns(1000000);
  forks();
}
static void exit_while_busy(void) {
  busy_thread();
  exit(6);
}
static void quick_exit_while_busy(void) {
  at_quick_exit(forks);
  busy_thread();
  quick_exit(7);
}
static void end_at_once(void) {
  busy_thread();
  _exit(8);
}
static void abort_in_taken(void) {
  signal(SIGABRT, SIG_DFL);
  busy_thread();
  abort();
}

/* The program ends when its last thread does, whichever that is. */
static void last_thread(void) {
  forks();
  pthread_exit(NULL);
}
static void *ends_later(void *forks_too) {
  sleep_ms(30);
  if (forks_too) forks();
  return NULL;
}
static void outlives_main(void *forks_too) {
  pthread_t t;
  CHECK_EQ(pthread_create(&t, NULL, ends_later, forks_too), 0);
  CHECK_EQ(pthread_detach(t), 0);
}
static void main_forks_first(void) {
  forks();
  outlives_main(NULL);
  pthread_exit(NULL);
}
static void both_fork(void) {
  forks();
  outlives_main("");
  pthread_exit(NULL);
}
static void main_never_forks(void) {
  outlives_main("");
  pthread_exit(NULL);
}
static void exits_last(void) { _exit(9); }
static void last_thread_at_exit(void) {
  atexit(exits_last);
  last_thread();
}

void test_fork_exit(void) {
  SKIP_LEAKS();
  for (uint64_t i = 0; i < SCALED(20) + 1; i++) {
    CHECK_EQ(status_of(forks), 0);
    CHECK_EQ(status_of(exit_in_taken), 3);
    CHECK_EQ(status_of(exit_in_block), 4);
    CHECK_EQ(status_of(in_threads), 0);
    CHECK_EQ(status_of(exit_in_thread), 5);
    CHECK_EQ(status_of(at_exit), 0);
    CHECK_EQ(status_of(first_at_exit), 0);
  }
}

void test_fork_exit_busy(void) {
  SKIP_LEAKS();
  for (uint64_t i = 0; i < SCALED(20) + 1; i++) {
    CHECK_EQ(status_of(busy_thread), 0);
    CHECK_EQ(status_of(exit_while_busy), 6);
    CHECK_EQ(status_of(quick_exit_while_busy), 7);
    CHECK_EQ(status_of(end_at_once), 8);
    CHECK_EQ(status_of(abort_in_taken), 1000 + SIGABRT);
  }
}

void test_fork_last_thread(void) {
  SKIP_LEAKS();
#if defined(__SANITIZE_THREAD__) || defined(LVD_EMULATED)
  SKIP("the sanitizer, or the emulator, has threads of its own");
#endif
  for (uint64_t i = 0; i < SCALED(20) + 1; i++) {
    CHECK_EQ(status_of(last_thread), 0);
    CHECK_EQ(status_of(main_forks_first), 0);
    CHECK_EQ(status_of(both_fork), 0);
    CHECK_EQ(status_of(main_never_forks), 0);
    CHECK_EQ(status_of(last_thread_at_exit), 9);
  }
}

/* ---- threads that end where they must not ---------------------------------------------------- */

static void *ends_in_block(void *unused) {
  LVD_FORK(f, fib, 20);
  pthread_exit(NULL);
  LVD_JOIN(f, fib);
  return unused;
}
static void thread_ends_in_block(void) {
  pthread_t t;
  CHECK_EQ(pthread_create(&t, NULL, ends_in_block, NULL), 0);
  CHECK_EQ(pthread_join(t, NULL), 0);
}
static void leave_thread(int unused) {
  (void)unused;
  spin_ns(1000);
  if (gettid() != main_thread) pthread_exit(NULL);
}
LVD_FORKABLE_VOID(leave_thread, int)
__attribute__((unused)) static void worker_ends(void) {
  main_thread = gettid();
  for (;;) {
    LVD_FORK(f, leave_thread, 0);
    spin_ns(100000);
    LVD_JOIN(f, leave_thread);
  }
}

/* It ends as expected, with a message that says why. */
static void check_last_words(void (*program)(void), const char *words) {
  FILE *file = tmpfile();
  CHECK(file);
  int standard = dup(STDERR_FILENO);
  CHECK(standard >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
  int status = status_of(program);
  CHECK(dup2(standard, STDERR_FILENO) >= 0);
  close(standard);
  char said[4096] = "";
  rewind(file);
  size_t size = fread(said, 1, sizeof said - 1, file);
  fprintf(stderr, "%.*s", (int)size, said);
  CHECK_EQ(status, 1000 + SIGABRT);
  CHECK(strstr(said, words));
  fclose(file);
}

void test_fork_thread_ends(void) {
  SKIP_LEAKS();
  signal(SIGABRT, SIG_DFL);
  check_last_words(thread_ends_in_block, "levada: a thread ended with open forks");
#if !defined(__SANITIZE_THREAD__) && !defined(LVD_EMULATED)
  check_last_words(worker_ends, "levada: a thread of the runtime was ended");
#endif
}

/* ---- a library that is closed ---------------------------------------------------------------- */

#ifdef LEVADA_PLUGIN
static int (*plugin_fib)(int);
static void *forks_in_plugin(void *for_long) {
  CHECK_EQ(plugin_fib(18), 2584);
  if (for_long) sleep_ms(50); /* it ends when the library is closed */
  return NULL;
}
/* A library with a runtime of its own, and threads that have forked there. */
static void close_plugin(void) {
  for (int i = 0; i < 3; i++) {
    void *plugin = dlopen(LEVADA_PLUGIN, RTLD_NOW);
    if (!plugin) fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin);
    CHECK(!dlerror());
    plugin_fib = (int (*)(int))(uintptr_t)dlsym(plugin, "plugin_fib");
    pthread_t t, lives;
    CHECK_EQ(pthread_create(&t, NULL, forks_in_plugin, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(pthread_create(&lives, NULL, forks_in_plugin, ""), 0);
    CHECK_EQ(plugin_fib(20), 6765);
    forks(); /* in the program's own */
    sleep_ms(20);
    CHECK_EQ(dlclose(plugin), 0);
    CHECK_EQ(pthread_join(lives, NULL), 0);
  }
#ifndef __SANITIZE_THREAD__ /* it does not support threads after fork(2) */
  CHECK_EQ(status_of(forks), 0);
#endif
}
static void close_plugin_and_exit(void) {
  close_plugin();
  exit(3);
}
#endif

void test_fork_plugin(void) {
#ifndef LEVADA_PLUGIN
  SKIP("built without one");
#else
  SKIP_LEAKS();
  CHECK_EQ(status_of(close_plugin), 0);
  CHECK_EQ(status_of(close_plugin_and_exit), 3);
#endif
}

/* ---- the system's fork ----------------------------------------------------------------------- */

static void fork_in_between(void) {
  forks();
  for (int i = 0; i < 5; i++) {
    CHECK_EQ(status_of(forks), 0); /* it has only the workers that it starts itself */
    forks();
  }
}
/* All threads that fork are told, and none of them exists here. */
static void cancels(void) {
  lvd_cancel_scope scope;
  lvd_cancel_begin(&scope);
  lvd_cancel(&scope);
  lvd_cancel_end(&scope);
}
/* While other threads fork: so locks may be held at the time. */
static lvd_a32 enough;
static void *forks_on(void *unused) {
  while (!lvd_load_relaxed_u32(&enough)) forks();
  return unused;
}
static void fork_meanwhile(void) {
  pthread_t t[2];
  forks();
  for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, forks_on, NULL), 0);
  for (int i = 0; i < 20; i++) CHECK_EQ(status_of(forks), 0);
  for (int i = 0; i < 300; i++) CHECK_EQ(status_of(cancels), 0);
  lvd_store_relaxed_u32(&enough, 1);
  for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* While its workers start, which may hold locks of the C library. */
static void fork_at_once(void) {
  forks();
  CHECK_EQ(status_of(forks), 0);
}

void test_fork_system_fork(void) {
  SKIP_LEAKS();
#ifdef LVD_EMULATED
  SKIP("the emulator does not support fork(2) with threads");
#endif
#ifdef __SANITIZE_THREAD__
  SKIP("the sanitizer does not support threads after fork(2)");
#endif
  for (int i = 0; i < 100; i++) CHECK_EQ(status_of(fork_at_once), 0);
  CHECK_EQ(status_of(fork_in_between), 0);
  CHECK_EQ(status_of(fork_meanwhile), 0);
}

/* ---- depth ----------------------------------------------------------------------------------- */

static long one(long n) { return n; }
LVD_FORKABLE(long, one, long)
/* The number of open forks equals the depth. */
static __attribute__((noinline)) long chain(long n) {
  if (n == 0) return 0;
  LVD_FORK(f, one, 1);
  long rest = chain(n - 1);
  return LVD_JOIN(f, one) + rest;
}

/* A tree of forks, each node with a frame of some kilobytes; an owner that waits runs other parts
 * of the tree on its stack, which grows no deeper for that. */
static unsigned char *high, *low;
static void see(unsigned char *here) {
  if (here < high && here > high - ((size_t)400 << 20) && here < low) low = here;
}
static int lean(int depth, uint32_t seed);
LVD_FORKABLE(int, lean, int, uint32_t)
static __attribute__((noinline)) int lean(int depth, uint32_t seed) {
  unsigned char frame[2048];
  *(volatile unsigned char *)frame = 0;
  see(frame);
  if (depth <= 0) return 1;
  seed = seed * 1664525u + 1013904223u;
  LVD_FORK(f, lean, depth - 1 - (int)(seed >> 16) % 40, seed + 1);
  int rest = lean(depth - 1 - (int)(seed >> 24) % 40, seed);
  return LVD_JOIN(f, lean) + rest;
}
static int lean_alone(int depth, uint32_t seed, int *levels) {
  int below[2] = {0, 0};
  *levels = 1;
  if (depth <= 0) return 1;
  seed = seed * 1664525u + 1013904223u;
  int n = lean_alone(depth - 1 - (int)(seed >> 16) % 40, seed + 1, &below[0]) +
          lean_alone(depth - 1 - (int)(seed >> 24) % 40, seed, &below[1]);
  *levels += below[below[0] < below[1]];
  return n;
}

static void *deep_thread(void *unused) {
  unsigned char here;
  long n = 1000000;
  CHECK_EQ(chain(n), n);
  size_t most = 0;
  for (uint32_t i = 0; i < 200; i++) {
    int levels, leaves = lean_alone(200, i, &levels);
    high = low = &here;
    CHECK_EQ(lean(200, i), leaves);
    size_t deep = (size_t)(high - low);
    CHECK(deep < (size_t)levels * (2048 + 512) + 16384);
    if (deep > most) most = deep;
  }
  printf("%zu KiB deep\n", most / 1024);
  return unused;
}

void test_fork_depth(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("frames are larger with a sanitizer");
#endif
  pthread_t t;
  pthread_attr_t large;
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  CHECK_EQ(pthread_attr_init(&large), 0);
  CHECK_EQ(pthread_attr_setstacksize(&large, (size_t)512 << 20), 0);
  CHECK_EQ(pthread_create(&t, &large, deep_thread, NULL), 0);
  CHECK_EQ(pthread_join(t, NULL), 0);
  lvd_fork_counters c;
  lvd_fork_counters_read(&c);
  CHECK(c.full > 0);
}
