/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI with one node on a remote processor: messages, packets and scalars in both directions
 * between it and a thread of this process, and every kind of end; on QEMU, if it is installed, and
 * on the machine that is a process. */
#include "../support/bench.h"
#include "test_mcapi.h"

#include <levada/mcapi_window.h>
#include <levada/window.h>

#include "../amp/remote_hostile.h"

#ifndef LEVADA_REMOTE_NODE
#define LEVADA_REMOTE_NODE      "" /* no cross compiler */
#define LEVADA_REMOTE_HOSTILE   ""
#define LEVADA_REMOTE32_NODE    ""
#define LEVADA_REMOTE32_HOSTILE ""
#endif
#ifndef LEVADA_NATIVE_NODE
#define LEVADA_NATIVE_NODE "" /* not for this processor */
#endif

#ifndef LEVADA_NATIVE_HOSTILE
#define LEVADA_NATIVE_HOSTILE ""
#endif

static const char *image, *hostile_image;

static void on_machine(const char *emulator) {
  char command[80];
#ifdef LVD_EMULATED
  SKIP("an emulator within an emulator");
#endif
  if (!*LEVADA_REMOTE_NODE)
    SKIP("no riscv64-linux-gnu-gcc: there is no program for the other side");
  snprintf(command, sizeof command, "command -v %s >/dev/null", emulator);
  if (system(command) != 0) SKIP("no QEMU for it: install qemu-system-misc");
}

static void on_qemu(void) {
  on_machine("qemu-system-riscv64");
  image = "qemu:" LEVADA_REMOTE_NODE;
  hostile_image = "qemu:" LEVADA_REMOTE_HOSTILE;
}

static void on_qemu32(void) {
  on_machine("qemu-system-riscv32");
  image = "qemu32:" LEVADA_REMOTE32_NODE;
  hostile_image = "qemu32:" LEVADA_REMOTE32_HOSTILE;
}

static void on_native(void) {
  if (!*LEVADA_NATIVE_NODE) SKIP("the machine that is a process is there for x86-64");
  image = "native:" LEVADA_NATIVE_NODE;
  hostile_image = "native:" LEVADA_NATIVE_HOSTILE;
}

#define ON_BOTH(name)                                                                              \
  void test_mcapi_window_##name(void) {                                                            \
    on_qemu();                                                                                     \
    name();                                                                                        \
  }                                                                                                \
  void test_mcapi_window32_##name(void) {                                                          \
    on_qemu32();                                                                                   \
    name();                                                                                        \
  }                                                                                                \
  void test_mcapi_native_##name(void) {                                                            \
    on_native();                                                                                   \
    name();                                                                                        \
  }

static lvd_unit *load_image(bench *b, const char *name) {
  lvd_unit *u;
  lvd_status status = lvd_unit_load(b->app, name, NULL, &u);
  if (status != LVD_OK) fprintf(stderr, "%s\n", lvd_window_error_text());
  CHECK_EQ(status, LVD_OK);
  return u;
}

static lvd_unit *load_node(bench *b) { return load_image(b, image); }

static lvd_mcapi_remote *far_node(bench *b, lvd_unit *u, const char *procedure) {
  lvd_mcapi_remote *f;
  mcapi_domain_t domain = test_domain();
  CHECK_EQ(lvd_mcapi_remote_start(b->app, u, procedure, &domain, sizeof domain, &f), LVD_OK);
  return f;
}

static lvd_status end_of(lvd_mcapi_remote *f) {
  bool returned;
  lvd_status status = lvd_mcapi_remote_wait(f, -1, &returned);
  CHECK(returned);
  return status;
}

