/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A machine that is a process of this system. It uses the loader, programs and protocol of a
 * processor behind a window, but needs neither an emulator nor a cross compiler. Its memory map is
 * that of QEMU's machine. Signals serve as interrupts: SIGIO is the doorbell, SIGALRM the watchdog
 * timer, and faults of a program are traps.
 *
 *   loader WINDOW SOCKET   descriptors: the memory from the window's first byte on; a stream socket
 *
 * LEVADA_WINDOW_FAULTS makes it faulty: comma-separated words, where N counts signals to the host
 * (1: the loader is ready; 2: it has taken an image; 3: the program serves; then pushes):
 *   late=MS      delays every signal
 *   silent=N     hangs forever instead of the Nth signal
 *   dies=N       exits instead of the Nth signal
 *   nonsense=N   writes an invalid state before the Nth signal
 *   spoils       changes a byte of each image before it is copied
 *   caches       has a cache that is not coherent with memory (caches.h)
 *   evicts       ... and writes lines back at random */
#include "../loader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../riscv/machine.h"
#include "caches.h"

/* Causes of RISC-V, which the host knows. */
enum { NOWHERE = 1, ILLEGAL = 2, BREAKPOINT = 3, LOAD = 5, STORE = 7, UNKNOWN = 15 };
enum { PAGE_FAULT_WROTE = 2, MS = 1000000, POLL_NS = 20000 };

/* The window as the host sees it. */
static unsigned char *window_memory = (unsigned char *)(uintptr_t)LVD_VIRT_WINDOW;
static lvd_loader loader;
static sigjmp_buf again;
static int socket_fd;
static timer_t timer;
static sigset_t interrupts;
static volatile sig_atomic_t rung;
static const char *volatile watched;
static volatile uint64_t watch_until, timer_at;
static uint64_t rings;
static struct {
  uint64_t late, silent, dies, nonsense;
  bool spoils, caches, evicts;
} faults;

/* ---- the board ------------------------------------------------------------------------------- */

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static LVD_NORETURN void hang(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  /* The host closes its end of the socket when it exits. */
  struct pollfd end = {.fd = socket_fd};
  for (;;)
    if (poll(&end, 1, -1) > 0 && end.revents & (POLLHUP | POLLERR)) _exit(0);
}

static void delay(uint64_t ms) {
  struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000 * MS)};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

static void ring(void) {
  rings++;
  if (faults.late) delay(faults.late);
  if (rings == faults.silent) hang();
  if (rings == faults.dies) _exit(1);
  if (rings == faults.nonsense)
    lvd_store_release_u32(&((lvd_window *)(void *)window_memory)->state, 0xdead);
  ssize_t n = send(socket_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)n;
}

static void set_timer(uint64_t at) {
  const struct itimerspec t = {.it_value = {(time_t)(at / (1000 * MS)), (long)(at % (1000 * MS))}};
  timer_at = at;
  timer_settime(timer, TIMER_ABSTIME, &t, NULL);
}

/* The timer is set if it is not running, and set again if it fires early: not for each task. */
static void watch(const char *procedure) {
  uint64_t limit = loader.shape.watch_ms * (uint64_t)MS;
  watched = procedure;
  watch_until = procedure && limit ? now_ns() + limit : 0;
  if (watch_until && !timer_at) set_timer(watch_until);
}

static void sleep_until(uint64_t until_ns) {
  sigset_t before;
  sigprocmask(SIG_BLOCK, &interrupts, &before);
  if (!rung) {
    uint64_t now = until_ns ? now_ns() : 0;
    uint64_t left = until_ns > now ? until_ns - now : 0;
    const struct timespec t = {(time_t)(left / (1000 * MS)), (long)(left % (1000 * MS))};
    ppoll(NULL, 0, until_ns ? &t : NULL, &before);
  }
  rung = 0;
  sigprocmask(SIG_SETMASK, &before, NULL);
}

static lvd_remote_hal board = {.version = LVD_REMOTE_VERSION,
                               .window = (lvd_window *)(uintptr_t)LVD_VIRT_WINDOW,
                               .ring = ring,
                               .sleep = sleep_until,
                               .now_ns = now_ns,
                               .watch = watch};

static void spoil(void *image, size_t size) {
  unsigned char *at = window_memory + ((uintptr_t)image - LVD_VIRT_WINDOW);
  if (faults.spoils) at[size / 2] ^= 0x10;
}

/* ---- interrupts and traps -------------------------------------------------------------------- */

static LVD_NORETURN void give_up(enum lvd_remote_state state, uint64_t cause, uint64_t pc,
                                 uint64_t value) {
  const lvd_remote_trap trap = {cause, pc, value, watched};
  lvd_loader_give_up(&loader, state, &trap);
  siglongjmp(again, 1);
}

