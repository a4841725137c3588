/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs one test by name, or lists them. */
#include "test.h"

static const struct {
  const char *name;
  void (*run)(void);
} tests[] = {
#define TEST(name) {#name, test_##name},
#include "list.h"
#undef TEST
};

int main(int argc, char **argv) {
  if (argc == 2)
    for (size_t i = 0; i < COUNT(tests); i++)
      if (strcmp(tests[i].name, argv[1]) == 0) {
        tests[i].run();
        printf("ok %s\n", argv[1]);
        return 0;
      }
  fprintf(stderr, "usage: %s TEST, where TEST is one of\n", argv[0]);
  for (size_t i = 0; i < COUNT(tests); i++) fprintf(stderr, "  %s\n", tests[i].name);
  return 2;
}