static void hears(mcapi_endpoint_t at, const char *words) {
  char text[16];
  size_t size;
  mcapi_status_t s;
  mcapi_msg_recv(at, text, sizeof text, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(size, strlen(words));
  CHECK(memcmp(text, words, size) == 0);
}

static const size_t sizes[] = {1, 2, 63, 64, 65, 1000, 4096, 16384, 16385, 40000, 65536};
enum { SIZES = sizeof sizes / sizeof *sizes };
static unsigned char out[MCAPI_MAX_MESSAGE_SIZE], in[MCAPI_MAX_MESSAGE_SIZE];

static void fill(int round, size_t size) {
  for (size_t i = 0; i < size; i++) out[i] = (unsigned char)(i * 31 + i / 256 + (size_t)round);
}

static void messages(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_node(&b);
  mcapi_status_t s;
  size_t size;
  node_is(1);
  lvd_mcapi_remote *f = far_node(&b, u, "node_messages");
  mcapi_endpoint_t mine = endpoint_at(1), to = endpoint_of(2, 1);
  hears(mine, "ready");
  for (int k = 0; k < SIZES; k++) {
    fill(k, sizes[k]);
    mcapi_msg_send(mine, to, out, sizes[k], 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_recv(mine, in, sizeof in, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(size, sizes[k]);
    for (size_t i = 0; i < size; i++) CHECK_EQ(in[i], (unsigned char)(out[i] + 1));
  }
  /* Many requests at once. */
  for (int k = 0; k < 8; k++) {
    mcapi_msg_send(mine, to, &k, sizeof k, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  for (int k = 0; k < 8; k++) {
    unsigned char got[sizeof k];
    mcapi_msg_recv(mine, got, sizeof got, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(got[0], k + 1);
  }
  mcapi_msg_send(mine, to, NULL, 0, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  memset(out, 9, 100);
  mcapi_msg_send(mine, to, out, 100, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(end_of(f), LVD_OK);
  node_ends();
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_BOTH(messages)

static void done(mcapi_request_t request, mcapi_status_t begun) {
  mcapi_status_t s;
  size_t size;
  if (begun != MCAPI_PENDING) SAYS(begun, MCAPI_SUCCESS);
  CHECK(mcapi_wait(&request, &size, MCAPI_TIMEOUT_INFINITE, &s));
  SAYS(s, MCAPI_SUCCESS);
}

static void packets(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_node(&b);
  mcapi_status_t s;
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t to;
  mcapi_pktchan_recv_hndl_t from;
  node_is(1);
  lvd_mcapi_remote *f = far_node(&b, u, "node_packets");
  mcapi_endpoint_t sends = endpoint_at(2), receives = endpoint_at(3);
  mcapi_pktchan_connect_i(sends, endpoint_of(2, 2), &r, &s);
  done(r, s);
  mcapi_pktchan_send_open_i(&to, sends, &r, &s);
  done(r, s);
  mcapi_pktchan_recv_open_i(&from, receives, &r, &s);
  done(r, s);
  for (int k = SIZES - 1; k >= 0; k--) {
    for (int i = 0; i < 2; i++) {
      fill(k + i, sizes[k]);
      mcapi_pktchan_send(to, out, sizes[k], &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    for (int i = 0; i < 2; i++) {
      void *packet;
      size_t size;
      mcapi_pktchan_recv(from, &packet, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK_EQ(size, sizes[k]);
      fill(k + i, size);
      for (size_t j = 0; j < size; j++) CHECK_EQ(((unsigned char *)packet)[j], out[j] ^ 0x55);
      mcapi_pktchan_release(packet, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
  }
  mcapi_pktchan_send_close_i(to, &r, &s);
  done(r, s);
  mcapi_pktchan_recv_close_i(from, &r, &s);
  done(r, s);
  CHECK_EQ(end_of(f), LVD_OK);
  node_ends();
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_BOTH(packets)

static void scalars(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_node(&b);
  mcapi_status_t s;
  mcapi_request_t r;
  mcapi_sclchan_send_hndl_t to;
  mcapi_sclchan_recv_hndl_t from;
  node_is(1);
  lvd_mcapi_remote *f = far_node(&b, u, "node_scalars");
  mcapi_endpoint_t sends = endpoint_at(2), receives = endpoint_at(3);
  mcapi_sclchan_connect_i(sends, endpoint_of(2, 2), &r, &s);
  done(r, s);
  mcapi_sclchan_send_open_i(&to, sends, &r, &s);
  done(r, s);
  mcapi_sclchan_recv_open_i(&from, receives, &r, &s);
  done(r, s);
  for (int k = 20; k >= 0; k--) {
    uint64_t x = (uint64_t)k * 0x0123456789abcdef;
    mcapi_sclchan_send_uint8(to, (uint8_t)x, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_sclchan_send_uint16(to, (uint16_t)x, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_sclchan_send_uint32(to, (uint32_t)x, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_sclchan_send_uint64(to, x, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(mcapi_sclchan_recv_uint8(from, &s), (uint8_t)~x);
    CHECK_EQ(mcapi_sclchan_recv_uint16(from, &s), (uint16_t)~x);
    CHECK_EQ(mcapi_sclchan_recv_uint32(from, &s), (uint32_t)~x);
    CHECK_EQ(mcapi_sclchan_recv_uint64(from, &s), ~x);
    SAYS(s, MCAPI_SUCCESS);
  }
  mcapi_sclchan_send_uint32(to, 77, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_sclchan_send_close_i(to, &r, &s);
  done(r, s);
  mcapi_sclchan_recv_close_i(from, &r, &s);
  done(r, s);
  CHECK_EQ(end_of(f), LVD_OK);
  node_ends();
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_BOTH(scalars)

/* The node has ended, and its number can be used again. */
static void is_gone(void) {
  mcapi_status_t s;
  mcapi_endpoint_get(test_domain(), 2, 1, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS(s, MCAPI_TIMEOUT);
}

static void ends(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_node(&b);
  mcapi_status_t s;
  lvd_call *c;
  bool returned;
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1);
  for (int round = 0; round < 3; round++) {
    lvd_mcapi_remote *f = far_node(&b, u, "node_waits");
    hears(mine, "waits");
    CHECK_EQ(lvd_mcapi_remote_wait(f, 0, &returned), LVD_E_TIMEOUT);
    CHECK(!returned);
    lvd_mcapi_remote_cancel(f);
    CHECK_EQ(end_of(f), LVD_E_CANCELLED);
    is_gone();
    CHECK_EQ(end_of(far_node(&b, u, "node_returns")), LVD_OK);
  }
  CHECK_EQ(end_of(far_node(&b, u, "nobody_knows_it")), LVD_E_NOT_FOUND);
  CHECK_EQ(lvd_call_start(u, "node_without", NULL, 0, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
  lvd_mcapi_remote *f = far_node(&b, u, "node_fails");
  hears(mine, "fails");
  mcapi_endpoint_t to = endpoint_of(2, 1);
  mcapi_msg_send(mine, to, "now", 3, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(end_of(f), LVD_E_FAULT);
  is_gone();
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  /* Its processor dies while the agent waits for a message. */
  u = load_node(&b);
  f = far_node(&b, u, "node_waits");
  hears(mine, "waits");
  CHECK_EQ(kill(lvd_unit_process(u), SIGKILL), 0);
  CHECK_EQ(end_of(f), LVD_E_PEER_GONE);
  is_gone();
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  node_ends();
  bench_free(&b);
}
ON_BOTH(ends)

/* Random bytes as calls, calls with random arguments, too many data, replies that are not read:
 * afterwards the node has ended, and the domain and the agent's process work as before. */
static void hostile(void) {
  static const enum hostile_how once[] = {HOSTILE_NOISE, HOSTILE_LARGE, HOSTILE_CUT, HOSTILE_DEAF,
                                          HOSTILE_SILENT};
  const char *rounds = getenv("LVD_ROUNDS");
  uint32_t many = rounds ? (uint32_t)atoi(rounds) : 20;
  bench b = bench_of(2);
  lvd_unit *u = load_image(&b, hostile_image);
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1);
  for (uint32_t i = 0; i < COUNT(once) + many; i++) {
    hostile_way way = {.how = i < COUNT(once) ? once[i] : HOSTILE_CALLS,
                       .domain = test_domain(),
                       .seed = 0x9e3779b97f4a7c15u * (i + 1)};
    lvd_mcapi_remote *f;
    CHECK_EQ(lvd_mcapi_remote_start(b.app, u, "any", &way, sizeof way, &f), LVD_OK);
    lvd_status status = end_of(f);
    if (status != LVD_OK && status != LVD_E_PEER_GONE)
      fprintf(stderr, "way %u, round %u: %s\n", way.how, i, lvd_status_name(status));
    CHECK(status == LVD_OK || status == LVD_E_PEER_GONE);
    CHECK_EQ(lvd_unit_state(u), LVD_OK);
    is_gone();
  }
  /* A node that overwrites the window is given up, or useless until it is killed. */
  hostile_way way = {.how = HOSTILE_SCRIBBLES, .domain = test_domain(), .seed = 4711};
  lvd_mcapi_remote *f;
  bool returned;
  CHECK_EQ(lvd_mcapi_remote_start(b.app, u, "any", &way, sizeof way, &f), LVD_OK);
  lvd_status status = lvd_mcapi_remote_wait(f, 300000000, &returned);
  kill(lvd_unit_process(u), SIGKILL);
  if (!returned) status = lvd_mcapi_remote_wait(f, -1, &returned);
  CHECK(returned);
  CHECK(status != LVD_E_STOPPED);
  is_gone();
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  /* Afterwards a correct one works as before. */
  u = load_node(&b);
  f = far_node(&b, u, "node_waits");
  hears(mine, "waits");
  lvd_mcapi_remote_cancel(f);
  CHECK_EQ(end_of(f), LVD_E_CANCELLED);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  node_ends();
  bench_free(&b);
}
ON_BOTH(hostile)
