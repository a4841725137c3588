/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stands in for the command `levada shield` in tests, which must not change the machine: it
 * writes to the socket what the test requests by the name that it protects, and 9 if its
 * arguments are wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wire;

static void text_append(const char *text) {
  if (write(wire, text, strlen(text)) != (ssize_t)strlen(text)) _exit(8);
}

static const char *up(int evicted, char line[512]) {
  snprintf(line, 512,
           "{\"method\":\"cpuset-v1\",\"cores\":\"2-3\",\"evicted\":%d,\"full\":%d,\"interrupts\":"
           "3,\"is\":"
           "\"up\",\"kernel_threads\":2,\"threads\":41,\"took_ns\":12000000}\n",
           evicted, evicted > 1);
  return line;
}

int main(int count, char **argv) {
  const char *what = "", *pid = "", *thread = "0";
  for (int i = 2; i + 1 < count; i++) {
    if (strcmp(argv[i], "--control-fd") == 0) wire = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--exclude") == 0) what = argv[i + 1];
    if (strcmp(argv[i], "--pid") == 0) pid = argv[i + 1];
    if (strcmp(argv[i], "--thread") == 0) thread = argv[i + 1];
  }
  if (strcmp(argv[1], "shield") != 0 || wire < 3 || atoi(pid) != (int)getppid()) return 9;
  if (strcmp(what, "dies") == 0) return 0;
  if (strcmp(what, "refuses") == 0) {
    text_append(
        "{\"help\":\"\",\"is\":\"refused\",\"why\":\"core \\\"3\\\" is shielded already\"}\n");
    return 125;
  }
  if (strcmp(what, "endless") == 0) {
    for (;;) text_append("{\"is\":\"");
  }
  if (strcmp(what, "thread") == 0 && atoi(thread) != 7) return 9;
  char line[512], byte;
  if (strcmp(what, "silent") != 0) text_append(up(0, line));
  if (strcmp(what, "killed") == 0) return 0;
  for (int n = 1; read(wire, &byte, 1) == 1; n++) {
    if (strcmp(what, "released") == 0) break;
    if (strcmp(what, "mute") == 0) continue;
    /* In pieces: the library need not receive whole lines. */
    const char *text = up(n, line);
    for (; *text; text++) {
      char one[2] = {*text, 0};
      text_append(one);
    }
  }
  if (strcmp(what, "silent") == 0) return 0;
  text_append(strcmp(what, "fails") == 0
                  ? "{\"failed\":1,\"is\":\"over\",\"why\":\"thread 5: no such process\"}\n"
                  : "{\"failed\":0,\"is\":\"over\",\"why\":\"\"}\n");
  return 0;
}
