/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The keeper: what the host has for a process of a processor that is no process. It hands on rings between
 * the host's wire and the kernel's device, and its end is the far side's to the host.
 *
 *   keeper uio WIRE NODE [OFFSET VALUE]   NODE: of UIO; the register that rings the far side
 *   keeper mem WIRE NODE [OFFSET VALUE]   NODE: of /dev/mem; nothing rings here, so it is looked often
 *
 * It ends when the host's end of the wire is closed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TICK_MS = 1 };

static int wire, node;
static volatile uint32_t *reg;
static uint32_t value;

static void fails(const char *what) {
  perror(what);
  exit(2);
}

static void ring_host(void) {
  ssize_t n = send(wire, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)n; /* full: it has been rung often enough */
}

static void ring_far(void) {
  if (!reg) return;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  *reg = value;
}

/* What the driver has that wants it; others take no writes. */
static void enable(void) {
  ssize_t n = write(node, &(int32_t){1}, sizeof(int32_t));
  (void)n;
}

static void find_register(const char *offset, const char *what) {
  uint64_t at = strtoull(offset, NULL, 0), page = (uint64_t)sysconf(_SC_PAGESIZE);
  unsigned char *p =
      mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)(at / page * page));
  if (p == MAP_FAILED) fails("the register that rings the far side");
  reg = (volatile uint32_t *)(void *)(p + at % page);
  value = (uint32_t)strtoul(what, NULL, 0);
}

static bool hear_host(void) {
  char bytes[64];
  ssize_t n, all = 0;
  while ((n = recv(wire, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) all += n;
  if (all) ring_far();
  return n != 0;
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 6) {
    fprintf(stderr, "usage: %s uio|mem WIRE NODE [OFFSET VALUE] (the library starts it)\n",
            argv[0]);
    return 2;
  }
  bool interrupts = strcmp(argv[1], "uio") == 0;
  wire = atoi(argv[2]);
  node = atoi(argv[3]);
  if (argc == 6) find_register(argv[4], argv[5]);
  if (interrupts) enable();
  struct pollfd on[2] = {{.fd = wire, .events = POLLIN},
                         {.fd = interrupts ? node : -1, .events = POLLIN}};
  for (;;) {
    int n = poll(on, 2, interrupts ? -1 : TICK_MS);
    if (n < 0 && errno != EINTR) fails("poll");
    if (n > 0 && on[0].revents && !hear_host()) return 0;
    if (n > 0 && on[1].revents) {
      uint32_t count;

      if (read(node, &count, sizeof count) != sizeof count) fails("the device's interrupt");
      enable();
      ring_host();
    }
    if (!interrupts) ring_host();
  }
}
