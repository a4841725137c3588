/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Several domains: one is cleaned while messages pass through it; a file with another layout that
 * is in use; and many domains in one process, with numbers that differ only in high bits. */
#include "test_mcapi.h"

#include <levada/mcapi_observe.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static mcapi_status_t s;

static void tell(const int *pipe_) { CHECK_EQ(write(pipe_[1], "", 1), 1); }
static void await(const int *pipe_) {
  char c;
  CHECK_EQ(read(pipe_[0], &c, 1), 1);
}
static void ends_well(pid_t id) {
  int how;
  CHECK_EQ(waitpid(id, &how, 0), id);
  CHECK_EQ(how, 0);
}
static void *shared(size_t size) {
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  return p;
}

/* ---- cleaning during traffic ----------------------------------------------------------------- */

enum { CLEANINGS = SCALED(20), LARGE = 3000 };

static struct { atomic_uint rounds, stop; } * traffic;

static void fill(unsigned char *data, size_t n, uint32_t round) {
  for (size_t i = 0; i < n; i++) data[i] = (unsigned char)(round * 31 + i * 7);
}

/* Sends and checks round trips, until node 1 is told to end; then an empty message tells the
 * others. */
static void goes_round(mcapi_node_t me) {
  static unsigned char out[LARGE], in[LARGE];
  size_t size, n;
  node_is(me);
  mcapi_endpoint_t mine = endpoint_at(1), other = endpoint_of(3 - me, 1);
  for (uint32_t round = 1;; round++) {
    n = me == 1 && atomic_load(&traffic->stop) ? 0 : round % 2 ? LARGE : 24;
    fill(out, LARGE, round);
    if (me == 1) mcapi_msg_send(mine, other, out, n, 3, &s);
    if (me == 1) SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_recv(mine, in, sizeof in, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (me == 2) n = size ? n : 0;
    CHECK_EQ(size, n);
    CHECK(memcmp(in, out, n) == 0);
    if (me == 2) mcapi_msg_send(mine, other, in, n, 3, &s);
    if (me == 2) SAYS(s, MCAPI_SUCCESS);
    if (n == 0) break;
    if (me == 1) atomic_store(&traffic->rounds, round);
  }
  node_ends();
}

static pid_t started(mcapi_node_t node) {
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  alarm(120); /* ends it if the test is aborted */
  goes_round(node);
  _exit(0);
}

/* A node with an endpoint and a queued message; it is killed. */
static void lives_shortly(void) {
  int ready[2];
  CHECK_EQ(pipe(ready), 0);
  pid_t id = fork();
  CHECK(id >= 0);
  if (!id) {
    node_is(9);
    mcapi_endpoint_t e = endpoint_at(9);
    mcapi_msg_send(e, e, "x", 1, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    tell(ready);
    for (;;) pause();
  }
  await(ready);
  CHECK_EQ(kill(id, SIGKILL), 0);
  CHECK_EQ(waitpid(id, NULL, 0), id);
  close(ready[0]);
  close(ready[1]);
}

void test_mcapi_clean_in_use(void) {
  test_domain();
  traffic = shared(sizeof *traffic);
  pid_t one = started(1), two = started(2);
  while (atomic_load(&traffic->rounds) == 0) sleep_ms(1);
  for (int i = 0; i < CLEANINGS; i++) {
    lvd_mcapi_cleanup_result cleared;
    lvd_mcapi_domain_info seen;
    lives_shortly();
    CHECK_EQ(lvd_mcapi_domain_clean(test_domain(), &cleared), LVD_OK);
    CHECK(!cleared.gone);
    CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_OK);
    CHECK_EQ(seen.processes, 2);
    CHECK_EQ(seen.dead, 0);
    CHECK_EQ(seen.node_count, 2);
    CHECK_EQ(seen.endpoint_count, 2);
    lvd_mcapi_domain_forget(&seen);
    /* The traffic continues. */
    unsigned now = atomic_load(&traffic->rounds);
    while (atomic_load(&traffic->rounds) < now + 2) sleep_ms(1);
  }
  atomic_store(&traffic->stop, 1);
  ends_well(one);
  ends_well(two);
}

/* ---- another layout -------------------------------------------------------------------------- */

/* The first words of the file: a magic number, and values that determine the layout. */
enum { LAYOUT = 1, SLOTS = 6, WORDS = 16 };

void test_mcapi_other_layout(void) {
  int ready[2], go[2];
  test_domain();
  CHECK(pipe(ready) == 0 && pipe(go) == 0);
  pid_t id = fork();
  CHECK(id >= 0);
  if (!id) {
    node_is(1);
    mcapi_endpoint_t e = endpoint_at(1);
    tell(ready);
    await(go);
    char in[4];
    size_t size;
    mcapi_msg_send(e, e, "own", 4, 0, &s); /* the file is not damaged */
    SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_recv(e, in, sizeof in, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK(size == 4 && strcmp(in, "own") == 0);
    node_ends();
    _exit(0);
  }
  await(ready);
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), test_domain());
  int fd = open(path, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  uint32_t *word = mmap(NULL, WORDS * sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(word != MAP_FAILED);
  close(fd);
  for (int i = LAYOUT; i <= SLOTS; i++)
    for (int by = -1; by <= 1; by += 2) {
      lvd_mcapi_domain_info seen;
      lvd_mcapi_cleanup_result cleared;
      word[i] += (uint32_t)by;
      CHECK_EQ(node_with(2, 0, ~0u), MCAPI_ERR_NODE_INITFAILED);
      CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_E_ABI);
      CHECK_EQ(lvd_mcapi_domain_clean(test_domain(), &cleared), LVD_E_ABI);
      CHECK_EQ(access(path, F_OK), 0);
      word[i] -= (uint32_t)by;
    }
  node_is(2); /* unchanged: joining succeeds */
  node_ends();
  tell(go);
  ends_well(id);
  CHECK(access(path, F_OK) != 0);
}

/* ---- separate domains ------------------------------------------------------------------------ */

enum { APART = 6 };
static pthread_barrier_t all;
static mcapi_endpoint_t at[APART];

static mcapi_domain_t domain_of(uintptr_t i) {
  static const uint32_t far[APART] = {0, 1u << 6, 1u << 8, 1u << 12, 1u << 16, 1u << 24};
  return test_domain() + far[i];
}

/* The same node, port and order of endpoints in each. */
static void *in_one(void *argument) {
  uintptr_t i = (uintptr_t)argument;
  mcapi_status_t status;
  mcapi_info_t info;
  char in[8], out[8] = "domain?";
  size_t size;
  out[6] = (char)('0' + i);
  mcapi_initialize(domain_of(i), 1, NULL, NULL, &info, &status);
  SAYS(status, MCAPI_SUCCESS);
  CHECK_EQ(mcapi_domain_id_get(&status), domain_of(i));
  at[i] = mcapi_endpoint_create(1, &status);
  SAYS(status, MCAPI_SUCCESS);
  pthread_barrier_wait(&all);
  mcapi_endpoint_t mine = mcapi_endpoint_get(domain_of(i), 1, 1, 0, &status);
  SAYS(status, MCAPI_SUCCESS);
  CHECK_EQ(mine, at[i]);
  mcapi_endpoint_get(domain_of((i + 1) % APART), 1, 1, 0, &status);
  SAYS(status, MCAPI_ERR_DOMAIN_INVALID);
  mcapi_msg_send(mine, mine, out, sizeof out, 0, &status);
  SAYS(status, MCAPI_SUCCESS);
  pthread_barrier_wait(&all);
  CHECK_EQ(mcapi_msg_available(mine, &status), 1);
  mcapi_msg_recv(mine, in, sizeof in, &size, &status);
  SAYS(status, MCAPI_SUCCESS);
  CHECK(size == sizeof out && memcmp(in, out, size) == 0);
  pthread_barrier_wait(&all);
  if (i % 2) pthread_barrier_wait(&all); /* half of them stay while the others leave */
  mcapi_finalize(&status);
  SAYS(status, MCAPI_SUCCESS);
  if (i % 2 == 0) pthread_barrier_wait(&all);
  return NULL;
}

void test_mcapi_domains_apart(void) {
  pthread_t thread[APART];
  test_domain(); /* determined before the threads need it */
  CHECK_EQ(pthread_barrier_init(&all, NULL, APART), 0);
  for (uintptr_t i = 0; i < APART; i++)
    CHECK_EQ(pthread_create(&thread[i], NULL, in_one, (void *)i), 0);
  for (int i = 0; i < APART; i++) pthread_join(thread[i], NULL);
  pthread_barrier_destroy(&all);
}
