/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Host side of the bare benchmark (remote/bare.c): upper bounds for a machine behind a window, without any library.
 *
 *   looks IMAGE N            N round trips of a number; both sides poll a word
 *   sleeps IMAGE N PAUSE_US  N round trips, each after a pause, with serial lines as doorbells
 *   loads IMAGE N            copies, sums up and runs a program of 150 bytes that returns at once, N times
 *   copies IMAGE SIZE        copies of SIZE bytes into the machine's memory, in a ring of 256 KiB */
#include "bench.h"

#include "../remote/bare.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char *memory;
static bare *words;
static int bell;

static void boot(const char *image) {
  char object[120], line[40];
  int fd = memfd_create("bare", 0), pair[2];
  if (fd < 0 || ftruncate(fd, BARE_MEMORY) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    perror("memory");
    exit(1);
  }
  memory = mmap(NULL, BARE_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  words = (bare *)(void *)(memory + BARE_WORDS);
  bell = pair[0];
  snprintf(object, sizeof object,
           "memory-backend-file,id=m,size=%d,share=on,mem-path=/proc/self/fd/%d", BARE_MEMORY, fd);
  snprintf(line, sizeof line, "socket,id=bell,fd=%d", pair[1]);
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pair[0]);
    execlp("qemu-system-riscv64", "qemu-system-riscv64", "-nodefaults", "-no-user-config",
           "-nographic", "-monitor", "none", "-machine", "virt,memory-backend=m", "-smp",
           "1,maxcpus=2", "-m", "16M", "-object", object, "-chardev", line, "-serial",
           "chardev:bell", "-bios", "none", "-kernel", image, (char *)NULL);
    perror("qemu-system-riscv64");
    _exit(127);
  }
  close(pair[1]);
  while (__atomic_load_n(&words->back, __ATOMIC_ACQUIRE) != BARE_READY) {
    if (waitpid(-1, NULL, WNOHANG) != 0) {
      fprintf(stderr, "the machine has not begun\n");
      exit(1);
    }
    usleep(100);
  }
}

static void go(uint32_t number) { __atomic_store_n(&words->there, number, __ATOMIC_RELEASE); }

static void look(uint32_t number) {
  while (__atomic_load_n(&words->back, __ATOMIC_ACQUIRE) != number) bench_poll();
}

static void sleep_for(uint32_t number) {
  char byte[16];
  if (write(bell, "", 1) != 1) perror("bell");
  struct pollfd fd = {.fd = bell, .events = POLLIN};
  while (__atomic_load_n(&words->back, __ATOMIC_ACQUIRE) != number)
    if (poll(&fd, 1, -1) > 0 && read(bell, byte, sizeof byte) <= 0) exit(1);
}

enum { WARM = 10, RING = 262144, COPIES = 50000 };

static void measure_trips(uint32_t n, bool sleeps, uint32_t pause_us) {
  double sum = 0;
  words->mode = sleeps ? BARE_SLEEPS : BARE_LOOKS;
  for (uint32_t i = 1; i <= n + WARM; i++) {
    if (pause_us) usleep(pause_us);
    double from = bench_now();
    go(i);
    if (sleeps)
      sleep_for(i);
    else
      look(i);
    if (i > WARM) sum += bench_now() - from;
  }
  bench_say("us", sum / n * 1e6);
}

static void measure_loads(uint32_t n) {
  static const unsigned char program[150] = {0x13, 0x05, 0x70, 0, 0x67, 0x80, 0, 0};
  double sum = 0;
  words->mode = BARE_LOADS;
  for (uint32_t i = 1; i <= n + WARM; i++) {
    double from = bench_now();
    memcpy(memory + BARE_IMAGE, program, sizeof program);
    words->length = sizeof program;
    words->sum = bare_sum(program, sizeof program);
    words->result = 0;
    go(i);
    look(i);
    bench_expect("what the program has returned", words->result, 7);
    if (i > WARM) sum += bench_now() - from;
  }
  bench_say("us", sum / n * 1e6);
}

static void measure_copies(uint32_t size) {
  static unsigned char from_here[RING];
  memset(memory + BARE_IMAGE, 1, RING);
  memset(from_here, 2, sizeof from_here);
  double from = bench_now();
  for (uint64_t i = 0; i < COPIES; i++) {
    from_here[0] = (unsigned char)i;
    memcpy(memory + BARE_IMAGE + i * size % RING, from_here, size);
    __asm__ volatile("" : : "r"(memory) : "memory");
  }
  bench_say("mb_per_s", (double)COPIES * size / (bench_now() - from) * 1e-6);
}

int main(int argc, char **argv) {
  static const char usage[] = "looks|sleeps|loads|copies IMAGE N|SIZE [PAUSE_US]";
  uint32_t n = (uint32_t)bench_number(argc, argv, 3, usage), pause_us = 0;
  if (strcmp(argv[1], "sleeps") == 0) pause_us = (uint32_t)bench_number(argc, argv, 4, usage);
  boot(argv[2]);
  bool sleeps = strcmp(argv[1], "sleeps") == 0;
  if (strcmp(argv[1], "copies") == 0)
    measure_copies(n);
  else if (strcmp(argv[1], "loads") == 0)
    measure_loads(n);
  else if (sleeps || strcmp(argv[1], "looks") == 0)
    measure_trips(n, sleeps, pause_us);
  else
    bench_number(0, argv, 1, usage);
  return 0;
}
