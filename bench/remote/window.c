/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The program behind the window for c/window.c. */
#include <levada/process.h>
#include <levada/stream.h>
#include <mcapi.h>
#include <string.h>

static lvd_status remote_nothing(lvd_call_frame *f) {
  (void)f;
  return LVD_OK;
}
LVD_PROCEDURE(remote_nothing)

/* Sends each element of the stream "to" back on "fro", until it ends. */
static lvd_status remote_echo(lvd_call_frame *f) {
  lvd_stream *to, *fro;
  lvd_stream_options o = {.name = "to", .elem_size = 8, .capacity = 64, .threshold = 1};
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &to);
  (void)f;
  o.name = "fro";
  if (status == LVD_OK) status = lvd_stream_open(lvd_unit_parent(), &o, &fro);
  if (status != LVD_OK) return status;
  for (uint64_t x; (status = lvd_stream_get(to, &x, 8)) == LVD_OK;) {
    lvd_stream_pop(to);
    if ((status = lvd_stream_put(fro, &x, 8)) != LVD_OK) break;
    lvd_stream_flush(fro);
  }
  lvd_stream_destroy(to);
  lvd_stream_destroy(fro);
  return status == LVD_E_EOF ? LVD_OK : status;
}
LVD_PROCEDURE(remote_echo)

/* Opens the stream "to"; the argument is the size of its elements, in bytes. */
static lvd_status open_input(const lvd_call_frame *f, uint32_t *size, lvd_stream **to) {
  memcpy(size, f->argument, sizeof *size);
  const lvd_stream_options o = {.name = "to", .elem_size = *size};
  return lvd_stream_open(lvd_unit_parent(), &o, to);
}

/* Ends a procedure that has read `to` until `status`: its result is `count`. */
static lvd_status finish(lvd_call_frame *f, lvd_stream *to, uint64_t count, lvd_status status) {
  lvd_stream_destroy(to);
  memcpy(f->result, &count, sizeof count);
  f->result_size = sizeof count;
  return status == LVD_E_EOF ? LVD_OK : status;
}

/* Reads the whole stream; returns the number of elements with correct first and last bytes. */
static lvd_status remote_sink(lvd_call_frame *f) {
  static unsigned char element[4096];
  uint32_t size;
  uint64_t good = 0;
  lvd_stream *to;
  lvd_status status = open_input(f, &size, &to);
  if (status != LVD_OK) return status;
  while ((status = lvd_stream_get(to, element, size)) == LVD_OK) {
    good += element[0] == (unsigned char)good && element[size - 1] == (unsigned char)good;
    lvd_stream_pop(to);
  }
  return finish(f, to, good, status);
}
LVD_PROCEDURE(remote_sink)

/* Releases all elements of the stream unread, and returns their number. */
static lvd_status remote_gives_back(lvd_call_frame *f) {
  uint32_t size;
  uint64_t count = 0;
  lvd_stream *to;
  lvd_status status = open_input(f, &size, &to);
  if (status != LVD_OK) return status;
  while ((status = lvd_stream_wait_elements(to, 1, -1)) == LVD_OK) {
    uint32_t n = lvd_elements(&to->consumer, 1);
    lvd_get_done(&to->consumer, n);
    lvd_stream_pop(to);
    count += n;
  }
  return finish(f, to, count, status);
}
LVD_PROCEDURE(remote_gives_back)

/* ---- an MCAPI node: 2 of the domain that the argument says ------------------------------------ */

static unsigned char buffer[MCAPI_MAX_MESSAGE_SIZE];

static mcapi_endpoint_t begins(const lvd_call_frame *f, mcapi_domain_t *domain) {
  mcapi_info_t info;
  mcapi_status_t s;
  memcpy(domain, f->argument, sizeof *domain);
  mcapi_initialize(*domain, 2, NULL, NULL, &info, &s);
  return mcapi_endpoint_create(1, &s);
}

/* Sends each message back, until an empty one arrives. */
static lvd_status remote_messages(lvd_call_frame *f) {
  mcapi_domain_t domain;
  mcapi_status_t s;
  size_t size;
  mcapi_endpoint_t mine = begins(f, &domain);
  mcapi_endpoint_t to = mcapi_endpoint_get(domain, 1, 1, MCAPI_TIMEOUT_INFINITE, &s);
  for (;;) {
    mcapi_msg_recv(mine, buffer, sizeof buffer, &size, &s);
    if (s != MCAPI_SUCCESS || !size) break;
    mcapi_msg_send(mine, to, buffer, size, 0, &s);
  }
  mcapi_finalize(&s);
  return s == MCAPI_SUCCESS ? LVD_OK : LVD_E_STATE;
}
LVD_PROCEDURE(remote_messages)

static lvd_status remote_packets(lvd_call_frame *f) {
  mcapi_domain_t domain;
  mcapi_status_t s;
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  void *packet;
  size_t size;
  mcapi_pktchan_recv_open_i(&in, begins(f, &domain), &r, &s);
  mcapi_wait(&r, &size, MCAPI_TIMEOUT_INFINITE, &s);
  for (;;) {
    mcapi_pktchan_recv(in, &packet, &size, &s);
    if (s != MCAPI_SUCCESS) break;
    mcapi_pktchan_release(packet, &s);
    if (!size) break;
  }
  mcapi_finalize(&s);
  return s == MCAPI_SUCCESS ? LVD_OK : LVD_E_STATE;
}
LVD_PROCEDURE(remote_packets)
