/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Plain POSIX message queues, with blocking calls. Messages longer than the system's limit
 * (fs.mqueue.msgsize_max) are refused. */
#include "pair.h"

#include <fcntl.h>
#include <mqueue.h>

static struct {
  mqd_t in, out;
  _Alignas(64) unsigned char data[PAIR_BYTES_MAX];
} mine[PAIR_SIDES];
static pid_t starter;

static void make(void *shared) {
  (void)shared;
  starter = getpid();
}

static mqd_t open_queue(int side, size_t size) {
  char name[64];
  struct mq_attr a = {.mq_maxmsg = 10, .mq_msgsize = (long)size};
  snprintf(name, sizeof name, "/bench-%d.%d", (int)starter, side);
  mqd_t id = mq_open(name, O_RDWR | O_CREAT, 0600, &a);
  pair_must(id != (mqd_t)-1, "mq_open");
  return id;
}

static void begin(int side, int other, size_t size) {
  mine[side].in = open_queue(side ? 1 : 0, size);
  mine[side].out = other == side ? mine[side].in : open_queue(other, size);
}

static void put(int side, const void *data, size_t size) {
  pair_must(mq_send(mine[side].out, (const char *)data, size, 0) == 0, "mq_send");
}

static uint64_t get(int side, size_t size) {
  uint64_t number;
  pair_must(mq_receive(mine[side].in, (char *)mine[side].data, size, NULL) == (ssize_t)size,
            "mq_receive");
  memcpy(&number, mine[side].data, sizeof number);
  return number;
}

static void end(int side) {
  char name[64];
  snprintf(name, sizeof name, "/bench-%d.%d", (int)starter, side ? 1 : 0);
  mq_unlink(name);
}

int main(int argc, char **argv) {
  static const char usage[] = "WHERE SIZE TO_AND_FRO ONE_WAY";
  static const pair_carrier carrier = {0, make, begin, put, get, end};
  size_t size = bench_number(argc, argv, 2, usage);
  return pair_main(&carrier, argv[1], size, bench_number(argc, argv, 3, usage),
                   bench_number(argc, argv, 4, usage));
}
