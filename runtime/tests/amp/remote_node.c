/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Remote side of the MCAPI window tests: node 2 of the domain in the argument, which returns to
 * node 1 what it receives. On an unexpected status it returns the line number. */
#include <levada/process.h>
#include <mcapi.h>
#include <string.h>

#define HAS(what)                                                                                  \
  do {                                                                                             \
    if (!(what)) return (lvd_status)(1000 + __LINE__);                                             \
  } while (0)
#define SUCCEEDS(status) HAS((status) == MCAPI_SUCCESS)

static unsigned char buffer[MCAPI_MAX_MESSAGE_SIZE];
static mcapi_domain_t domain;

static lvd_status begins(const lvd_call_frame *f) {
  mcapi_info_t info = {0};
  mcapi_status_t s;
  HAS(f->argument_size == sizeof domain);
  memcpy(&domain, f->argument, sizeof domain);
  mcapi_endpoint_create(1, &s);
  HAS(s == MCAPI_ERR_NODE_NOTINIT);
  mcapi_initialize(domain, 2, NULL, NULL, &info, &s);
  SUCCEEDS(s);
  HAS(info.mcapi_version == MCAPI_VERSION);
  mcapi_initialize(domain, 2, NULL, NULL, &info, &s);
  HAS(s == MCAPI_ERR_NODE_INITIALIZED);
  return LVD_OK;
}

static mcapi_endpoint_t own(mcapi_port_t port) {
  mcapi_status_t s;
  return mcapi_endpoint_create(port, &s);
}

static mcapi_endpoint_t other(mcapi_port_t port) {
  mcapi_status_t s;
  return mcapi_endpoint_get(domain, 1, port, MCAPI_TIMEOUT_INFINITE, &s);
}

static lvd_status ends(void) {
  mcapi_status_t s;
  mcapi_finalize(&s);
  SUCCEEDS(s);
  mcapi_finalize(&s);
  HAS(s == MCAPI_ERR_NODE_NOTINIT);
  return LVD_OK;
}

/* Returns messages with each byte incremented, until an empty one arrives. */
static lvd_status node_messages(lvd_call_frame *f) {
  mcapi_status_t s;
  lvd_status status = begins(f);
  if (status != LVD_OK) return status;
  mcapi_endpoint_t to = other(1), from = own(1);
  HAS(to && from);
  mcapi_timeout_t soon = 1, never = MCAPI_TIMEOUT_INFINITE, said = 0;
  size_t size;
  mcapi_endpoint_set_attribute(from, MCAPI_ENDP_ATTR_TIMEOUT, &soon, sizeof soon, &s);
  SUCCEEDS(s);
  mcapi_endpoint_get_attribute(from, MCAPI_ENDP_ATTR_TIMEOUT, &said, sizeof said, &s);
  SUCCEEDS(s);
  HAS(said == soon);
  mcapi_msg_recv(from, buffer, sizeof buffer, &size, &s);
  HAS(s == MCAPI_TIMEOUT);
  HAS(mcapi_msg_available(from, &s) == 0);
  mcapi_endpoint_set_attribute(from, MCAPI_ENDP_ATTR_TIMEOUT, &never, sizeof never, &s);
  SUCCEEDS(s);
  mcapi_msg_send(from, to, buffer, MCAPI_MAX_MESSAGE_SIZE + 1, 0, &s);
  HAS(s == MCAPI_ERR_MSG_SIZE);
  mcapi_msg_send(from, to, "ready", 5, 0, &s);
  SUCCEEDS(s);
  for (;;) {
    mcapi_msg_recv(from, buffer, sizeof buffer, &size, &s);
    SUCCEEDS(s);
    if (size == 0) break;
    for (size_t i = 0; i < size; i++) buffer[i]++;
    mcapi_msg_send(from, to, buffer, size, 0, &s);
    SUCCEEDS(s);
  }
  /* Truncated, and no byte is written beyond. */
  memset(buffer, 7, 100);
  mcapi_msg_recv(from, buffer, 70, &size, &s);
  HAS(s == MCAPI_ERR_MSG_TRUNCATED);
  for (int i = 0; i < 100; i++) HAS(buffer[i] == (i < 70 ? 9 : 7));
  return ends();
}
LVD_PROCEDURE(node_messages)

static bool done(mcapi_request_t request, mcapi_status_t begun) {
  mcapi_status_t s = MCAPI_ERR_GENERAL;
  size_t size;
  if (begun != MCAPI_SUCCESS && begun != MCAPI_PENDING) return false;
  return mcapi_wait(&request, &size, MCAPI_TIMEOUT_INFINITE, &s) && s == MCAPI_SUCCESS;
}

/* Receives at port 2 and returns from port 3 to the other's port 3, until a packet of one byte.
 * Several are held. */
