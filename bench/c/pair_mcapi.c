/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI: messages, packets that are copied on both sides, packets that are filled and read in place
 * (`loans`), and scalars of 64 bits. WAIT is `default` or `sleep`. `idle` is the CPU time of two
 * processes that wait for a message and a packet, and of their threads. */
#include "pair.h"

#include <levada/mcapi_ext.h>
#include <sys/resource.h>

enum { MAIL = 1, OUT, IN };
static struct {
  mcapi_endpoint_t mail, to;
  uint32_t out, in; /* handles of channels */
  _Alignas(64) unsigned char data[PAIR_BYTES_MAX];
} mine[PAIR_SIDES];
static mcapi_domain_t domain;
static int threads_sleep, scalars;

static void must(mcapi_status_t status, const char *what) {
  char text[64];
  if (status == MCAPI_SUCCESS || status == MCAPI_PENDING) return;
  fprintf(stderr, "%s: %s\n", what, mcapi_display_status(status, text, sizeof text));
  exit(1);
}

static mcapi_endpoint_t endpoint(mcapi_port_t port) {
  mcapi_status_t status;
  mcapi_endpoint_t e = mcapi_endpoint_create(port, &status);
  must(status, "mcapi_endpoint_create");
  if (threads_sleep) lvd_mcapi_set_wait_policy(e, LVD_MCAPI_SLEEP, 0, &status);
  must(status, "lvd_mcapi_set_wait_policy");
  return e;
}
static mcapi_endpoint_t endpoint_of(int side, mcapi_port_t port) {
  mcapi_status_t status;
  mcapi_endpoint_t e = mcapi_endpoint_get(domain, (mcapi_node_t)side, port, 20000, &status);
  must(status, "mcapi_endpoint_get");
  return e;
}
static void finish(mcapi_request_t *request) {
  mcapi_status_t status;
  size_t size;
  mcapi_wait(request, &size, 20000, &status);
  must(status, "mcapi_wait");
}

static void make(void *shared) {
  (void)shared;
  domain = (mcapi_domain_t)getpid();
}

static void begin_messages(int side, int other, size_t size) {
  mcapi_status_t status;
  mcapi_info_t info;
  (void)size;
  mcapi_initialize(domain, (mcapi_node_t)side, NULL, NULL, &info, &status);
  must(status, "mcapi_initialize");
  mine[side].mail = endpoint(MAIL);
  mine[side].to = endpoint_of(other, MAIL);
}

static void begin_channels(int side, int other, size_t size) {
  mcapi_status_t status;
  mcapi_request_t r[3];
  begin_messages(side, other, size);
  mcapi_endpoint_t in = endpoint(IN), out = endpoint(OUT), to = endpoint_of(other, IN);
  if (scalars) {
    mcapi_sclchan_connect_i(out, to, &r[0], &status);
    must(status, "mcapi_sclchan_connect_i");
    mcapi_sclchan_send_open_i(&mine[side].out, out, &r[1], &status);
    mcapi_sclchan_recv_open_i(&mine[side].in, in, &r[2], &status);
  } else {
    mcapi_pktchan_connect_i(out, to, &r[0], &status);
    must(status, "mcapi_pktchan_connect_i");
    mcapi_pktchan_send_open_i(&mine[side].out, out, &r[1], &status);
    mcapi_pktchan_recv_open_i(&mine[side].in, in, &r[2], &status);
  }
  must(status, "open");
  for (int i = 0; i < 3; i++) finish(&r[i]);
}

static void send_message(int side, const void *data, size_t size) {
  mcapi_status_t status;
  mcapi_msg_send(mine[side].mail, mine[side].to, data, size, 1, &status);
  must(status, "mcapi_msg_send");
}
static uint64_t receive_message(int side, size_t size) {
  mcapi_status_t status;
  uint64_t number;
  mcapi_msg_recv(mine[side].mail, mine[side].data, sizeof mine[side].data, &size, &status);
  must(status, "mcapi_msg_recv");
  memcpy(&number, mine[side].data, sizeof number);
  return number;
}

