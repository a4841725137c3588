// SPDX-License-Identifier: Apache-2.0 OR MIT
// Forks in C++: before main and after it, in constructors and destructors of static, function-
// local and thread-local objects; and exceptions within a forked call.
#include <levada/fork.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

void check(bool so, const char *what) {
  if (so) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

int fib(int n);
LVD_FORKABLE(int, fib, int)
int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

int destroyed, expected;

struct object {
  bool first;
  explicit object(bool forks) : first(forks) {
    if (forks) check(fib(16) == 987, "a fork in a constructor");
  }
  ~object() {
    check(fib(16) == 987, "a fork in a destructor");
    destroyed++;
  }
};

// Destroyed last: all others have been by then. It sets the program's status.
struct last {
  ~last() {
    if (destroyed != expected) {
      std::fprintf(stderr, "%d destroyed, not %d\n", destroyed, expected);
      std::_Exit(1);
    }
    if (fib(10) != 55) std::_Exit(1);
  }
};
last the_last;
object before_all(false); /* constructed before the first fork, destroyed after the runtime */
object forks_first(true);
object after(true);

void of_a_function() {
  static object local(true);
  check(local.first, "constructed once");
}

void of_a_thread() {
  thread_local object own(true);
  check(own.first, "constructed once");
}

// An exception that is thrown and caught within a call, wherever the call is made.
int throws(int n) {
  int caught = 0;
  for (int i = 0; i < n; i++) try {
      throw std::runtime_error(std::to_string(i));
    } catch (const std::exception &e) {
      caught += std::stoi(e.what()) == i;
    }
  return caught;
}
LVD_FORKABLE(int, throws, int)

} // namespace

int main(int argc, char **argv) {
  expected = 3;
  std::string how = argc > 1 ? argv[1] : "";
  for (int i = 0; i < 50; i++) {
    LVD_FORK(f, throws, 20);
    check(throws(30) == 30, "exceptions in the block");
    check(LVD_JOIN(f, throws) == 20, "exceptions in the call");
  }
  if (how == "threads") {
    for (int i = 0; i < 10; i++) std::thread(of_a_thread).join();
    of_a_thread(); /* the first thread's own, destroyed before the static ones */
    expected += 11;
  } else if (how == "exits") {
    of_a_function();
    expected += 1;
    std::exit(0);
  } else {
    of_a_function();
    expected += 1;
  }
  return 0;
}
