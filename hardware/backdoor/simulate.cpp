// SPDX-License-Identifier: Apache-2.0 OR MIT
// Simulates the two processors until the near one finishes, and prints its output.
#include <cstdio>
#include <cstdlib>

#include "Vbackdoor.h"
#include "verilated.h"

int main(int argc, char **argv) {
  // Far more than the programs need; the simulation fails if one of them waits for ever.
  const unsigned long long cycles_max = 120000000;
  std::setvbuf(stdout, nullptr, _IOLBF, 0); // if it hangs, the last line shows where
  VerilatedContext context;
  context.commandArgs(argc, argv);
  Vbackdoor top(&context);
  top.resetn = 0;
  for (unsigned long long cycle = 0; cycle < cycles_max; cycle++) {
    if (cycle == 16) top.resetn = 1;
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
    if (top.print && top.resetn) std::putchar(top.letter);
    if (top.finished && top.resetn && cycle > 20) {
      if (top.code == 0xdead) std::printf("the near processor has failed\n");
      return top.code != 0;
    }
    if (context.gotFinish()) return 2;
  }
  std::printf("not finished after %llu cycles\n", cycles_max);
  return 1;
}
