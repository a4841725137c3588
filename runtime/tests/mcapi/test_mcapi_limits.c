/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A process lacks a resource (descriptors, file size), is interrupted, or gets wrong information
 * from the system or from other processes: calls proceed or return a status, and no other process
 * is affected. */
#include "mcapi/transport/mqueue/mqueue.h"
#include "platform/domain.h"

#include "test_mcapi.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static mcapi_status_t s;
static size_t size;

static void is_well(pid_t id) {
  int how;
  CHECK_EQ(waitpid(id, &how, 0), id);
  CHECK(WIFEXITED(how));
  CHECK_EQ(WEXITSTATUS(how), 0);
}
static void nap(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

/* ---- descriptors and file sizes -------------------------------------------------------------- */

static mcapi_status_t initialize(mcapi_node_t node) {
  mcapi_info_t info;
  mcapi_initialize(test_domain(), node, NULL, NULL, &info, &s);
  return s;
}

/* With `more` descriptors than it uses. */
static void initialize_with(rlim_t more) {
  int next = open("/dev/null", O_RDONLY);
  struct rlimit limit = {.rlim_cur = (rlim_t)next + more, .rlim_max = 4096};
  close(next);
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (initialize(2) != MCAPI_SUCCESS) SAYS(s, MCAPI_ERR_NODE_INITFAILED);
}

/* A process without free descriptors does not remove other processes' names. */
void test_mcapi_no_descriptors(void) {
  FORKS_LATE;
  node_is(1);
  endpoint_at(3);
  for (rlim_t more = 0; more < 12; more++) {
    pid_t id = fork();
    if (id == 0) {
      initialize_with(more);
      _exit(0);
    }
    is_well(id);
    id = fork();
    if (id == 0) {
      node_is(3);
      mcapi_endpoint_get(test_domain(), 1, 3, 2000, &s);
      SAYS(s, MCAPI_SUCCESS); /* the same domain */
      node_ends();
      _exit(0);
    }
    is_well(id);
  }
  node_ends();
}

/* The domain's file exceeds the limit: a status instead of a signal. */
void test_mcapi_file_limit(void) {
  test_domain();
  pid_t id = fork();
  if (id == 0) {
    const struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    SAYS(initialize(1), MCAPI_ERR_NODE_INITFAILED);
    _exit(0);
  }
  is_well(id);
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t signals;
static void count(int number) {
  (void)number;
  signals = signals + 1;
}

/* A timer fires all the time: interrupted system calls are restarted. */
void test_mcapi_signals(void) {
  struct sigaction action = {.sa_handler = count};
  struct itimerval often = {{.tv_usec = 300}, {.tv_usec = 300}}, never = {{0, 0}, {0, 0}};
  mcapi_request_t r[4];
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  node_is(1);
  CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
  CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
  static char data[40000], back[40000];
  for (mcapi_port_t i = 0; i < (over_queues() ? 3 : 60); i++) {
    mcapi_endpoint_t from = endpoint_at(2 * i), to = endpoint_at(2 * i + 1);
    mcapi_msg_send(from, to, data, over_queues() ? 1000 : sizeof data, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_recv(to, back, sizeof back, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_connect_i(from, to, &r[0], &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_send_open_i(&out, from, &r[1], &s);
    mcapi_pktchan_recv_open_i(&in, to, &r[2], &s);
    for (int k = 0; k < 3; k++) {
      mcapi_wait(&r[k], &size, MCAPI_TIMEOUT_INFINITE, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    mcapi_pktchan_send(out, "x", 1, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  /* A coarse clock may not have ticked yet. */
  for (mcapi_endpoint_t one = endpoint_at(1000); !signals;) {
    mcapi_msg_send(one, one, data, 1000, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_recv(one, back, sizeof back, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
  node_ends();
}

/* ---- apparent deadlock ----------------------------------------------------------------------- */

static int file[2];
static volatile int *step; /* shared by both processes */

static void *takes_the_second(void *unused) {
  (void)unused;
  CHECK(lvd_os_file_lock_acquire(file[1], 0, true));
  lvd_os_file_lock_release(file[1], 0);
  return NULL;
}

/* Two processes, each in two domains: in each, one thread holds a tables lock and another waits for
 * the other process's. The system sees two processes that wait for each other and reports EDEADLK,
 * although there is no deadlock. */
void test_mcapi_gate_knot(void) {
  FORKS_LATE;
  int directory;
  pthread_t thread;
  char name[2][32];
  CHECK_EQ(lvd_os_directory_open(-1, &directory), LVD_OK);
  for (int i = 0; i < 2; i++) {
    snprintf(name[i], sizeof name[i], "knot-%d.%d", (int)getpid(), i);
    CHECK_EQ(lvd_os_file_open(directory, name[i], &file[i]), LVD_OK);
  }
  step = mmap(NULL, sizeof *step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(step != MAP_FAILED);
  CHECK(lvd_os_file_lock_acquire(file[0], 0, true));
  pid_t id = fork();
  if (id == 0) {
    CHECK(lvd_os_file_lock_acquire(file[1], 0, true));
    *step = 1;
    while (*step != 2) nap(1000000);
    nap(50000000); /* the other process's thread waits by now */
    CHECK(lvd_os_file_lock_acquire(file[0], 0, true));
    CHECK_EQ(*step, 3);
    lvd_os_file_lock_release(file[0], 0);
    lvd_os_file_lock_release(file[1], 0);
    _exit(0);
  }
  while (*step != 1) nap(1000000);
  pthread_create(&thread, NULL, takes_the_second, NULL);
  *step = 2;
  nap(200000000);
  *step = 3;
  lvd_os_file_lock_release(file[0], 0);
  is_well(id);
  pthread_join(thread, NULL);
  for (int i = 0; i < 2; i++) lvd_os_directory_remove(directory, name[i]);
}

/* ---- wrong process IDs ----------------------------------------------------------------------- */

/* Sets all process IDs in the table to 1, a process that never exits. */
static void misleads(void) {
  char path[96];
  alarm(60); /* ends it if the test fails */
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), test_domain());
  int fd = open(path, O_RDWR);
  CHECK(fd >= 0);
  mc_tables *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(t != MAP_FAILED);
  for (;;)
    for (uint32_t i = 0; i < 8; i++) lvd_store_relaxed_u32(&t->process[i].pid, 1);
}

static void waits_to_be_killed(void) {
  node_is(2);
  endpoint_at(1);
  for (;;) pause();
}

void test_mcapi_hostile_numbers(void) {
  FORKS_LATE;
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1);
  mcapi_timeout_t limit = 10000;
  mcapi_endpoint_set_attribute(mine, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  pid_t vandal = fork();
  if (vandal == 0) misleads();
  for (int round = 0; round < 30; round++) {
    pid_t id = fork();
    if (id == 0) waits_to_be_killed();
    mcapi_endpoint_t other = endpoint_of(2, 1);
    for (int i = 0; i < 64; i++) mcapi_msg_send(mine, other, "", 1, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    pid_t killer = fork();
    if (killer == 0) {
      nap(5000000);
      kill(id, SIGKILL);
      _exit(0);
    }
    mcapi_msg_send(mine, other, "", 1, 0, &s);
    SAYS(s, MCAPI_ERR_ENDP_INVALID);
    CHECK_EQ(waitpid(id, NULL, 0), id);
    is_well(killer);
  }
  kill(vandal, SIGKILL);
  CHECK_EQ(waitpid(vandal, NULL, 0), vandal);
  node_ends();
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static lvd_os_queue queue;

static void send_piece(pmq_head head, const char *data, size_t length, uint32_t level) {
  unsigned char piece[256];
  memcpy(piece, &head, sizeof head);
  memcpy(piece + sizeof head, data, length);
  CHECK_EQ(lvd_os_queue_send(&queue, piece, sizeof head + length, level), LVD_OK);
}

static void receives(mcapi_endpoint_t to, const char *expected) {
  char in[64] = "";
  mcapi_msg_recv(to, in, sizeof in, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(strcmp(in, expected) == 0);
}

/* Long messages arrive in pieces: none is lost because of messages in between, or of senders that
 * have died. */
void test_mcapi_pieces(void) {
  if (!over_queues()) SKIP("of message queues");
  char name[64];
  test_slots();
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
  mcapi_msg_send(from, to, "first", 6, 0, &s); /* creates the queue */
  SAYS(s, MCAPI_SUCCESS);
  receives(to, "first");
  mc_pmq_name(name, sizeof name, test_domain(), to % MC_ENDPOINTS, false);
  CHECK_EQ(lvd_os_queue_find(name, &queue), LVD_OK);

  pmq_head head = {.to = to, .from = from, .sending_id = 1000, .size = 9}, rest = head;
  rest.offset = 4;
  send_piece(head, "long", 4, 0);
  CHECK_EQ(mcapi_msg_available(to, &s), 0);
  pmq_head urgent = {.to = to, .from = from, .sending_id = 1001, .size = 7};
  send_piece(urgent, "urgent", 7, 5);
  CHECK_EQ(mcapi_msg_available(to, &s), 1); /* it has been taken out of the queue */
  send_piece(rest, " one", 5, 0);
  receives(to, "urgent");
  receives(to, "long one");

  /* Abandoned, and started again. */
  send_piece(head, "long", 4, 0);
  head.sending_id = rest.sending_id = 1002;
  send_piece(head, "next", 4, 0);
  send_piece(rest, " one", 5, 0);
  receives(to, "next one");
  CHECK_EQ(mcapi_msg_available(to, &s), 0);

  for (uint32_t i = 0; i < 3000; i++) {
    head.from = 100000 + i; /* of no living endpoint */
    send_piece(head, "dead", 4, 0);
    CHECK_EQ(mcapi_msg_available(to, &s), 0);
  }
  head.from = from;
  send_piece(head, "well", 4, 0);
  send_piece(rest, " now", 5, 0);
  receives(to, "well now");
  lvd_os_queue_close(&queue);
  node_ends();
}

/* ---- fork ------------------------------------------------------------------------------------ */

static volatile bool over;
static void *requests(void *unused) {
  mcapi_endpoint_t mine = endpoint_at(MCAPI_PORT_ANY);
  char in[4];
  while (!over) {
    mcapi_request_t r;
    mcapi_status_t status;
    mcapi_msg_recv_i(mine, in, sizeof in, &r, &status);
    if (status == MCAPI_PENDING) mcapi_cancel(&r, &status);
  }
  return unused;
}

/* A thread creates requests all the time: a forked child has none of them, and no locked mutex. */
void test_mcapi_fork_requests(void) {
  FORKS_LATE;
#ifdef __SANITIZE_ADDRESS__
  SKIP("the address sanitizer's own allocator may be locked in the child of a fork of threads");
#endif
  pthread_t thread;
  mcapi_request_t r[1000];
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1);
  for (int i = 0; i < 1000; i++) {
    mcapi_msg_recv_i(mine, &s, 1, &r[i], &s);
    SAYS(s, MCAPI_PENDING);
  }
  pthread_create(&thread, NULL, requests, NULL);
  for (int round = 0; round < 100; round++) {
    pid_t id = fork();
    if (id == 0) {
      alarm(20);
      node_is(2);
      mine = endpoint_at(1);
      for (int i = 0; i < 1000; i++) {
        mcapi_msg_recv_i(mine, &s, 1, &r[i], &s);
        SAYS(s, MCAPI_PENDING);
      }
      node_ends();
      _exit(0);
    }
    is_well(id);
  }
  over = true;
  pthread_join(thread, NULL);
  node_ends();
}
