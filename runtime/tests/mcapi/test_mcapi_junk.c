/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Random bytes in message queues, which no node can have sent: to an endpoint, to a packet channel
 * and to a scalar channel. Every call returns, with a valid status and a valid size; afterwards
 * messages arrive complete again. */
#include "mcapi/transport/mqueue/mqueue.h"

#include "test_mcapi.h"

#include <levada/mcapi_ext.h>

static mcapi_status_t s;
static size_t size;
static uint64_t seed = 0x9e3779b97f4a7c15u;

enum { ROUNDS = SCALED(400) };

static lvd_os_queue queue_of(mcapi_endpoint_t e, bool channel) {
  char name[64];
  lvd_os_queue q;
  mc_pmq_name(name, sizeof name, test_domain(), mc_index(e), channel);
  CHECK_EQ(lvd_os_queue_find(name, &q), LVD_OK);
  return q;
}

/* Random bytes, or a header with words that are random or nearly valid. */
static void throw_in(const lvd_os_queue *q, mcapi_endpoint_t to, mcapi_endpoint_t from) {
  unsigned char piece[256];
  pmq_head head = {0};
  const uint32_t sizes[] = {0,
                            1,
                            4,
                            8,
                            100,
                            300,
                            MCAPI_MAX_MESSAGE_SIZE,
                            MCAPI_MAX_MESSAGE_SIZE + 1,
                            UINT32_MAX,
                            UINT32_MAX - 31};
  for (size_t i = 0; i < sizeof piece; i++) piece[i] = (unsigned char)next_random(&seed);
  uint64_t r = next_random(&seed);
  if (r % 4) {
    memcpy(&head, piece, sizeof head);
    head.to = to;
    if (r >> 8 & 1) head.from = from;
    head.sending_id = (uint32_t)(r >> 16 & 7);
    head.size = sizes[(r >> 24) % COUNT(sizes)];
    head.offset = r >> 32 & 1 ? 0 : sizes[(r >> 40) % COUNT(sizes)];
    memcpy(piece, &head, sizeof head);
  }
  size_t most = q->size < sizeof piece ? q->size : sizeof piece, length = (r >> 48) % (most + 1);
  /* a complete one */
  if (r % 4 > 1 && head.size <= most - sizeof head) length = sizeof head + head.size;
  lvd_status status = lvd_os_queue_send(q, piece, length, r >> 60);
  CHECK(status == LVD_OK || status == LVD_E_TIMEOUT); /* it is full */
}

static void done(mcapi_request_t *r) {
  mcapi_wait(r, &size, 20000, &s);
  SAYS(s, MCAPI_SUCCESS);
}

void test_mcapi_junk(void) {
  if (!over_queues()) SKIP("of message queues");
  static unsigned char in[MCAPI_MAX_MESSAGE_SIZE];
  const mcapi_timeout_t now = 0;
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t po;
  mcapi_pktchan_recv_hndl_t pi;
  mcapi_sclchan_send_hndl_t so;
  mcapi_sclchan_recv_hndl_t si;
  mcapi_endpoint_t e[6];
  test_slots();
  node_is(1);
  for (mcapi_port_t i = 0; i < COUNT(e); i++) {
    e[i] = endpoint_at(i + 1);
    mcapi_endpoint_set_attribute(e[i], MCAPI_ENDP_ATTR_TIMEOUT, &now, sizeof now, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  mcapi_msg_send(e[0], e[1], "first", 6, 0, &s); /* creates the queue */
  SAYS(s, MCAPI_SUCCESS);
  mcapi_pktchan_connect_i(e[2], e[3], &r, &s);
  done(&r);
  mcapi_request_t q;
  mcapi_pktchan_send_open_i(&po, e[2], &r, &s);
  mcapi_pktchan_recv_open_i(&pi, e[3], &q, &s);
  done(&r);
  done(&q);
  mcapi_sclchan_connect_i(e[4], e[5], &r, &s);
  done(&r);
  mcapi_sclchan_send_open_i(&so, e[4], &r, &s);
  mcapi_sclchan_recv_open_i(&si, e[5], &q, &s);
  done(&r);
  done(&q);
  lvd_os_queue mail = queue_of(e[1], false), packets = queue_of(e[3], true),
               scalars = queue_of(e[5], true);
  uint32_t messages = 0, numbers = 0;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < 4; i++) {
      throw_in(&mail, e[1], e[0]);
      throw_in(&packets, 0, e[2]);
      throw_in(&scalars, 0, e[4]);
    }
    do { /* until it is empty */
      mcapi_msg_recv(e[1], in, sizeof in, &size, &s);
      if (s != MCAPI_SUCCESS) SAYS(s, MCAPI_TIMEOUT);
      CHECK(s != MCAPI_SUCCESS || size <= sizeof in);
      messages += s == MCAPI_SUCCESS;
    } while (s == MCAPI_SUCCESS);
    for (int i = 0; i < 8; i++) {
      void *packet;
      mcapi_pktchan_available(pi, &s);
      mcapi_pktchan_recv(pi, &packet, &size, &s);
      if (s == MCAPI_SUCCESS) {
        CHECK(size <= MCAPI_MAX_PACKET_SIZE);
        memcpy(in, packet, size);
        mcapi_pktchan_release(packet, &s);
        SAYS(s, MCAPI_SUCCESS);
      } else if (s != MCAPI_ERR_TRANSMISSION) {
        SAYS(s, MCAPI_TIMEOUT);
      }
      mcapi_sclchan_available(si, &s);
      mcapi_sclchan_recv_uint8(si, &s);
      if (s == MCAPI_ERR_SCL_SIZE) mcapi_sclchan_recv_uint64(si, &s);
      numbers += s == MCAPI_SUCCESS;
      if (s != MCAPI_SUCCESS && s != MCAPI_ERR_TRANSMISSION && s != MCAPI_ERR_SCL_SIZE)
        SAYS(s, MCAPI_TIMEOUT);
    }
    /* Loans and sends among random bytes: they succeed, or there is no room. */
    void *loan = lvd_mcapi_buffer_acquire(po, 100, &s);
    if (loan) lvd_mcapi_buffer_send(po, loan, 100, &s);
    if (s != MCAPI_SUCCESS && s != MCAPI_ERR_TRANSMISSION) SAYS(s, MCAPI_TIMEOUT);
    mcapi_sclchan_send_uint64(so, 7, &s);
    if (s != MCAPI_SUCCESS && s != MCAPI_ERR_TRANSMISSION) SAYS(s, MCAPI_TIMEOUT);
  }
  CHECK(messages > 0); /* some of the random messages were complete */
  lvd_os_queue_close(&mail);
  lvd_os_queue_close(&packets);
  lvd_os_queue_close(&scalars);
  printf("%u messages, %u scalars of junk\n", messages, numbers);
  mcapi_msg_send(e[0], e[1], "whole", 6, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_msg_recv(e[1], in, sizeof in, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(size == 6 && strcmp((char *)in, "whole") == 0);
  node_ends();
}
