/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Placement of packets and messages: all lengths, queues up to their capacity, and lack of
 * memory. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

enum { MESSAGE_BYTES_MAX = 65536, HELD_MAX = 60 };

static mcapi_status_t s;
static mcapi_request_t r;
static size_t size;
static uint64_t seed = 20;
static mcapi_endpoint_t receiver;

static void done(void) {
  CHECK(mcapi_wait(&r, &size, 20000, &s));
  SAYS(s, MCAPI_SUCCESS);
}

static void set(mcapi_endpoint_t e, mcapi_uint_t attribute, mcapi_uint_t value) {
  mcapi_endpoint_set_attribute(e, attribute, &value, sizeof value, &s);
  SAYS(s, MCAPI_SUCCESS);
}

static mcapi_pktchan_send_hndl_t out;
static mcapi_pktchan_recv_hndl_t in;

/* A channel with a sender that does not wait for room. */
static void open_channel(void) {
  mcapi_endpoint_t from = endpoint_at(1), to = receiver = endpoint_at(2);
  set(from, MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT);
  set(to, MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT);
  mcapi_pktchan_connect_i(from, to, &r, &s);
  done();
  mcapi_request_t q;
  mcapi_pktchan_send_open_i(&out, from, &q, &s);
  mcapi_pktchan_recv_open_i(&in, to, &r, &s);
  done();
  r = q;
  done();
}

/* Packet `n`: its length, and words that no other packet has. */
static uint32_t length_of(uint32_t n) {
  uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u;
  next_random(&x), next_random(&x);
  static const uint32_t below[] = {1, 9, 64, 65, 200, 4032, 4097, 9000, MESSAGE_BYTES_MAX + 1};
  uint32_t k = next_random(&x) % (n / 500 % 2 ? COUNT(below) : 5); /* only short ones for a while */
  return below[k] - (next_random(&x) % 3 ? 1 : (uint32_t)(next_random(&x) % below[k]));
}

static void fill(unsigned char *data, uint32_t n) {
  uint32_t length = length_of(n);
  for (uint32_t i = 0; i < length; i++) data[i] = (unsigned char)(n + i / 64 * 7 + i);
}

static void is_that(const unsigned char *data, size_t length, uint32_t n) {
  static unsigned char expected[MESSAGE_BYTES_MAX];
  CHECK_EQ(length, length_of(n));
  fill(expected, n);
  CHECK(length == 0 || memcmp(data, expected, length) == 0);
}

static unsigned char data[MESSAGE_BYTES_MAX];

static bool send_packet(uint32_t n) {
  fill(data, n);
  mcapi_pktchan_send(out, data, length_of(n), &s);
  if (s == MCAPI_ERR_MEM_LIMIT) return false;
  SAYS(s, MCAPI_SUCCESS);
  return true;
}

