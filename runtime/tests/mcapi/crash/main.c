/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Death after every store. A victim goes through the whole life of a node, and is killed at its
 * n-th store to shared memory, for each n. A survivor in its domain, which communicates with it all
 * the time, must get an error or proceed, find all invariants of the tables, receive what was sent
 * before, complete and in order, and recover all resources of the victim. The next victim starts in
 * what is left.
 *
 *   levada_crash LIFE [STEP [FIRST]]
 *       kills at every STEP-th store, from FIRST on; LIFE: store (messages and packet channels),
 *       third, scalars, loans, hears, broadcasts
 *   levada_crash alone [STEP [FIRST]]
 *       the same without a survivor: other processes start in what is left
 *   levada_crash random ROUNDS
 *       kills at random times, from outside */
#include "life.h"
#include "mcapi/domain/domain.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

mcapi_domain_t number;
mcapi_status_t s;
size_t size;
long round_number;
progress *seen;

double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
void nap(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

/* ---- the victim ------------------------------------------------------------------------------ */

_Thread_local bool counted;
static long deadly; /* 0: never */

/* Memory below the end of the heap is private. */
void lvd_crash_point(const volatile void *at) {
  if (!counted || (uintptr_t)at < (uintptr_t)sbrk(0)) return;
  if (++seen->points == deadly) kill(getpid(), SIGKILL);
}

void at(const char *where) { snprintf((char *)seen->where, sizeof seen->where, "%s", where); }

void fill(unsigned char *to, size_t n, long seed) {
  for (size_t i = 0; i < n; i++) to[i] = (unsigned char)(seed * 31 + (long)i * 7);
}
bool is_filled(const unsigned char *from, size_t n, long seed) {
  for (size_t i = 0; i < n; i++)
    if (from[i] != (unsigned char)(seed * 31 + (long)i * 7)) return false;
  return true;
}
size_t size_of(long i) { return i % 2 ? BIG : 24; }

mcapi_endpoint_t make(mcapi_port_t port) {
  mcapi_timeout_t limit = 5000;
  mcapi_endpoint_t e = mcapi_endpoint_create(port, &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_endpoint_set_attribute(e, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  SAYS(MCAPI_SUCCESS);
  return e;
}

void begin(mcapi_node_t node) {
  mcapi_info_t info;
  mcapi_initialize(number, node, NULL, NULL, &info, &s);
  SAYS(MCAPI_SUCCESS);
}

void finish(mcapi_request_t *r) {
  mcapi_wait(r, &size, 5000, &s);
  SAYS(MCAPI_SUCCESS);
}

mcapi_endpoint_t get(mcapi_node_t node, mcapi_port_t port) {
  mcapi_endpoint_t e = mcapi_endpoint_get(number, node, port, 5000, &s);
  SAYS(MCAPI_SUCCESS);
  return e;
}
void end_life(void) {
  at("finalize");
  mcapi_finalize(&s);
  SAYS(MCAPI_SUCCESS);
  counted = false;
  seen->ended = 1;
}

static pid_t start(void (*body)(void), long at_store) {
  *seen = (progress){0};
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  deadly = at_store;
  body();
  _exit(0);
}

/* ---- the survivor ---------------------------------------------------------------------------- */

static mc_tables *tables; /* its descriptor stays open: closing it would release the file lock */

static void see_tables(void) {
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), number);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  tables = mmap(NULL, sizeof *tables, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(tables != MAP_FAILED);
}

static bool is_gone(void) {
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    uint32_t id = lvd_load_relaxed_u32(&tables->process[i].pid);
    if (lvd_load_acquire_u32(&tables->process[i].serial) && id != (uint32_t)getpid()) return false;
  }
  return true;
}

/* The survivor is the only member of the domain. */
static void check_tables(void) {
  uint32_t us = UINT32_MAX, endpoints = 0, nodes = 0;
  for (uint32_t i = 0; i < MC_PROCESSES; i++)
    if (lvd_load_acquire_u32(&tables->process[i].serial)) us = i;
  CHECK(us < MC_PROCESSES);
  for (uint32_t i = 0; i < MC_NODES; i++) {
    uint32_t owner = lvd_load_acquire_u32(&tables->node[i].owner);
    CHECK(owner == 0 || owner == 1 + us);
    nodes += owner != 0;
  }
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    const mc_endpoint *e = &tables->endpoint[i];
    uint32_t owner = lvd_load_acquire_u32(&e->owner), handle = lvd_load_acquire_u32(&e->handle);
    CHECK(owner == 0 || owner == 1 + us);
    CHECK(!handle == !owner);
    CHECK(handle == 0 || handle % MC_ENDPOINTS == i);
    endpoints += owner != 0;
  }
  CHECK(nodes == 1);
  CHECK(endpoints == 3);
}