static uint64_t pc_of(const void *context) {
  return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

static void on_ring(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info;
  int kept = errno;
  char bytes[64];
  ssize_t n;
  while ((n = recv(socket_fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
  }
  /* The host has exited. (If it exits with unread signals, the error is ECONNRESET instead of the
   * end of the stream.) */
  if (n == 0 || errno != EAGAIN) _exit(0);
  errno = kept;
  rung = 1;
  if (lvd_loader_rung(&loader)) give_up(LVD_REMOTE_STOPPED, 0, pc_of(context), 0);
}

static void on_timer(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info;
  uint64_t until = watch_until;
  timer_at = 0;
  if (until && now_ns() >= until) give_up(LVD_REMOTE_HUNG, 0, pc_of(context), 0);
  if (until) set_timer(until);
}

static void on_trap(int signal, siginfo_t *info, void *context) {
  uint64_t pc = pc_of(context), at = (uint64_t)(uintptr_t)info->si_addr, cause = UNKNOWN;
  if (!loader.running) _exit(2); /* not caused by a program: cannot continue */
  if (signal == SIGILL)
    cause = ILLEGAL;
  else if (signal == SIGTRAP)
    cause = BREAKPOINT;
  else if (signal == SIGSEGV || signal == SIGBUS)
    cause = at == pc                                                                       ? NOWHERE
            : ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & PAGE_FAULT_WROTE ? STORE
                                                                                           : LOAD;
  give_up(LVD_REMOTE_FAILED, cause, pc, cause >= LOAD && cause != UNKNOWN ? at : 0);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static LVD_NORETURN void fail(const char *what) {
  perror(what);
  exit(2);
}

/* On a signal stack: a program that has overflowed its stack must be reported, too. */
static void catch_signal(int signal, void (*handler)(int, siginfo_t *, void *)) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  action.sa_mask = interrupts;
  if (sigaction(signal, &action, NULL) != 0) fail("sigaction");
}

static void begin_interrupts(void) {
  static char stack[64 << 10];
  const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  if (sigaltstack(&other, NULL) != 0) fail("sigaltstack");
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGIO);
  sigaddset(&interrupts, SIGALRM);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) fail("timer_create");
  static const int traps[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGSYS};
  for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) catch_signal(traps[i], on_trap);
  catch_signal(SIGALRM, on_timer);
  catch_signal(SIGIO, on_ring);
  if (fcntl(socket_fd, F_SETOWN, getpid()) != 0 ||
      fcntl(socket_fd, F_SETFL, fcntl(socket_fd, F_GETFL) | O_ASYNC) != 0)
    fail("fcntl");
  raise(SIGIO); /* for signals that arrived before */
}

static void map_at(uintptr_t at, size_t size, int protection, int flags, int fd) {
  void *want = (void *)at;
  if (mmap(want, size, protection, flags | MAP_FIXED_NOREPLACE, fd, 0) != want) fail("mmap");
}

static void map_window(int fd, size_t size) {
  if (!faults.caches) {
    map_at(LVD_VIRT_WINDOW, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    return;
  }
  map_at(LVD_VIRT_WINDOW, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
         -1);
  window_memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (window_memory == MAP_FAILED) fail("mmap");
  lvd_native_caches_begin((void *)(uintptr_t)LVD_VIRT_WINDOW, window_memory, size, faults.evicts);
  board.caches = &lvd_native_caches;
}

static void read_faults(void) {
  static const struct {
    const char *name;
    uint64_t *value;
  } known[] = {{"late=", &faults.late},
               {"silent=", &faults.silent},
               {"dies=", &faults.dies},
               {"nonsense=", &faults.nonsense}};
  static const struct {
    const char *name;
    bool *value;
  } alone[] = {{"spoils", &faults.spoils}, {"caches", &faults.caches}, {"evicts", &faults.evicts}};
  const char *at = getenv("LEVADA_WINDOW_FAULTS");
  while (at && *at) {
    bool found = false;
    for (size_t i = 0; !found && i < sizeof alone / sizeof *alone; i++) {
      size_t n = strlen(alone[i].name);
      found = strncmp(at, alone[i].name, n) == 0 && (at[n] == ',' || !at[n]);
      if (found) *alone[i].value = true;
    }
    for (size_t i = 0; !found && i < sizeof known / sizeof *known; i++) {
      size_t n = strlen(known[i].name);
      char *end;
      if (strncmp(at, known[i].name, n) != 0) continue;
      *known[i].value = strtoull(at + n, &end, 10);
      found = end > at + n && (*end == ',' || !*end);
    }
    if (!found) {
      fprintf(stderr, "LEVADA_WINDOW_FAULTS: unknown word \"%s\"\n", at);
      exit(2);
    }
    at = strchr(at, ',');
    if (at) at++;
  }
  faults.caches |= faults.evicts;
}

int main(int argc, char **argv) {
  struct stat memory;
  if (argc != 3) {
    fprintf(stderr, "usage: %s WINDOW BELL (the library starts it)\n", argv[0]);
    return 2;
  }
  int fd = atoi(argv[1]);
  socket_fd = atoi(argv[2]);
  read_faults();
  if (fstat(fd, &memory) != 0) fail("the window's memory");
  map_at(LVD_VIRT_MEMORY, LVD_VIRT_OWN_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
         MAP_PRIVATE | MAP_ANONYMOUS, -1);
  map_window(fd, (size_t)memory.st_size);
  close(fd);
  board.size = (uint64_t)memory.st_size;
  loader.board = &board;
  begin_interrupts();
  sigsetjmp(again, 1); /* also reached after a program was given up; what follows may be repeated */
  loader.low = LVD_VIRT_PROGRAM;
  loader.high = LVD_VIRT_WINDOW;
  loader.look_ns = POLL_NS;
  loader.arrived = spoil;
  loader.running = false;
  watched = NULL;
  watch_until = 0;
  lvd_native_caches_again();
  lvd_loader_serve(&loader);
}
