// SPDX-License-Identifier: Apache-2.0 OR MIT
// The five trivial stages as a pipeline and as a flow graph of oneTBB.
//
//   pipeline_tbb KIND WORKERS TOKENS WIDTH
//
// KIND: pipeline (all stages in order), parallel (the middle stages in parallel), graph (serial
// nodes), lightweight. A token is WIDTH elements: the element itself if WIDTH is 1, otherwise a pointer.
#include "../c/bench.h"
#include "../c/pipeline.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>

#include <string>
#include <vector>

namespace flow = oneapi::tbb::flow;
using oneapi::tbb::filter_mode;
using oneapi::tbb::flow_control;
using oneapi::tbb::make_filter;

struct Wide {
  uint32_t element[64];
};

// The two kinds of tokens, and the work of a stage on them.
template <typename Token> struct Kind;
template <> struct Kind<uint32_t> {
  static constexpr uint64_t width = 1;
  explicit Kind(uint64_t) {}
  uint32_t make(uint64_t i) { return static_cast<uint32_t>(i + 1); }
  template <typename F> static uint32_t map(uint32_t token, F f) { return f(token); }
  static uint32_t sum(uint32_t token) { return token; }
};
template <> struct Kind<Wide *> {
  static constexpr uint64_t width = 64;
  std::vector<Wide> wide;
  explicit Kind(uint64_t tokens) : wide(tokens) {}
  Wide *make(uint64_t i) {
    for (uint32_t k = 0; k < 64; k++) wide[i].element[k] = static_cast<uint32_t>(i * 64 + k + 1);
    return &wide[i];
  }
  template <typename F> static Wide *map(Wide *token, F f) {
    for (uint32_t &x : token->element) x = f(x);
    return token;
  }
  static uint32_t sum(Wide *token) {
    uint32_t sum = 0;
    for (uint32_t x : token->element) sum += x;
    return sum;
  }
};

template <typename Token>
uint32_t pipeline(Kind<Token> &kind, uint64_t tokens, filter_mode middle) {
  uint64_t next = 0;
  uint32_t sum = 0;
  using K = Kind<Token>;
  oneapi::tbb::parallel_pipeline(
      64, make_filter<void, Token>(filter_mode::serial_in_order,
                                   [&](flow_control &control) -> Token {
                                     if (next < tokens) return kind.make(next++);
                                     control.stop();
                                     return {};
                                   }) &
              make_filter<Token, Token>(middle, [](Token t) { return K::map(t, stage_first); }) &
              make_filter<Token, Token>(middle, [](Token t) { return K::map(t, stage_second); }) &
              make_filter<Token, Token>(middle, [](Token t) { return K::map(t, stage_third); }) &
              make_filter<Token, void>(filter_mode::serial_in_order,
                                       [&](Token t) { sum += K::sum(t); }));
  return sum;
}

template <typename Token, typename Policy> uint32_t graph(Kind<Token> &kind, uint64_t tokens) {
  uint32_t sum = 0;
  using K = Kind<Token>;
  using Node = flow::function_node<Token, Token, Policy>;
  flow::graph g;
  Node first(g, flow::serial, [](Token t) noexcept { return K::map(t, stage_first); });
  Node second(g, flow::serial, [](Token t) noexcept { return K::map(t, stage_second); });
  Node third(g, flow::serial, [](Token t) noexcept { return K::map(t, stage_third); });
  flow::function_node<Token, flow::continue_msg, Policy> sink(g, flow::serial,
                                                              [&](Token t) noexcept {
                                                                sum += K::sum(t);
                                                                return flow::continue_msg();
                                                              });
  flow::make_edge(first, second);
  flow::make_edge(second, third);
  flow::make_edge(third, sink);
  for (uint64_t i = 0; i < tokens; i++) first.try_put(kind.make(i));
  g.wait_for_all();
  return sum;
}

template <typename Token>
int measure(const std::string &kind_of_graph, uint64_t workers, uint64_t tokens) {
  oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, workers);
  Kind<Token> kind(tokens);
  double start = bench_now();
  uint32_t sum = kind_of_graph == "pipeline" ? pipeline(kind, tokens, filter_mode::serial_in_order)
                 : kind_of_graph == "parallel" ? pipeline(kind, tokens, filter_mode::parallel)
                 : kind_of_graph == "graph"
                     ? graph<Token, flow::queueing>(kind, tokens)
                     : graph<Token, flow::queueing_lightweight>(kind, tokens);
  double took = bench_now() - start;
  uint64_t elements = tokens * Kind<Token>::width;
  bench_expect("the sum", sum, pipeline_sum(elements));
  bench_say("elements_per_s", static_cast<double>(elements) / took);
  return 0;
}

int main(int argc, char **argv) {
  static const char usage[] = "KIND WORKERS TOKENS WIDTH";
  uint64_t workers = bench_number(argc, argv, 2, usage),
           tokens = bench_number(argc, argv, 3, usage);
  return bench_number(argc, argv, 4, usage) == 64 ? measure<Wide *>(argv[1], workers, tokens)
                                                  : measure<uint32_t>(argv[1], workers, tokens);
}