static lvd_status node_packets(lvd_call_frame *f) {
  mcapi_status_t s;
  mcapi_request_t request;
  mcapi_pktchan_recv_hndl_t in;
  mcapi_pktchan_send_hndl_t out;
  lvd_status status = begins(f);
  if (status != LVD_OK) return status;
  mcapi_endpoint_t here = own(2), from = own(3), to = other(3);
  HAS(here && from && to);
  mcapi_pktchan_recv_open_i(&in, here, &request, &s);
  HAS(done(request, s)); /* the other side connects it */
  mcapi_pktchan_connect_i(from, to, &request, &s);
  HAS(done(request, s));
  mcapi_pktchan_send_open_i(&out, from, &request, &s);
  HAS(done(request, s));
  for (size_t size = 0; size != 1;) {
    void *packet[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
      mcapi_pktchan_recv(in, &packet[i], &sizes[i], &s);
      SUCCEEDS(s);
    }
    HAS(packet[0] != packet[1]);
    for (int i = 0; i < 2; i++) {
      for (size_t k = 0; k < sizes[i]; k++) ((unsigned char *)packet[i])[k] ^= 0x55;
      mcapi_pktchan_send(out, packet[i], sizes[i], &s);
      SUCCEEDS(s);
      HAS(mcapi_pktchan_release_test(packet[i], &s));
      mcapi_pktchan_release(packet[i], &s);
      SUCCEEDS(s);
      mcapi_pktchan_release(packet[i], &s);
      HAS(s == MCAPI_ERR_BUF_INVALID);
    }
    size = sizes[1];
  }
  mcapi_pktchan_send_close_i(out, &request, &s);
  HAS(done(request, s));
  mcapi_pktchan_recv_close_i(in, &request, &s);
  HAS(done(request, s));
  return ends();
}
LVD_PROCEDURE(node_packets)

static lvd_status node_scalars(lvd_call_frame *f) {
  mcapi_status_t s;
  mcapi_request_t request;
  mcapi_sclchan_recv_hndl_t in;
  mcapi_sclchan_send_hndl_t out;
  lvd_status status = begins(f);
  if (status != LVD_OK) return status;
  mcapi_endpoint_t here = own(2), from = own(3), to = other(3);
  HAS(here && from && to);
  mcapi_sclchan_recv_open_i(&in, here, &request, &s);
  HAS(done(request, s));
  mcapi_sclchan_connect_i(from, to, &request, &s);
  HAS(done(request, s));
  mcapi_sclchan_send_open_i(&out, from, &request, &s);
  HAS(done(request, s));
  for (uint64_t x = 1; x;) {
    mcapi_sclchan_send_uint8(out, (uint8_t)~mcapi_sclchan_recv_uint8(in, &s), &s);
    SUCCEEDS(s);
    mcapi_sclchan_send_uint16(out, (uint16_t)~mcapi_sclchan_recv_uint16(in, &s), &s);
    SUCCEEDS(s);
    mcapi_sclchan_send_uint32(out, ~mcapi_sclchan_recv_uint32(in, &s), &s);
    SUCCEEDS(s);
    x = mcapi_sclchan_recv_uint64(in, &s);
    SUCCEEDS(s);
    mcapi_sclchan_send_uint64(out, ~x, &s);
    SUCCEEDS(s);
  }
  /* A scalar of another size stays in the channel. */
  mcapi_sclchan_recv_uint8(in, &s);
  HAS(s == MCAPI_ERR_SCL_SIZE);
  HAS(mcapi_sclchan_available(in, &s) == 1);
  HAS(mcapi_sclchan_recv_uint32(in, &s) == 77);
  mcapi_sclchan_send_close_i(out, &request, &s);
  HAS(done(request, s));
  mcapi_sclchan_recv_close_i(in, &request, &s);
  HAS(done(request, s));
  return ends();
}
LVD_PROCEDURE(node_scalars)

/* Sends `text`, after which the call may be cancelled, and waits for a message. */
static lvd_status sends_and_receives(const lvd_call_frame *f, const char *text,
                                     mcapi_status_t *received) {
  mcapi_status_t s;
  size_t size;
  lvd_status status = begins(f);
  if (status != LVD_OK) return status;
  mcapi_endpoint_t from = own(1);
  mcapi_msg_send(from, other(1), text, strlen(text), 0, &s);
  mcapi_msg_recv(from, buffer, sizeof buffer, &size, received);
  return LVD_OK;
}

/* Receives nothing, until it is cancelled. */
static lvd_status node_waits(lvd_call_frame *f) {
  mcapi_status_t received;
  lvd_status status = sends_and_receives(f, "waits", &received);
  if (status != LVD_OK) return status;
  HAS(received != MCAPI_SUCCESS);
  return LVD_E_CANCELLED;
}
LVD_PROCEDURE(node_waits)

/* Writes to an invalid address after it has sent a message and received one. */
static lvd_status node_fails(lvd_call_frame *f) {
  mcapi_status_t received;
  lvd_status status = sends_and_receives(f, "fails", &received);
  if (status != LVD_OK) return status;
  *(volatile uint32_t *)(uintptr_t)0x40000000000 = 1;
  return LVD_OK;
}
LVD_PROCEDURE(node_fails)

/* Returns without finalizing. */
static lvd_status node_returns(lvd_call_frame *f) {
  lvd_status status = begins(f);
  if (status != LVD_OK) return status;
  HAS(own(1));
  return LVD_OK;
}
LVD_PROCEDURE(node_returns)

/* Called like any procedure: it has no agent. */
static lvd_status node_without(lvd_call_frame *f) {
  mcapi_status_t s;
  (void)f;
  mcapi_finalize(&s);
  HAS(s == MCAPI_ERR_NODE_NOTINIT);
  return LVD_OK;
}
LVD_PROCEDURE(node_without)