static void *receive_packet(uint32_t n) {
  void *packet;
  mcapi_pktchan_recv(in, &packet, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  is_that(packet, size, n);
  return packet;
}

/* At random: the number of queued packets grows and shrinks, from empty to full; packets are
 * released in any order, later. All keep their contents until they are released. */
void test_mcapi_packets_of_any_length(void) {
  node_is(1);
  open_channel();
  void *held[HELD_MAX];
  uint32_t number[HELD_MAX], count = 0, sent = 0, got = 0, full = 0, most = 0;
  const uint32_t all = over_queues() ? 400 : SCALED(40000), keep = over_queues() ? 2 : HELD_MAX;
  for (uint32_t round = 0; got < all; round++) {
    uint32_t bias = round / 300 % 3; /* 0: as many are sent as received; 1: more; 2: fewer */
    if (next_random(&seed) % 4 < (bias == 0 ? 2u : bias == 1 ? 3u : 1u)) {
      uint32_t went = (uint32_t)send_packet(sent);
      sent += went;
      full += !went;
    } else if (got < sent && count < keep) {
      held[count] = receive_packet(got);
      number[count++] = got++;
    }
    most = sent - got > most ? sent - got : most;
    if (round % 64 == 0) {
      bool asked = round % 128 == 0; /* both functions count all that is queued */
      CHECK_EQ(asked ? mcapi_pktchan_available(in, &s) : lvd_mcapi_pending_count(receiver, &s),
               sent - got);
      SAYS(s, MCAPI_SUCCESS);
    }
    for (bool all_of_them = next_random(&seed) % 16 == 0 || count == keep; all_of_them && count;) {
      uint32_t k = (uint32_t)(next_random(&seed) % count);
      is_that(held[k], length_of(number[k]), number[k]);
      mcapi_pktchan_release(held[k], &s);
      SAYS(s, MCAPI_SUCCESS);
      held[k] = held[--count];
      number[k] = number[count];
    }
  }
  CHECK(full > 0);
  CHECK(most > 2);
  node_ends();
}

/* Some packets are held for long, and as many others pass as fit behind the oldest; 64 may be
 * held. */
void test_mcapi_packets_held_long(void) {
  node_is(1);
  open_channel();
  mcapi_endpoint_t to = endpoint_of(1, 2);
  const mcapi_timeout_t soon = 20;
  mcapi_endpoint_set_attribute(to, MCAPI_ENDP_ATTR_TIMEOUT, &soon, sizeof soon, &s);
  void *held[64], *more;
  uint32_t number[64], count = 0;
  const uint32_t all = over_queues() ? 200 : 2000;
  uint64_t word;
  for (uint32_t n = 0; n < all || count < 64; n++) {
    word = n;
    mcapi_pktchan_send(out, &word, sizeof word, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_recv(in, &more, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK(size == sizeof word && memcmp(more, &word, size) == 0);
    if (count < 64 && (n == 0 || n % 3 == 1)) {
      held[count] = more;
      number[count++] = n;
    } else {
      mcapi_pktchan_release(more, &s);
      SAYS(s, MCAPI_SUCCESS);
      mcapi_pktchan_release(more, &s);
      SAYS(s, MCAPI_ERR_BUF_INVALID);
    }
    if (count == 64) break;
  }
  mcapi_pktchan_send(out, &word, sizeof word, &s);
  mcapi_pktchan_recv(in, &more, &size, &s);
  SAYS(s, MCAPI_ERR_MEM_LIMIT);
  for (uint32_t i = 0; i < 64; i++) { /* the newest first, then the oldest, ... */
    uint32_t k = i % 2 ? i / 2 : 63 - i / 2;
    word = number[k];
    CHECK(memcmp(held[k], &word, sizeof word) == 0);
    mcapi_pktchan_release(held[k], &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  mcapi_pktchan_recv(in, &more, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  void *oldest = more;
  for (uint32_t n = 0; n < all; n++) { /* all of them behind one */
    word = n;
    mcapi_pktchan_send(out, &word, sizeof word, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_recv(in, &more, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK(memcmp(more, &word, sizeof word) == 0);
    mcapi_pktchan_release(more, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  mcapi_pktchan_release(oldest, &s);
  SAYS(s, MCAPI_SUCCESS);
  node_ends();
}

/* Counts queued packets at any position in a small ring, which contains data of an earlier
 * channel. */
void test_mcapi_packets_counted(void) {
  node_is(1);
  for (uint32_t round = 0; round < 3; round++) {
    open_channel();
    const uint32_t each = over_queues() ? 8 : 1500; /* of three lines each, in a ring of 8192 */
    uint32_t sent = 0, got = 0;
    memset(data, 0xff, 100);
    for (uint32_t n = 0; n < 40; n++) {
      for (; sent - got < each; sent++) {
        mcapi_pktchan_send(out, data, 100 - round, &s);
        SAYS(s, MCAPI_SUCCESS);
      }
      CHECK_EQ(mcapi_pktchan_available(in, &s), sent - got);
      CHECK_EQ(lvd_mcapi_pending_count(receiver, &s), sent - got);
      for (uint32_t i = 0; i < each / 3; i++, got++) {
        void *packet;
        mcapi_pktchan_recv(in, &packet, &size, &s);
        SAYS(s, MCAPI_SUCCESS);
        CHECK_EQ(size, 100 - round);
        mcapi_pktchan_release(packet, &s);
      }
    }
    mcapi_pktchan_recv_close_i(in, &r, &s);
    done();
    mcapi_pktchan_send_close_i(out, &r, &s);
    done();
    mcapi_endpoint_delete(receiver, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_endpoint_delete(endpoint_of(1, 1), &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  node_ends();
}

/* Messages: slots are used in turn, repeatedly, while some are occupied. */
void test_mcapi_messages_of_any_length(void) {
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
  set(from, MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT);
  uint32_t sent = 0, got = 0, full = 0;
  const uint32_t all = over_queues() ? 400 : SCALED(40000);
  static unsigned char back[MESSAGE_BYTES_MAX];
  for (uint32_t round = 0; got < all; round++) {
    uint32_t bias = round / 300 % 3;
    if (next_random(&seed) % 4 < (bias == 0 ? 2u : bias == 1 ? 3u : 1u)) {
      fill(data, sent);
      mcapi_msg_send(from, to, data, length_of(sent), 0, &s);
      if (s == MCAPI_ERR_MEM_LIMIT) {
        full++;
        continue;
      }
      SAYS(s, MCAPI_SUCCESS);
      sent++;
    } else if (got < sent) {
      mcapi_msg_recv(to, back, sizeof back, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      is_that(back, size, got++);
    }
  }
  CHECK(full > 0);
  node_ends();
}

static void memory_is_small(void) {
  test_domain();
  if (over_queues()) SKIP("queues are none of this memory");
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
    SKIP("needs the right to mount");
  CHECK_EQ(mount("levada-small", "/dev/shm", "tmpfs", 0, "size=6m,mode=1777"), 0);
}

static void memory_is_gone(void) {
  int file = open("/dev/shm/filler", O_CREAT | O_WRONLY, 0600);
  while (write(file, data, 4096) > 0) continue;
  CHECK_EQ(close(file), 0);
}

/* Sends until the channel is full, and receives, while one packet is always held. Returns the
 * bytes. */
static uint64_t fill_and_empty(uint32_t *next) {
  void *held = NULL;
  uint32_t got = *next;
  uint64_t bytes = 0;
  for (; send_packet(*next); ++*next) bytes += length_of(*next);
  CHECK(*next > got);
  for (; got < *next; got++) {
    void *packet = receive_packet(got);
    if (held) mcapi_pktchan_release(held, &s);
    SAYS(s, MCAPI_SUCCESS);
    held = packet;
  }
  mcapi_pktchan_release(held, &s);
  SAYS(s, MCAPI_SUCCESS);
  return bytes;
}

/* A connected channel has the memory that it needs, and continues if there is no more; it gets more
 * when there is some. */
void test_mcapi_small_memory(void) {
  memory_is_small();
  node_is(1);
  open_channel();
  mcapi_endpoint_t from = endpoint_at(3), to = endpoint_at(4);
  memory_is_gone();
  uint32_t next = 0;
  uint64_t most = 0;
  for (int round = 0; round < 40; round++) {
    uint64_t bytes = fill_and_empty(&next);
    most = bytes > most ? bytes : most;
  }
  CHECK(most > (256 << 10) && most <= (512 << 10));
  mcapi_pktchan_connect_i(from, to, &r, &s);
  CHECK(s != MCAPI_SUCCESS || !mcapi_wait(&r, &size, 20000, &s));
  SAYS(s, MCAPI_ERR_MEM_LIMIT);
  CHECK_EQ(unlink("/dev/shm/filler"), 0);
  for (int round = 0; round < 40; round++) {
    for (int i = 0; i < 300; i++) { /* the receiver keeps up */
      CHECK(send_packet(next));
      mcapi_pktchan_release(receive_packet(next++), &s);
    }
    uint64_t bytes = fill_and_empty(&next);
    most = bytes > most ? bytes : most;
  }
  CHECK(most > (1 << 20));
  node_ends();
}

/* A queue also continues with the pages that it has: those of eight messages are committed before
 * memory runs out. */
void test_mcapi_small_memory_messages(void) {
  memory_is_small();
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
  set(from, MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT);
  set(to, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, 8);
  for (uint32_t round = 0; round < 100; round++) {
    for (uint32_t i = 0; i < 8; i++) {
      memset(data, (int)(round + i), 3000);
      mcapi_msg_send(from, to, data, 3000, 0, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    if (round == 0) memory_is_gone();
    for (uint32_t i = 0; i < 8; i++) {
      mcapi_msg_recv(to, data, sizeof data, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK(size == 3000 && data[0] == (unsigned char)(round + i) && data[2999] == data[0]);
    }
  }
  mcapi_msg_send(from, to, data, 60000, 0, &s);
  SAYS(s, MCAPI_ERR_MEM_LIMIT);
  node_ends();
}
