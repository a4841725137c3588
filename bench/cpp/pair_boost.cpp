// SPDX-License-Identifier: Apache-2.0 OR MIT
// boost::interprocess::message_queue, with blocking calls.
#include "../c/pair.h"

#include <boost/interprocess/ipc/message_queue.hpp>

#include <memory>
#include <string>

using boost::interprocess::message_queue;

namespace {
struct side_of {
  std::unique_ptr<message_queue> in, out;
  alignas(64) unsigned char data[PAIR_BYTES_MAX];
};
side_of mine[2];
pid_t starter;

std::string name_of(int side) {
  return "bench-" + std::to_string(starter) + "." + std::to_string(side);
}

void make(void *) { starter = getpid(); }

std::unique_ptr<message_queue> open_queue(int side, size_t size) {
  return std::make_unique<message_queue>(boost::interprocess::open_or_create, name_of(side).c_str(),
                                         64, size);
}

void begin(int side, int other, size_t size) {
  mine[side].in = open_queue(side, size);
  mine[side].out = open_queue(other, size);
}

void put(int side, const void *data, size_t size) { mine[side].out->send(data, size, 0); }

uint64_t get(int side, size_t) {
  uint64_t number;
  message_queue::size_type got;
  unsigned priority;
  mine[side].in->receive(mine[side].data, PAIR_BYTES_MAX, got, priority);
  memcpy(&number, mine[side].data, sizeof number);
  return number;
}

void end(int side) { message_queue::remove(name_of(side).c_str()); }
} // namespace

int main(int argc, char **argv) {
  static const char usage[] = "WHERE SIZE TO_AND_FRO ONE_WAY";
  static const pair_carrier carrier = {0, make, begin, put, get, end};
  size_t size = bench_number(argc, argv, 2, usage);
  return pair_main(&carrier, argv[1], size, bench_number(argc, argv, 3, usage),
                   bench_number(argc, argv, 4, usage));
}
