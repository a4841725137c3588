// SPDX-License-Identifier: Apache-2.0 OR MIT
// The five trivial stages as a pipeline of Taskflow.
//
//   pipeline_taskflow LINES WORKERS TOKENS WIDTH
#include "../c/bench.h"
#include "../c/pipeline.h"

#include <taskflow/algorithm/pipeline.hpp>
#include <taskflow/taskflow.hpp>

#include <array>
#include <vector>

int main(int argc, char **argv) {
  static const char usage[] = "LINES WORKERS TOKENS WIDTH";
  uint64_t lines = bench_number(argc, argv, 1, usage), workers = bench_number(argc, argv, 2, usage),
           tokens = bench_number(argc, argv, 3, usage), width = bench_number(argc, argv, 4, usage);
  std::vector<std::array<uint32_t, 64>> buffer(lines);
  uint32_t sum = 0;
  auto map = [&](tf::Pipeflow &flow, auto stage) {
    for (uint64_t k = 0; k < width; k++) buffer[flow.line()][k] = stage(buffer[flow.line()][k]);
  };
  tf::Pipeline pipeline(
      lines,
      tf::Pipe{tf::PipeType::SERIAL,
               [&](tf::Pipeflow &flow) {
                 if (flow.token() == tokens) return flow.stop();
                 for (uint64_t k = 0; k < width; k++)
                   buffer[flow.line()][k] = static_cast<uint32_t>(flow.token() * width + k + 1);
               }},
      tf::Pipe{tf::PipeType::SERIAL, [&](tf::Pipeflow &flow) { map(flow, stage_first); }},
      tf::Pipe{tf::PipeType::SERIAL, [&](tf::Pipeflow &flow) { map(flow, stage_second); }},
      tf::Pipe{tf::PipeType::SERIAL, [&](tf::Pipeflow &flow) { map(flow, stage_third); }},
      tf::Pipe{tf::PipeType::SERIAL, [&](tf::Pipeflow &flow) {
                 for (uint64_t k = 0; k < width; k++) sum += buffer[flow.line()][k];
               }});
  tf::Executor executor(workers);
  tf::Taskflow taskflow;
  taskflow.composed_of(pipeline);
  double start = bench_now();
  executor.run(taskflow).wait();
  double took = bench_now() - start;
  bench_expect("the sum", sum, pipeline_sum(tokens * width));
  bench_say("elements_per_s", static_cast<double>(tokens * width) / took);
  return 0;
}
