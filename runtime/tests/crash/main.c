/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Death after every store. A victim goes through all of a node's life, and is killed at its n-th store
 * to shared memory, for each n; a survivor of its domain, which talks to it all the time, must be told
 * or go on, find all invariants of the tables, get what was sent before, whole and in order, and
 * everything back that the victim had; and the next victim lives in what is left.
 *
 *   levada_crash store [STEP [FIRST]]   every STEP-th store, from FIRST on
 *   levada_crash alone [STEP [FIRST]]   the same with nobody who survives: others start in what is left
 *   levada_crash random ROUNDS          at any time, from outside */
#include "mcapi/domain.h"

#include <fcntl.h>
#include <mcapi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 5, PACKETS = 5, BIG = 3000, SURVIVOR = 1, VICTIM = 2, LIMIT_MS = 2000 };
/* Ports of the survivor: messages, packets to it, packets from it. The victim's are the same. */
enum { MAIL = 1, IN = 2, OUT = 3 };

static mcapi_domain_t number;
static mcapi_status_t s;
static size_t size;
static long round_number;

/* Seen by both: how far the victim has got. */
typedef struct progress {
  volatile long points, messages, packets;
  volatile int ended; /* its last call has returned */
  volatile char where[32];
} progress;
static progress *seen;

#define FAIL(...)                                                                                  \
  do {                                                                                             \
    fprintf(stderr, "%s:%d: store %ld (%s): ", __FILE__, __LINE__, round_number,                   \
            (const char *)seen->where);                                                            \
    fprintf(stderr, __VA_ARGS__);                                                                  \
    fputc('\n', stderr);                                                                           \
    exit(1);                                                                                       \
  } while (0)
