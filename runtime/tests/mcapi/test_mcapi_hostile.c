/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A process writes random values anywhere into a domain's memory while two others use it. They may
 * get any error, and other data than were sent; they must not crash, access memory outside, or
 * exceed a timeout. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static mcapi_status_t s;

enum { WORDS_OF_TABLES = 2 * 1024 * 1024 / 4, HEADER = 64 };

/* Writes to the start of the domain's file: the tables, and the first endpoints' queues and
 * channels, without knowledge of their layout. `header`: only the first words, which joining
 * processes check; otherwise those are left alone, since no process could join any more. */
static void rage(bool header) {
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), test_domain());
  int fd = open(path, O_RDWR);
  CHECK(fd >= 0);
  size_t size = (size_t)24 * 1024 * 1024;
  uint32_t *word = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(word != MAP_FAILED);
  uint64_t seed = 0x9e3779b97f4a7c15u;
  uint32_t good[HEADER];
  memcpy(good, word, sizeof good);
  for (;;) {
    uint64_t r = next_random(&seed);
    /* Mostly where there are data. */
    size_t at = (r % 4 ? r / 4 % WORDS_OF_TABLES : r / 4 % (size / 4));
    if (header) at %= HEADER;
    if (!header && at < HEADER) continue;
    if (!header && word[at] == 0 && r >> 60) continue;
    for (uint64_t n = r >> 32 & 1023; n--;) __asm__ volatile("");
    const uint32_t values[] = {(uint32_t)(r >> 32), 0, 1, UINT32_MAX, word[at] + 1, word[at] - 1,
                               word[at] ^ 64};
    word[at] = values[(r >> 24) % COUNT(values)];
    if (!header) continue;
    for (uint64_t n = r >> 40 & 4095; n--;) __asm__ volatile("");
    word[at] = good[at]; /* so that some processes join in between */
    for (uint64_t n = r >> 36 & 65535; n--;) __asm__ volatile("");
  }
}

/* What the two exchange, in turn; both use the same clock. */
typedef enum kind { PACKETS, SCALARS, LOANS, BROADCAST, KINDS } kind;
static kind kind_now(void) { return (kind)((uint64_t)(seconds() * 8) % KINDS); }

static unsigned char data[MCAPI_MAX_MESSAGE_SIZE];

static uint32_t open_channel(kind k, bool sends, mcapi_endpoint_t mine, mcapi_endpoint_t end) {
  mcapi_request_t r;
  size_t size;
  uint32_t handle = 0;
  if (sends && k == BROADCAST) {
    lvd_mcapi_broadcast_connect_i(mine, end, &r, &s);
    mcapi_wait(&r, &size, 5, &s);
  }
  if (sends && k == SCALARS) mcapi_sclchan_connect_i(mine, end, &r, &s);
  if (sends && (k == PACKETS || k == LOANS)) mcapi_pktchan_connect_i(mine, end, &r, &s);
  if (k == SCALARS && sends) mcapi_sclchan_send_open_i(&handle, mine, &r, &s);
  if (k == SCALARS && !sends) mcapi_sclchan_recv_open_i(&handle, mine, &r, &s);
  if (k != SCALARS && sends) mcapi_pktchan_send_open_i(&handle, mine, &r, &s);
  if (k != SCALARS && !sends) mcapi_pktchan_recv_open_i(&handle, mine, &r, &s);
  mcapi_wait(&r, &size, 20, &s);
  return handle;
}

static void send_one(kind k, uint32_t handle, size_t n) {
  if (k == SCALARS) {
    if (n % 2) mcapi_sclchan_send_uint64(handle, n, &s);
    if (n % 2 == 0) mcapi_sclchan_send_uint16(handle, (mcapi_uint16_t)n, &s);
  } else if (k == LOANS) {
    void *loan = lvd_mcapi_buffer_acquire(handle, n, &s);
    if (!loan) return;
    memset(loan, 1, n);
    if (n % 3) lvd_mcapi_buffer_send(handle, loan, n, &s);
    if (n % 3 == 0) lvd_mcapi_buffer_release(handle, loan, &s);
  } else {
    mcapi_pktchan_send(handle, data, n, &s);
  }
}

