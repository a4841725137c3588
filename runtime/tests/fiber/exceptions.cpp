// SPDX-License-Identifier: Apache-2.0 OR MIT
// C++ exceptions belong to their fiber: caught ones over a wait, propagating ones over a wait in
// a destructor; and none is left to others when a fiber with one is abandoned.
#include <levada/levada.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#define CHECK(x)                                                                                   \
  do {                                                                                             \
    if (!(x)) {                                                                                    \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x);                         \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (0)

enum { FIBERS = 8, ROUNDS = 50 };
static long number[FIBERS];

struct fixture {
  lvd_runtime *rt = nullptr;
  lvd_app *app = nullptr;
  fixture() {
    lvd_runtime_options options = {};
    options.workers = 1;
    CHECK(lvd_runtime_create(&options, &rt) == LVD_OK);
    open();
  }
  void open() { CHECK(lvd_app_open(rt, nullptr, &app) == LVD_OK); }
  void run(void (*body)(void *)) {
    for (long i = 0; i < FIBERS; i++) {
      number[i] = i;
      CHECK(lvd_fiber_start(app, body, &number[i], nullptr, nullptr) == LVD_OK);
    }
    lvd_app_close(app);
    CHECK(lvd_app_wait(app, -1) == LVD_OK);
    lvd_app_unload(app);
  }
  ~fixture() { lvd_runtime_destroy(rt); }
};

// Each fiber throws its own number, leaves in the middle of the catch, and rethrows.
template <void (*away)(long)> static void throws(void *argument) {
  long me = *static_cast<long *>(argument);
  for (int k = 0; k < ROUNDS; k++) {
    try {
      try {
        away(me);
        CHECK(!std::current_exception());
        throw me;
      } catch (long x) {
        away(me);
        CHECK(x == me && std::uncaught_exceptions() == 0);
        throw;
      }
    } catch (long y) {
      CHECK(y == me);
    }
    CHECK(!std::current_exception());
  }
}

static void sleeps(long me) { CHECK(lvd_fiber_sleep(10000 + me * 3000) == LVD_OK); }
static void yields(long me) {
  for (long i = 0; i < 1 + me % 3; i++) lvd_fiber_yield();
}
static void test_over_waits() { fixture().run(throws<sleeps>); }
static void test_over_yields() { fixture().run(throws<yields>); }

// A destructor that runs during unwinding waits; its queries concern its own fiber.
struct waits_at_end {
  long me;
  ~waits_at_end() {
    CHECK(std::uncaught_exceptions() == (me % 2 ? 1 : 0));
    sleeps(me);
    CHECK(std::uncaught_exceptions() == (me % 2 ? 1 : 0));
  }
};
static void unwinds(void *argument) {
  long me = *static_cast<long *>(argument);
  for (int k = 0; k < ROUNDS; k++) try {
      waits_at_end guard = {me};
      if (me % 2) throw me;
    } catch (long x) {
      CHECK(x == me && me % 2);
    }
}
static void test_unwinding() { fixture().run(unwinds); }

[[maybe_unused]] static void fails(void *) {
  try {
    throw 1;
  } catch (int) {
    lvd_native_fail("in the middle of a catch");
  }
}
static void finds_none(void *) { CHECK(!std::current_exception()); }
static void test_after_fault() {
#ifdef __SANITIZE_ADDRESS__
  std::exit(77); /* what an abandoned fiber owns is lost, including its exception */
#endif
  fixture f;
  CHECK(lvd_fiber_start(f.app, fails, nullptr, nullptr, nullptr) == LVD_OK);
  CHECK(lvd_app_wait(f.app, -1) == LVD_E_FAULT);
  lvd_app_unload(f.app);
  f.open();
  f.run(finds_none);
}

// An exception that leaves the fiber's procedure has no handler: std::terminate ends the
// program, with the frames of the throw in place for a debugger.
[[noreturn]] static void said_goodbye() { std::_Exit(42); }
static void leaves(void *) {
  lvd_fiber_yield();
  throw 1;
}
static void test_leaving() {
  std::set_terminate(said_goodbye);
  fixture().run(leaves);
  std::exit(1); /* it was resumed */
}

int main(int count, char **argv) {
  const char *name = count > 1 ? argv[1] : "";
  if (!std::strcmp(name, "over_waits")) return test_over_waits(), 0;
  if (!std::strcmp(name, "over_yields")) return test_over_yields(), 0;
  if (!std::strcmp(name, "unwinding")) return test_unwinding(), 0;
  if (!std::strcmp(name, "leaving")) return test_leaving(), 0;
  if (!std::strcmp(name, "after_fault")) return test_after_fault(), 0;
  return 2;
}
