/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cap'n Proto: calls with a result from one process to another over a Unix socket, each on a core of
 * its own; `N K`: N calls, K under way at a time. */
#include "../c/bench.h"

#include "call.capnp.h"

#include <capnp/ez-rpc.h>
#include <deque>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

class AdderImpl final : public Adder::Server {
  kj::Promise<void> addOne(AddOneContext context) override {
    context.getResults().setValue(context.getParams().getValue() + 1);
    return kj::READY_NOW;
  }
};

static double call(Adder::Client &adder, kj::WaitScope &scope, uint64_t count, uint64_t under_way) {
  typedef kj::Promise<capnp::Response<Adder::AddOneResults>> Answer;
  std::deque<Answer> answers;
  double from = bench_now();
  for (uint64_t i = 0; i < count + under_way; i++) {
    if (i >= under_way) {
      uint64_t got = answers.front().wait(scope).getValue();
      answers.pop_front();
      bench_expect("the result", got, i - under_way + 1);
    }
    if (i < count) {
      auto request = adder.addOneRequest();
      request.setValue(i);
      answers.push_back(request.send());
    }
  }
  return bench_now() - from;
}

int main(int argc, char **argv) {
  static const char usage[] = "N UNDER_WAY";
  uint64_t count = bench_number(argc, argv, 1, usage),
           under_way = bench_number(argc, argv, 2, usage);
  int first = bench_core(0), second = bench_core(1), ready[2];
  std::string address = "unix:/tmp/levada-bench-" + std::to_string(getpid());
  if (pipe(ready) != 0) return 1;
  pid_t server = fork();
  if (server == 0) {
    bench_pin(second);
    capnp::EzRpcServer rpc(kj::heap<AdderImpl>(), address);
    rpc.getPort().wait(rpc.getWaitScope());
    if (write(ready[1], "", 1) != 1) _exit(1);
    kj::NEVER_DONE.wait(rpc.getWaitScope());
  }
  bench_pin(first);
  char byte;
  if (read(ready[0], &byte, 1) != 1) return 1;
  double took;
  {
    capnp::EzRpcClient client(address);
    Adder::Client adder = client.getMain<Adder>();
    call(adder, client.getWaitScope(), 1000, 1);
    took = call(adder, client.getWaitScope(), count, under_way);
  }
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  unlink(address.c_str() + 5);
  bench_say("ns", took / (double)count * 1e9);
  return 0;
}
