// SPDX-License-Identifier: Apache-2.0 OR MIT
// Measures boost::lockfree::spsc_queue between two pinned threads, in elements per second.
#include "../c/bench.h"

#include <boost/lockfree/spsc_queue.hpp>

#include <array>

struct wide {
  uint64_t word[8];
};
static uint32_t make(uint64_t i, uint32_t *) { return static_cast<uint32_t>(i); }
static wide make(uint64_t i, wide *) { return {{i, i, i, i, i, i, i, i}}; }
static uint64_t value(uint32_t element) { return element; }
static uint64_t value(const wide &element) {
  uint64_t sum = 0;
  for (uint64_t word : element.word) sum += word;
  return sum / 8;
}

template <typename T> struct pair {
  uint64_t count, group, sum = 0;
  boost::lockfree::spsc_queue<T> queue;
  pair(uint64_t n, uint64_t g, uint64_t capacity) : count(n), group(g), queue(capacity) {}
};

template <typename T> void *produce(void *argument) {
  auto &x = *static_cast<pair<T> *>(argument);
  if (x.group == 1) {
    for (uint64_t i = 0; i < x.count; i++)
      while (!x.queue.push(make(i, static_cast<T *>(nullptr)))) bench_poll();
    return nullptr;
  }
  std::array<T, 1024> buffer;
  for (uint64_t i = 0; i < x.count; i += x.group) {
    for (uint64_t k = 0; k < x.group; k++) buffer[k] = make(i + k, static_cast<T *>(nullptr));
    for (uint64_t done = 0; done < x.group;) {
      uint64_t n = x.queue.push(buffer.data() + done, x.group - done);
      if (n == 0) bench_poll();
      done += n;
    }
  }
  return nullptr;
}

template <typename T> void *consume(void *argument) {
  auto &x = *static_cast<pair<T> *>(argument);
  uint64_t sum = 0;
  std::array<T, 1024> buffer;
  for (uint64_t i = 0; i < x.count;) {
    uint64_t n = x.group == 1 ? x.queue.pop(buffer[0]) : x.queue.pop(buffer.data(), x.group);
    if (n == 0) bench_poll();
    for (uint64_t k = 0; k < n; k++) sum += value(buffer[k]);
    i += n;
  }
  x.sum = sum;
  return nullptr;
}

template <typename T> int measure(uint64_t group, uint64_t capacity, uint64_t count) {
  pair<T> x(count / group * group, group, capacity);
  double took = bench_pair(produce<T>, consume<T>, &x);
  uint64_t expected = 0;
  for (uint64_t i = 0; i < x.count; i++) expected += value(make(i, static_cast<T *>(nullptr)));
  bench_expect("the sum", x.sum, expected);
  bench_say("elements_per_s", static_cast<double>(x.count) / took);
  return 0;
}

int main(int argc, char **argv) {
  static const char usage[] = "SIZE GROUP CAPACITY COUNT";
  uint64_t size = bench_number(argc, argv, 1, usage), group = bench_number(argc, argv, 2, usage),
           capacity = bench_number(argc, argv, 3, usage),
           count = bench_number(argc, argv, 4, usage);
  return size == 64 ? measure<wide>(group, capacity, count)
                    : measure<uint32_t>(group, capacity, count);
}