#define CHECK(x)                                                                                   \
  do {                                                                                             \
    if (!(x)) FAIL("not so: %s", #x);                                                              \
  } while (0)
#define SAYS(expected)                                                                             \
  do {                                                                                             \
    char text_[64];                                                                                \
    if (s != (expected))                                                                           \
      FAIL("%s, not %s", mcapi_display_status(s, text_, sizeof text_), #expected);                 \
  } while (0)

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void nap(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

/* ---- the victim ----------------------------------------------------------------------------- */

static _Thread_local bool counted;
static long deadly; /* 0: never */

/* Below the end of the heap nobody else sees it. */
void lvd_crash_point(const volatile void *at) {
  if (!counted || (uintptr_t)at < (uintptr_t)sbrk(0)) return;
  if (++seen->points == deadly) kill(getpid(), SIGKILL);
}

static void at(const char *where) {
  snprintf((char *)seen->where, sizeof seen->where, "%s", where);
}

static void fill(unsigned char *to, size_t n, long seed) {
  for (size_t i = 0; i < n; i++) to[i] = (unsigned char)(seed * 31 + (long)i * 7);
}
static bool is_filled(const unsigned char *from, size_t n, long seed) {
  for (size_t i = 0; i < n; i++)
    if (from[i] != (unsigned char)(seed * 31 + (long)i * 7)) return false;
  return true;
}
static size_t size_of(long i) { return i % 2 ? BIG : 24; }

static mcapi_endpoint_t make(mcapi_port_t port) {
  mcapi_timeout_t limit = 5000;
  mcapi_endpoint_t e = mcapi_endpoint_create(port, &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_endpoint_set_attribute(e, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  SAYS(MCAPI_SUCCESS);
  return e;
}

static void begin(mcapi_node_t node) {
  mcapi_info_t info;
  mcapi_initialize(number, node, NULL, NULL, &info, &s);
  SAYS(MCAPI_SUCCESS);
}

static void finish(mcapi_request_t *r) {
  mcapi_wait(r, &size, 5000, &s);
  SAYS(MCAPI_SUCCESS);
}

/* All of a node's life, with the survivor's help. */
static void live(void) {
  unsigned char data[BIG];
  mcapi_request_t r[4];
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  counted = true;
  at("initialize");
  begin(VICTIM);
  at("create");
  mcapi_endpoint_t mail = make(MAIL), mine_in = make(IN), mine_out = make(OUT);
  at("get");
  mcapi_endpoint_t to = mcapi_endpoint_get(number, SURVIVOR, MAIL, 5000, &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_endpoint_t their_in = mcapi_endpoint_get(number, SURVIVOR, IN, 5000, &s);
  mcapi_endpoint_t their_out = mcapi_endpoint_get(number, SURVIVOR, OUT, 5000, &s);
  SAYS(MCAPI_SUCCESS);
  at("send");
  for (long i = 0; i < MESSAGES; i++) {
    fill(data, size_of(i), i);
    mcapi_msg_send(mail, to, data, size_of(i), (mcapi_priority_t)3, &s);
    SAYS(MCAPI_SUCCESS);
    seen->messages = i + 1;
  }
  at("receive");
  for (long i = 0; i < 3; i++) { /* the others lie there when it ends */
    mcapi_msg_recv(mail, data, sizeof data, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(i) && is_filled(data, size, i));
  }
  at("connect");
  mcapi_pktchan_connect_i(mine_out, their_in, &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_pktchan_connect_i(their_out, mine_in, &r[1], &s);
  SAYS(MCAPI_SUCCESS);
  at("open");
  mcapi_pktchan_send_open_i(&out, mine_out, &r[2], &s);
  mcapi_pktchan_recv_open_i(&in, mine_in, &r[3], &s);
  for (int i = 0; i < 4; i++) finish(&r[i]);
  at("packets out");
  for (long i = 0; i < PACKETS; i++) {
    fill(data, size_of(i), i);
    mcapi_pktchan_send(out, data, size_of(i), &s);
    SAYS(MCAPI_SUCCESS);
    seen->packets = i + 1;
  }
  at("packets in");
  for (long i = 0; i < 3; i++) {
    void *packet;
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(i) && is_filled(packet, size, i));
    mcapi_pktchan_release(packet, &s);
    SAYS(MCAPI_SUCCESS);
  }
  at("close");
  mcapi_pktchan_send_close_i(out, &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_pktchan_recv_close_i(in, &r[1], &s);
  SAYS(MCAPI_SUCCESS);
  at("delete");
  mcapi_endpoint_delete(mine_in, &s);
  SAYS(MCAPI_SUCCESS);
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

/* ---- the survivor --------------------------------------------------------------------------- */

static struct {
  mcapi_endpoint_t mail, in, out;
  mcapi_pktchan_recv_hndl_t receive;
  mcapi_pktchan_send_hndl_t send;
  mcapi_request_t opened[2];
  bool is_open[2];
  long messages, packets, sent, posted;
} mine;
static mc_tables *tables; /* the descriptor stays open: to close it costs our lock */

static void see_tables(void) {
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), number);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  tables = mmap(NULL, sizeof *tables, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(tables != MAP_FAILED);
}

static void open_ends(void) {
  mine.in = make(IN);
  mine.out = make(OUT);
  mcapi_pktchan_recv_open_i(&mine.receive, mine.in, &mine.opened[0], &s);
  SAYS(MCAPI_PENDING);
  mcapi_pktchan_send_open_i(&mine.send, mine.out, &mine.opened[1], &s);
  SAYS(MCAPI_PENDING);
  mine.is_open[0] = mine.is_open[1] = false;
  mine.messages = mine.packets = mine.sent = mine.posted = 0;
}

static void take_messages(void) {
  unsigned char data[BIG];
  while (mcapi_msg_available(mine.mail, &s)) {
    mcapi_msg_recv(mine.mail, data, sizeof data, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(mine.messages) && is_filled(data, size, mine.messages));
    mine.messages++;
  }
}

/* False: nothing comes any more. */
static bool take_packets(void) {
  while (mine.is_open[0]) {
    void *packet;
    if (!mcapi_pktchan_available(mine.receive, &s)) return true;
    mcapi_pktchan_recv(mine.receive, &packet, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(mine.packets) && is_filled(packet, size, mine.packets));
    mine.packets++;
    mcapi_pktchan_release(packet, &s);
    SAYS(MCAPI_SUCCESS);
  }
  return false;
}

/* What the survivor does for the victim, as far as it goes now. */
static void serve(void) {
  unsigned char data[BIG];
  take_messages();
  if (mine.posted < MESSAGES) {
    mcapi_endpoint_t e = mcapi_endpoint_get(number, VICTIM, MAIL, 0, &s);
    for (; s == MCAPI_SUCCESS && mine.posted < MESSAGES; mine.posted++) {
      fill(data, size_of(mine.posted), mine.posted);
      mcapi_msg_send(mine.mail, e, data, size_of(mine.posted), 3, &s);
    }
  }
  for (int i = 0; i < 2; i++)
    if (!mine.is_open[i]) mine.is_open[i] = mcapi_test(&mine.opened[i], &size, &s);
  take_packets();
  for (; mine.is_open[1] && mine.sent < PACKETS; mine.sent++) {
    fill(data, size_of(mine.sent), mine.sent);
    mcapi_pktchan_send(mine.send, data, size_of(mine.sent), &s);
    if (s != MCAPI_SUCCESS) break;
  }
}

static bool is_gone(void) {
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    uint32_t id = lvd_load_relaxed_u32(&tables->process[i].id);
    if (lvd_load_acquire_u32(&tables->process[i].serial) && id != (uint32_t)getpid()) return false;
  }
  return true;
}

/* With nobody but the survivor in the domain. */
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

static void close_ends(void) {
  mcapi_request_t r;
  mcapi_uint_t status;
  mcapi_pktchan_recv_close_i(mine.receive, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  mcapi_pktchan_send_close_i(mine.send, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  mcapi_endpoint_get_attribute(mine.in, MCAPI_ENDP_ATTR_ENDP_STATUS, &status, sizeof status, &s);
  SAYS(MCAPI_SUCCESS);
  CHECK(status == 0);
  mcapi_endpoint_delete(mine.in, &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_endpoint_delete(mine.out, &s);
  SAYS(MCAPI_SUCCESS);
}

static double longest;

static void check(double died) {
  while (!is_gone()) {
    CHECK(seconds() - died < LIMIT_MS * 1e-3);
    nap(50000);
  }
  double took = seconds() - died;
  if (took > longest) longest = took;
  /* Requests that waited for it are done, or wait for the next one. */
  for (int i = 0; i < 2; i++)
    if (!mine.is_open[i]) mine.is_open[i] = mcapi_test(&mine.opened[i], &size, &s);
  take_messages();
  CHECK(mine.messages == seen->messages || mine.messages == seen->messages + 1);
  take_packets();
  /* Not open yet, and never to be: what it sent is lost only if nobody could have received it. */
  if (mine.is_open[0])
    CHECK(mine.packets == seen->packets || mine.packets == seen->packets + 1);
  else
    CHECK(seen->packets == 0);
  if (mine.is_open[0]) {
    void *packet;
    mcapi_pktchan_recv(mine.receive, &packet, &size, &s);
    if (s != MCAPI_ERR_TRANSMISSION && s != MCAPI_ERR_CHAN_CLOSEPENDING)
      FAIL("status %d instead of an end", (int)s);
  }
  mcapi_uint_t room;
  mcapi_endpoint_get_attribute(mine.mail, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &room, sizeof room, &s);
  CHECK(room == MC_SLOTS);
  check_tables();
  close_ends();
}

/* One victim; true: it came to its end. */
static bool one(long at_store, long kill_after_ns) {
  int how;
  open_ends();
  pid_t id = start(live, at_store);
  double begun = seconds();
  while (waitpid(id, &how, WNOHANG) == 0) {
    serve();
    CHECK(seconds() - begun < 20);
    if (kill_after_ns && seconds() - begun > (double)kill_after_ns * 1e-9) kill(id, SIGKILL);
  }
  double died = seconds();
  if (WIFEXITED(how) && WEXITSTATUS(how)) FAIL("the victim itself failed");
  CHECK(WIFEXITED(how) || WTERMSIG(how) == SIGKILL);
  check(died);
  return seen->ended;
}

static void survive(void) {
  begin(SURVIVOR);
  mine.mail = make(MAIL);
  see_tables();
}

static int run_store(long step, long first) {
  survive();
  long rounds = 0;
  for (round_number = first; !one(round_number, 0); round_number += step) rounds++;
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
  one(0, 0);
  double start_of = seconds();
  one(0, 0);
  double whole = seconds() - start_of;
  for (round_number = 0; round_number < rounds; round_number++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    ended += one(0, 1 + (long)((double)(seed % 1000) * 1.2e-3 * whole * 1e9));
  }
  printf("%ld killed at random, %ld came to their end first; all told within %.1f ms\n",
         rounds - ended, ended, longest * 1e3);
  mcapi_finalize(&s);
  SAYS(MCAPI_SUCCESS);
  return 0;
}

/* ---- nobody survives ------------------------------------------------------------------------ */

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
  at("finalize");
  mcapi_finalize(&s);
  SAYS(MCAPI_SUCCESS);
  counted = false;
  seen->ended = 1;
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
    id = start(live_alone, 0); /* the next one, in what is left */
    CHECK(waitpid(id, &how, 0) == id);
    if (!WIFEXITED(how) || WEXITSTATUS(how)) FAIL("the next one failed");
    CHECK(stat(path, &st) != 0); /* and takes all of it away */
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
    if (strcmp(what, "store") == 0) return run_store(step, first);
    if (strcmp(what, "alone") == 0) return run_alone(step, first);
    if (strcmp(what, "random") == 0) return run_random(step);
  }
  fprintf(stderr, "usage: levada_crash store|alone [STEP [FIRST]] | random ROUNDS\n");
  return 2;
}
