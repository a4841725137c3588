// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs the two processors until the near one says that it has finished, and prints what it prints.
#include <cstdio>
#include <cstdlib>

#include "Vbackdoor.h"
#include "verilated.h"

int main(int argc, char **argv) {
  // Far more than the programs take: one that waits for ever is to fail, not to stay.
  const unsigned long long most = 120000000;
  std::setvbuf(stdout, nullptr, _IOLBF, 0); // what was printed last is where it stands
  VerilatedContext context;
  context.commandArgs(argc, argv);
  Vbackdoor top(&context);
  top.resetn = 0;
  for (unsigned long long cycle = 0; cycle < most; cycle++) {
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
  std::printf("not finished after %llu cycles\n", most);
  return 1;
}
