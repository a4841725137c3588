/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI between processes: messages in both directions, waiting for endpoints that do not exist
 * yet, many processes that start at once, and deaths at any time. */
#include "test_mcapi.h"

#include <dirent.h>
#include <fcntl.h>
#include <levada/mcapi_observe.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static mcapi_domain_t number;
static mcapi_status_t s;

/* The first caller is the test's own process. */
mcapi_domain_t test_domain(void) {
  if (!number) {
    lvd_mcapi_cleanup_result cleared;
    number = (mcapi_domain_t)getpid();
    /* A process that was killed may have had this ID. */
    lvd_mcapi_domain_clean(number, &cleared);
  }
  return number;
}

static pid_t child(void (*body)(void *), void *argument) {
  test_domain();
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  body(argument);
  _exit(0);
}

static void is_well(pid_t id) {
  int how;
  CHECK_EQ(waitpid(id, &how, 0), id);
  CHECK(WIFEXITED(how));
  CHECK_EQ(WEXITSTATUS(how), 0);
}

static void dies(pid_t id) {
  CHECK_EQ(kill(id, SIGKILL), 0);
  CHECK_EQ(waitpid(id, NULL, 0), id);
}

static void nap(int64_t ns) {
  nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

/* Number of names of the test's domain. */
static int names(void) {
  char path[64], prefix[32];
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0", (unsigned)geteuid());
  snprintf(prefix, sizeof prefix, "mcapi-%u", (unsigned)test_domain());
  DIR *dir = opendir(path);
  int count = 0;
  for (struct dirent *e; dir && (e = readdir(dir));) {
    size_t n = strlen(prefix);
    if (strncmp(e->d_name, prefix, n) != 0) continue;
    count += e->d_name[n] == 0 || e->d_name[n] == '.'; /* not a longer number */
  }
  if (dir) closedir(dir);
  return count;
}

/* ---- round trips ----------------------------------------------------------------------------- */

static const size_t sizes[] = {1, 64, 2048, 4096, 8192, MCAPI_MAX_MESSAGE_SIZE};
enum { ROUNDS = SCALED(400) };

static void fill(unsigned char *to, size_t size, uint64_t seed) {
  for (size_t i = 0; i < size; i++) to[i] = (unsigned char)(seed + i * 7);
}

static void echo(void *nothing) {
  (void)nothing;
  static unsigned char in[MCAPI_MAX_MESSAGE_SIZE];
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(1), other = endpoint_of(1, 1);
  for (size_t k = 0; k < COUNT(sizes); k++)
    for (int i = 0; i < ROUNDS; i++) {
      size_t size;
      mcapi_msg_recv(mine, in, sizeof in, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK_EQ(size, sizes[k]);
      mcapi_msg_send(mine, other, in, size, 1, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
  node_ends();
}

void test_mcapi_processes(void) {
  static unsigned char out[MCAPI_MAX_MESSAGE_SIZE], in[MCAPI_MAX_MESSAGE_SIZE];
  pid_t id = child(echo, NULL);
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1), other = endpoint_of(2, 1);
  for (size_t k = 0; k < COUNT(sizes); k++)
    for (int i = 0; i < ROUNDS; i++) {
      size_t size;
      fill(out, sizes[k], (uint64_t)i);
      mcapi_msg_send(mine, other, out, sizes[k], 1, &s);
      SAYS(s, MCAPI_SUCCESS);
      /* the other sleeps when the next message arrives, and so does this one */
      if (i % 100 == 0) nap(3000000);
      mcapi_msg_recv(mine, in, sizeof in, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK_EQ(size, sizes[k]);
      CHECK(memcmp(in, out, size) == 0);
    }
  is_well(id);
  node_ends();
  CHECK_EQ(names(), 0);
}

static void wait_a_second(void *nothing) {
  (void)nothing;
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(1);
  mcapi_timeout_t limit = 1000;
  char in;
  size_t size;
  mcapi_endpoint_set_attribute(mine, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  uint64_t before = cpu_ns();
  mcapi_msg_recv(mine, &in, 1, &size, &s);
  SAYS(s, MCAPI_TIMEOUT);
  uint64_t used = cpu_ns() - before;
  printf("%.2f ms of CPU time in a second\n", (double)used * 1e-6);
  fflush(stdout);
  CHECK(used < 20000000);
  node_ends();
}

/* A waiting process uses no CPU time, and neither does its notifier. */
void test_mcapi_idle(void) {
  pid_t id = child(wait_a_second, NULL);
  node_is(1);
  endpoint_of(2, 1);
  uint64_t before = cpu_ns();
  is_well(id);
  CHECK(cpu_ns() - before < 20000000);
  node_ends();
}

/* ---- starting -------------------------------------------------------------------------------- */

enum { STARTERS = 20 };

static void start_and_meet(void *argument) {
  mcapi_node_t me = (mcapi_node_t)(uintptr_t)argument;
  for (int round = 0; round < 5; round++) {
    node_is(me);
    /* different in each round, to find only endpoints of this one */
    mcapi_port_t port = 7 + (mcapi_port_t)round;
    mcapi_endpoint_t mine = endpoint_at(port), next = endpoint_of((me + 1) % STARTERS, port);
    uint32_t got;
    size_t size;
    mcapi_msg_send(mine, next, &me, sizeof me, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_recv(mine, &got, sizeof got, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(got, (me + STARTERS - 1) % STARTERS);
    if (round == 4) break;
    /* A round is complete when every process has received its message. */
    mcapi_endpoint_t gate = endpoint_of(STARTERS, 1);
    mcapi_msg_send(mine, gate, &mine, sizeof mine, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_recv(mine, &got, sizeof got, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    node_ends();
    if (me % 2) nap(1000000);
  }
  node_ends();
}

void test_mcapi_many_start(void) {
  pid_t id[STARTERS];
  for (uintptr_t i = 0; i < STARTERS; i++) id[i] = child(start_and_meet, (void *)i);
  node_is(STARTERS);
  mcapi_endpoint_t gate = endpoint_at(1), from[STARTERS];
  size_t size;
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < STARTERS; i++) {
      mcapi_msg_recv(gate, &from[i], sizeof *from, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    for (int i = 0; i < STARTERS; i++) {
      mcapi_msg_send(gate, from[i], "", 1, 0, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
  }
  for (int i = 0; i < STARTERS; i++) is_well(id[i]);
  node_ends();
  CHECK_EQ(names(), 0);
}

/* Files under the domain's name that are not trusted do not matter. */
void test_mcapi_left_names(void) {
  char path[96], bell[112];
  node_is(1); /* creates the directory */
  node_ends();
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), test_domain());
  snprintf(bell, sizeof bell, "%s.0", path);
  for (int kind = 0; kind < 6; kind++) {
    int fd = -1;
    char other[112];
    snprintf(other, sizeof other, "%s.precious", path);
    switch (kind) {
    case 0: /* a file of another program */
      fd = open(path, O_CREAT | O_RDWR, 0600);
      CHECK_EQ(write(fd, "no domain at all", 16), 16);
      break;
    case 1: /* readable by all users */
      fd = open(path, O_CREAT | O_RDWR, 0644);
      break;
    case 2:
      fd = open(other, O_CREAT | O_RDWR, 0600);
      CHECK_EQ(write(fd, "precious", 8), 8);
      CHECK_EQ(symlink(other, path), 0);
      break;
    case 3:
      CHECK_EQ(mkdir(path, 0700), 0);
      break;
    case 4:
      CHECK_EQ(mkfifo(path, 0600), 0);
      break;
    case 5: /* not empty; it is kept */
      CHECK_EQ(mkdir(path, 0700), 0);
      snprintf(other, sizeof other, "%s/precious", path);
      fd = open(other, O_CREAT | O_RDWR, 0600);
      CHECK(fd >= 0);
      break;
    }
    if (fd >= 0) close(fd);
    fd = open(bell, O_CREAT | O_RDWR, 0600); /* the name of the FIFO */
    close(fd);
    node_is(1);
    struct stat st;
    CHECK_EQ(lstat(path, &st), 0);
    CHECK(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600);
    node_ends();
    if (kind == 2) {
      CHECK_EQ(stat(other, &st), 0);
      CHECK_EQ(st.st_size, 8); /* the link was not followed */
      unlink(other);
    }
    if (kind == 5) {
      snprintf(path, sizeof path, "/dev/shm/levada-%u.0/left-mcapi-%u.0", (unsigned)geteuid(),
               test_domain());
      snprintf(other, sizeof other, "%s/precious", path);
      CHECK_EQ(unlink(other), 0);
      CHECK_EQ(rmdir(path), 0);
    }
  }
  CHECK_EQ(names(), 0);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static void receive_for_ever(void *argument) {
  static unsigned char in[MCAPI_MAX_MESSAGE_SIZE];
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(1);
  size_t size;
  int most = argument ? *(int *)argument : -1;
  for (int i = 0; i != most; i++) mcapi_msg_recv(mine, in, sizeof in, &size, &s);
  pause();
}

/* A receiver that does not receive is killed while a sender waits for room. */
void test_mcapi_receiver_dies(void) {
  FORKS_LATE;
  int most = 3;
  double *killed =
      mmap(NULL, sizeof *killed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(killed != MAP_FAILED);
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1);
  for (int round = 0; round < 5; round++) {
    pid_t id = child(receive_for_ever, &most), killer;
    mcapi_endpoint_t other = endpoint_of(2, 1);
    for (int i = 0; i < test_slots() + most; i++) {
      mcapi_msg_send(mine, other, &i, sizeof i, 0, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    killer = fork();
    if (killer == 0) {
      nap(30000000);
      *killed = seconds();
      kill(id, SIGKILL);
      _exit(0);
    }
    mcapi_msg_send(mine, other, "", 1, 0, &s); /* it is still a zombie */
    SAYS(s, MCAPI_ERR_ENDP_INVALID);
    double took = seconds() - *killed;
    printf("told after %.1f ms\n", took * 1e3);
    CHECK(took < 2); /* takes a hundredth of it if no other program uses the cores */
    CHECK_EQ(waitpid(id, NULL, 0), id);
    CHECK_EQ(waitpid(killer, NULL, 0), killer);
  }
  /* Its node and its endpoint are free again; nothing that was left in its queue arrives. */
  node_ends();
  node_is(2);
  mine = endpoint_at(1);
  CHECK_EQ(mcapi_msg_available(mine, &s), 0);
  node_ends();
  CHECK_EQ(names(), 0);
}

typedef struct parcel {
  uint64_t number;
  unsigned char data[3000];
} parcel;

static void send_for_ever(void *argument) {
  parcel p;
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(1), other = endpoint_of(1, 1);
  (void)argument;
  for (p.number = 0;; p.number++) {
    fill(p.data, sizeof p.data, p.number);
    mcapi_msg_send(mine, other, &p, sizeof p, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
}

/* Senders are killed at any time: messages are complete and in order, and all slots are
 * reclaimed. */
void test_mcapi_sender_dies(void) {
  FORKS_LATE;
  uint64_t seed = 0x9e3779b97f4a7c15u, all = 0;
  mcapi_uint_t limit = 2000, room = 0;
  unsigned char expected[sizeof(parcel)];
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1);
  for (int round = 0; round < SCALED(200); round++) {
    pid_t id = child(send_for_ever, NULL);
    parcel p;
    size_t size;
    mcapi_msg_recv(mine, &p, sizeof p, &size, &s); /* it has started */
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(p.number, 0);
    uint64_t next = 1, many = next_random(&seed) % 200;
    for (; next < many; next++) {
      mcapi_msg_recv(mine, &p, sizeof p, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK_EQ(p.number, next);
    }
    nap((int64_t)(next_random(&seed) % 300000));
    dies(id);
    while (mcapi_msg_available(mine, &s)) {
      mcapi_msg_recv(mine, &p, sizeof p, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK_EQ(size, sizeof p);
      CHECK_EQ(p.number, next++);
      fill(expected, sizeof p.data, p.number);
      CHECK(memcmp(expected, p.data, sizeof p.data) == 0);
    }
    all += next;
    double start = seconds();
    do {
      mcapi_msg_available(mine, &s);
      mcapi_endpoint_get_attribute(mine, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &room, sizeof room, &s);
      SAYS(s, MCAPI_SUCCESS);
    } while (room < (unsigned)test_slots() && seconds() - start < limit / 1000.0);
    CHECK_EQ(room, (unsigned)test_slots());
  }
  printf("%llu messages of senders that were killed\n", (unsigned long long)all);
  node_ends();
  CHECK_EQ(names(), 0);
}

/* Everything that changes tables, repeatedly. */
static void begin_for_ever(void *argument) {
  mcapi_node_t me = (mcapi_node_t)(uintptr_t)argument;
  mcapi_request_t r, q;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  void *packet;
  size_t size;
  for (;;) {
    node_is(me);
    mcapi_endpoint_t to = endpoint_at(3), from = endpoint_at(MCAPI_PORT_ANY);
    mcapi_pktchan_connect_i(from, to, &r, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_send_open_i(&out, from, &r, &s);
    mcapi_pktchan_recv_open_i(&in, to, &q, &s);
    CHECK(mcapi_wait(&r, &size, MCAPI_TIMEOUT_INFINITE, &s));
    mcapi_pktchan_send(out, "x", 1, &s);
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_send_close_i(out, &r, &s);
    mcapi_pktchan_recv_close_i(in, &r, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_endpoint_delete(from, &s);
    SAYS(s, MCAPI_SUCCESS);
    node_ends();
  }
}

/* Killed while it joins, leaves, creates, connects, opens, closes, deletes: its node number is free
 * again, and others can join. */
void test_mcapi_starter_dies(void) {
  FORKS_LATE;
  uint64_t seed = 0x2545f4914f6cdd1du;
  for (int round = 0; round < SCALED(200); round++) {
    /* first without a surviving process, then with this one */
    if (round == SCALED(100)) node_is(1);
    pid_t a = child(begin_for_ever, (void *)2), b = child(begin_for_ever, (void *)3);
    nap((int64_t)(next_random(&seed) % 8000000));
    dies(a);
    nap((int64_t)(next_random(&seed) % 2000000));
    dies(b);
  }
  mcapi_finalize(&s);
  for (mcapi_node_t i = 1; i < 4; i++) {
    node_is(i);
    endpoint_at(3);
    node_ends();
  }
  CHECK_EQ(names(), 0);
}