static void send_packet(int side, const void *data, size_t size) {
  mcapi_status_t status;
  mcapi_pktchan_send(mine[side].out, data, size, &status);
  must(status, "mcapi_pktchan_send");
}
static void send_loan(int side, const void *data, size_t size) {
  mcapi_status_t status;
  void *to = lvd_mcapi_buffer_acquire(mine[side].out, size, &status);
  must(status, "lvd_mcapi_buffer_acquire");
  memcpy(to, data, size);
  lvd_mcapi_buffer_send(mine[side].out, to, size, &status);
  must(status, "lvd_mcapi_buffer_send");
}
static void *packet(int side, size_t *size) {
  mcapi_status_t status;
  void *at = NULL;
  mcapi_pktchan_recv(mine[side].in, &at, size, &status);
  must(status, "mcapi_pktchan_recv");
  return at;
}
static void release(void *at) {
  mcapi_status_t status;
  mcapi_pktchan_release(at, &status);
  must(status, "mcapi_pktchan_release");
}
static uint64_t receive_packet(int side, size_t size) {
  uint64_t number;
  void *at = packet(side, &size);
  memcpy(mine[side].data, at, size);
  release(at);
  memcpy(&number, mine[side].data, sizeof number);
  return number;
}
static uint64_t read_packet(int side, size_t size) {
  uint64_t number;
  unsigned char *at = (unsigned char *)packet(side, &size);
  memcpy(&number, at, sizeof number);
  for (size_t i = 0; i < size; i += 64) (void)*(volatile unsigned char *)&at[i];
  release(at);
  return number;
}

static void send_scalar(int side, const void *data, size_t size) {
  mcapi_status_t status;
  uint64_t number;
  (void)size;
  memcpy(&number, data, sizeof number);
  mcapi_sclchan_send_uint64(mine[side].out, number, &status);
  must(status, "mcapi_sclchan_send_uint64");
}
static uint64_t receive_scalar(int side, size_t size) {
  mcapi_status_t status;
  (void)size;
  uint64_t number = mcapi_sclchan_recv_uint64(mine[side].in, &status);
  must(status, "mcapi_sclchan_recv_uint64");
  return number;
}

static void end(int side) {
  mcapi_status_t status;
  (void)side;
  mcapi_finalize(&status);
  must(status, "mcapi_finalize");
}

static double used(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int idle(long ms) {
  mcapi_status_t status;
  mcapi_request_t r;
  size_t size;
  int pipes[2];
  double others;
  make(NULL);
  pair_must(pipe(pipes) == 0, "pipe");
  pid_t child = fork();
  pair_must(child >= 0, "fork");
  int side = child == 0;
  begin_channels(side, !side, 8);
  mcapi_msg_recv_i(mine[side].mail, mine[side].data, PAIR_BYTES_MAX, &r, &status);
  must(status, "mcapi_msg_recv_i");
  mcapi_wait(&r, &size, 100, &status); /* so that it sleeps when the measurement begins */
  double before = used();
  mcapi_wait(&r, &size, (mcapi_timeout_t)ms, &status);
  if (status != MCAPI_TIMEOUT)
    must(status == MCAPI_SUCCESS ? MCAPI_ERR_GENERAL : status, "mcapi_wait");
  double cpu = used() - before;
  if (child == 0) {
    pair_must(write(pipes[1], &cpu, sizeof cpu) == sizeof cpu, "write");
  } else {
    pair_must(read(pipes[0], &others, sizeof others) == sizeof others, "read");
    bench_say("cpu_us", cpu + others);
  }
  end(side);
  if (child) wait(NULL);
  return 0;
}

int main(int argc, char **argv) {
  static const char usage[] =
      "messages|packets|loans|scalars WAIT WHERE SIZE TO_AND_FRO ONE_WAY | idle MS";
  static const struct {
    const char *word;
    pair_carrier carrier;
  } known[] = {{"messages", {0, make, begin_messages, send_message, receive_message, end}},
               {"packets", {0, make, begin_channels, send_packet, receive_packet, end}},
               {"loans", {0, make, begin_channels, send_loan, read_packet, end}},
               {"scalars", {0, make, begin_channels, send_scalar, receive_scalar, end}}};
  if (argc > 2 && strcmp(argv[1], "idle") == 0)
    return idle((long)bench_number(argc, argv, 2, usage));
  for (size_t i = 0; i < sizeof known / sizeof *known && argc > 3; i++) {
    if (strcmp(argv[1], known[i].word) != 0) continue;
    threads_sleep = strcmp(argv[2], "sleep") == 0;
    scalars = i == 3;
    return pair_main(&known[i].carrier, argv[3], bench_number(argc, argv, 4, usage),
                     bench_number(argc, argv, 5, usage), bench_number(argc, argv, 6, usage));
  }
  fprintf(stderr, "usage: %s %s\n", argv[0], usage);
  return 2;
}
