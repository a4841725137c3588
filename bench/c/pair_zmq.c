/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* ZeroMQ, PUSH to PULL: ipc between processes, inproc in one. */
#include "pair.h"

#include <zmq.h>

static struct {
  void *context, *in, *out;
  _Alignas(64) unsigned char data[PAIR_BYTES_MAX];
} mine[PAIR_SIDES];
static void *context; /* of threads: the same */
static pid_t starter;
static int inproc;

static void make(void *shared) {
  (void)shared;
  starter = getpid();
  if (inproc) context = zmq_ctx_new();
}

static void name_of(char *out, size_t size, int side) {
  if (inproc)
    snprintf(out, size, "inproc://bench.%d", side);
  else
    snprintf(out, size, "ipc:///tmp/bench-%d.%d", (int)starter, side);
}

static void begin(int side, int other, size_t size) {
  char name[64];
  (void)size;
  mine[side].context = context ? context : zmq_ctx_new();
  mine[side].in = zmq_socket(mine[side].context, ZMQ_PULL);
  mine[side].out = zmq_socket(mine[side].context, ZMQ_PUSH);
  name_of(name, sizeof name, side);
  pair_must(zmq_bind(mine[side].in, name) == 0, "zmq_bind");
  name_of(name, sizeof name, other);
  pair_must(zmq_connect(mine[side].out, name) == 0, "zmq_connect");
}

static void put(int side, const void *data, size_t size) {
  pair_must(zmq_send(mine[side].out, data, size, 0) == (int)size, "zmq_send");
}

static uint64_t get(int side, size_t size) {
  uint64_t number;
  pair_must(zmq_recv(mine[side].in, mine[side].data, PAIR_BYTES_MAX, 0) == (int)size, "zmq_recv");
  memcpy(&number, mine[side].data, sizeof number);
  return number;
}

static void end(int side) {
  char name[64];
  name_of(name, sizeof name, side);
  zmq_close(mine[side].in);
  zmq_close(mine[side].out);
  if (!inproc) zmq_ctx_term(mine[side].context);
  if (!inproc) unlink(name + strlen("ipc://"));
}

int main(int argc, char **argv) {
  static const char usage[] = "WHERE SIZE TO_AND_FRO ONE_WAY";
  static const pair_carrier carrier = {0, make, begin, put, get, end};
  size_t size = bench_number(argc, argv, 2, usage);
  inproc = strcmp(argv[1], "threads") == 0 || strcmp(argv[1], "itself") == 0;
  return pair_main(&carrier, argv[1], size, bench_number(argc, argv, 3, usage),
                   bench_number(argc, argv, 4, usage));
}