static void receive_one(kind k, uint32_t handle, size_t n) {
  void *packet;
  size_t size;
  if (k == SCALARS) {
    if (n % 2) mcapi_sclchan_recv_uint64(handle, &s);
    if (n % 2 == 0) mcapi_sclchan_recv_uint16(handle, &s);
    return;
  }
  mcapi_pktchan_recv(handle, &packet, &size, &s);
  if (s != MCAPI_SUCCESS) return;
  CHECK(size <= MCAPI_MAX_PACKET_SIZE);
  memcpy(data, packet, size);
  mcapi_pktchan_release(packet, &s);
}

/* One of the two: sends to the other and receives, in calls with timeouts. */
static uint64_t go_on(mcapi_node_t me, mcapi_node_t other, double until) {
  uint64_t calls = 0;
  while (seconds() < until) {
    mcapi_info_t info;
    size_t size = 0;
    kind k = kind_now();
    mcapi_initialize(test_domain(), me, NULL, NULL, &info, &s);
    if (s != MCAPI_SUCCESS) continue;
    mcapi_endpoint_t mine = mcapi_endpoint_create(1, &s), channel = mcapi_endpoint_create(2, &s);
    mcapi_timeout_t limit = 5;
    mcapi_endpoint_set_attribute(mine, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
    bool limited = s == MCAPI_SUCCESS;
    mcapi_endpoint_set_attribute(channel, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
    limited &= s == MCAPI_SUCCESS;
    mcapi_endpoint_t to = mcapi_endpoint_get(test_domain(), other, 1, 20, &s);
    mcapi_endpoint_t end = mcapi_endpoint_get(test_domain(), other, 2, 20, &s);
    uint32_t handle = open_channel(k, me < other, channel, end);
    for (int i = 0; limited && kind_now() == k && seconds() < until; i++, calls++) {
      size_t n = (size_t)i * 223 % MCAPI_MAX_MESSAGE_SIZE;
      double start = seconds();
      mcapi_msg_send(mine, to, data, n, (mcapi_priority_t)i % 8, &s);
      mcapi_msg_recv(mine, data, sizeof data, &size, &s);
      if (s == MCAPI_SUCCESS) CHECK(size <= sizeof data);
      if (me < other)
        send_one(k, handle, n);
      else
        receive_one(k, handle, n);
      mcapi_msg_available(mine, &s);
      CHECK(seconds() - start < 10); /* three timeouts of 5 ms, on a busy machine */
    }
    mcapi_finalize(&s);
    SAYS(s, MCAPI_SUCCESS);
  }
  return calls;
}

static void with_a_vandal(bool header) {
  FORKS_LATE;
  double until = seconds() + 3;
  node_is(9); /* the domain remains while the others join and leave */
  pid_t vandal = fork();
  if (vandal == 0) {
    rage(header);
    _exit(0);
  }
  pid_t one = fork();
  if (one == 0) {
    uint64_t calls = go_on(1, 2, until);
    printf("%llu rounds\n", (unsigned long long)calls);
    fflush(stdout);
    _exit(calls == 0 && !header);
  }
  int how;
  pid_t two = fork();
  if (two == 0) {
    go_on(2, 1, until);
    _exit(0);
  }
  CHECK_EQ(waitpid(one, &how, 0), one);
  CHECK_EQ(how, 0);
  CHECK_EQ(waitpid(two, &how, 0), two);
  CHECK_EQ(how, 0);
  kill(vandal, SIGKILL);
  CHECK_EQ(waitpid(vandal, NULL, 0), vandal);
  mcapi_finalize(&s);
}

void test_mcapi_hostile(void) { with_a_vandal(false); }
/* Joining may fail, for any reason. */
void test_mcapi_hostile_header(void) { with_a_vandal(true); }