void put_away(mcapi_endpoint_t endpoint) {
  mcapi_uint_t status;
  mcapi_endpoint_get_attribute(endpoint, MCAPI_ENDP_ATTR_ENDP_STATUS, &status, sizeof status, &s);
  SAYS(MCAPI_SUCCESS);
  CHECK(status == 0);
  mcapi_endpoint_delete(endpoint, &s);
  SAYS(MCAPI_SUCCESS);
}

static double longest;

static void wait_until_gone(double died) {
  while (!is_gone()) {
    CHECK(seconds() - died < LIMIT_MS * 1e-3);
    nap(50000);
  }
  double took = seconds() - died;
  if (took > longest) longest = took;
}

/* Runs one victim; true: it has completed its life. */
static bool one(const life *l, long at_store, long kill_after_ns) {
  int how;
  l->before();
  pid_t id = start(l->live, at_store);
  double begun = seconds();
  while (waitpid(id, &how, WNOHANG) == 0) {
    l->serve();
    CHECK(seconds() - begun < 20);
    if (kill_after_ns && seconds() - begun > (double)kill_after_ns * 1e-9) kill(id, SIGKILL);
  }
  double died = seconds();
  if (WIFEXITED(how) && WEXITSTATUS(how)) FAIL("the victim itself failed");
  CHECK(WIFEXITED(how) || WTERMSIG(how) == SIGKILL);
  wait_until_gone(died);
  l->after();
  check_tables();
  l->away();
  return seen->ended;
}

static void survive(void) {
  begin(SURVIVOR);
  make(MAIL);
  see_tables();
}

static int run_store(const life *l, long step, long first) {
  survive();
  long rounds = 0;
  for (round_number = first; !one(l, round_number, 0); round_number += step) rounds++;
  printf("%ld deaths, one at every %ld. of %ld stores; all told within %.1f ms\n", rounds, step,
         (long)seen->points, longest * 1e3);
  mcapi_finalize(&s);
  SAYS(MCAPI_SUCCESS);
  return 0;
}

static int run_random(long rounds) {
  uint64_t seed = 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
  long ended = 0;
  survive();
  one(&packets_life, 0, 0);
  double start_of = seconds();
  one(&packets_life, 0, 0);
  double whole = seconds() - start_of;
  for (round_number = 0; round_number < rounds; round_number++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    ended += one(&packets_life, 0, 1 + (long)((double)(seed % 1000) * 1.2e-3 * whole * 1e9));
  }
  printf("%ld killed at random, %ld came to their end first; all told within %.1f ms\n",
         rounds - ended, ended, longest * 1e3);
  mcapi_finalize(&s);
  SAYS(MCAPI_SUCCESS);
  return 0;
}

/* ---- without a survivor ---------------------------------------------------------------------- */

static void live_alone(void) {
  counted = true;
  at("initialize");
  begin(VICTIM);
  at("create");
  mcapi_endpoint_t a = make(MAIL), b = make(IN);
  at("send");
  unsigned char data[BIG];
  fill(data, BIG, 1);
  for (long i = 0; i < 3; i++) {
    mcapi_msg_send(a, b, data, size_of(i), 0, &s);
    SAYS(MCAPI_SUCCESS);
  }
  mcapi_msg_recv(b, data, sizeof data, &size, &s);
  SAYS(MCAPI_SUCCESS);
  end_life();
}

static int run_alone(long step, long first) {
  long rounds = 0;
  char path[96];
  struct stat st;
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), number);
  for (round_number = first;; round_number += step, rounds++) {
    int how;
    pid_t id = start(live_alone, round_number);
    CHECK(waitpid(id, &how, 0) == id);
    if (WIFEXITED(how) && WEXITSTATUS(how)) FAIL("the victim itself failed");
    bool ended = seen->ended;
    if (ended) break;
    id = start(live_alone, 0); /* the next process starts in what is left */
    CHECK(waitpid(id, &how, 0) == id);
    if (!WIFEXITED(how) || WEXITSTATUS(how)) FAIL("the next one failed");
    CHECK(stat(path, &st) != 0); /* and removes all of it */
  }
  printf("%ld deaths alone, one at every %ld. of %ld stores\n", rounds, step, (long)seen->points);
  return 0;
}

int main(int count, char **argument) {
  number = (mcapi_domain_t)getpid();
  seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const char *what = count > 1 ? argument[1] : "";
  long step = count > 2 ? atol(argument[2]) : 1, first = count > 3 ? atol(argument[3]) : 1;
  if (seen != MAP_FAILED && step > 0 && first > 0) {
    if (strcmp(what, packets_life.name) == 0) return run_store(&packets_life, step, first);
    for (const life *l = ends_lives; l->name; l++)
      if (strcmp(what, l->name) == 0) return run_store(l, step, first);
    if (strcmp(what, "alone") == 0) return run_alone(step, first);
    if (strcmp(what, "random") == 0) return run_random(step);
  }
  fprintf(stderr, "usage: levada_crash store|third|scalars|loans|hears|broadcasts|alone [STEP "
                  "[FIRST]] | random ROUNDS\n");
  return 2;
}
