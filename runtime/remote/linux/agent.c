/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The keeper: what the host has for a process of a processor that is no process, or is one that would not
 * notice its host's end. It hands on rings between the host's wire and the kernel's device, and its end is the
 * far side's to the host.
 *
 *   keeper uio WIRE NODE [OFFSET VALUE]   NODE: of UIO; the register that rings the far side
 *   keeper mem WIRE NODE [OFFSET VALUE]   NODE: of /dev/mem; nothing rings here, so it is looked often
 *   keeper rpmsg WIRE NODE STATE stop|leave destroy|leave
 *                                         NODE: an endpoint; STATE: the processor's file, which says
 *                                         whether it is there; and what to do with both at the end
 *   keeper mind WIRE COMMAND ...          starts an emulator, which has the wire itself, and ends with it
 *
 * It ends when the host's end of the wire is closed, or by SIGTERM. */
#include <errno.h>
#include <fcntl.h>
#include <levada/rpmsg.h>
#include <linux/rpmsg.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 1, LOOK_MS = 200 };

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

/* ---- devices that interrupt, and those that do not ----------------------------------------------- */

static int keep_device(bool interrupts) {
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

/* ---- an emulator --------------------------------------------------------------------------------- */

/* The kernel ends it should the keeper be killed. */
static int mind(char **command) {
  pid_t self = getpid(), machine = fork();
  if (machine < 0) fails("fork");
  if (machine == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(1);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
  }
  int how = 0, handle = -1;
#ifdef SYS_pidfd_open
  handle = (int)syscall(SYS_pidfd_open, machine, 0);
#endif
  /* Of the wire nothing but its end: what comes is the emulator's. */
  struct pollfd on[2] = {{.fd = wire}, {.fd = handle, .events = POLLIN}};
  while (waitpid(machine, &how, WNOHANG) == 0) {
    int n = poll(on, 2, handle < 0 ? LOOK_MS : -1);
    if (n > 0 && on[0].revents) kill(machine, SIGKILL);
    if (n > 0 && on[0].revents) on[0].fd = -1;
  }
  return WIFEXITED(how) ? WEXITSTATUS(how) : 1;
}

/* ---- messages ------------------------------------------------------------------------------------ */

static volatile sig_atomic_t ended;

static void on_end(int signal) { ended = signal; }

static bool is_there(const char *state) {
  char line[40] = "";
  FILE *f = fopen(state, "r");
  bool read = f && fgets(line, sizeof line, f);
  if (f) fclose(f);
  return read && (strncmp(line, "running", 7) == 0 || strncmp(line, "attached", 8) == 0);
}

/* False: there is no room for it now. */
static bool send_ring(void) {
  const lvd_rpmsg ring = {.magic = LVD_RPMSG_MAGIC, .kind = LVD_RPMSG_RING};
  if (write(node, &ring, sizeof ring) == sizeof ring) return true;
  if (errno == EAGAIN || errno == ENOMEM || errno == EINTR) return false;
  perror("a message to the processor");
  ended = 1;
  return true;
}

static void hear_far(void) {
  lvd_rpmsg m;
  ssize_t n = read(node, &m, sizeof m);
  if (n < 0 && errno != EAGAIN && errno != EINTR) perror("a message of the processor");
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) ended = 1; /* it is gone */
  if (n != sizeof m || m.magic != LVD_RPMSG_MAGIC) return;
  if (m.kind == LVD_RPMSG_RING) ring_host();
  if (m.kind != LVD_RPMSG_REFUSED) return;
  m.text[sizeof m.text - 1] = 0;
  fprintf(stderr, "levada-keeper: the processor refuses the window: %s\n", m.text);
  ended = 1;
}

static void keep_messages(const char *state) {
  sigset_t end, before;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, &before);
  signal(SIGTERM, on_end);
  signal(SIGPIPE, SIG_IGN);
  struct pollfd on[2] = {{.fd = wire, .events = POLLIN}, {.fd = node, .events = POLLIN}};
  bool to_ring = false;
  while (!ended) {
    const struct timespec wait = {.tv_nsec = (to_ring ? TICK_MS : LOOK_MS) * 1000000};
    int n = ppoll(on, 2, &wait, &before);
    if (n < 0 && errno != EINTR) fails("ppoll");
    if (n == 0 && !is_there(state)) return;
    if (n > 0 && on[0].revents) {
      if (!hear_host()) return;
      to_ring = true;
    }
    if (n > 0 && on[1].revents & POLLIN)
      hear_far();
    else if (n > 0 && on[1].revents)
      return; /* the endpoint is gone, and with it the processor */
    if (to_ring) to_ring = !send_ring();
  }
}

static void stop(const char *state) {
  int fd = open(state, O_WRONLY | O_TRUNC);
  if (fd < 0 || write(fd, "stop", 4) != 4) perror(state);
  if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  if (argc > 3 && strcmp(kind, "mind") == 0) {
    wire = atoi(argv[2]);
    return mind(argv + 3);
  }
  bool messages = strcmp(kind, "rpmsg") == 0, interrupts = strcmp(kind, "uio") == 0;
  if (messages ? argc != 7
               : (argc != 4 && argc != 6) || (!interrupts && strcmp(kind, "mem") != 0)) {
    fprintf(stderr, "usage: %s uio|mem|rpmsg|mind WIRE ... (the library starts it)\n", argv[0]);
    return 2;
  }
  wire = atoi(argv[2]);
  node = atoi(argv[3]);
  if (!messages) {
    if (argc == 6) find_register(argv[4], argv[5]);
    return keep_device(interrupts);
  }
  keep_messages(argv[4]);
  if (strcmp(argv[6], "destroy") == 0) ioctl(node, RPMSG_DESTROY_EPT_IOCTL);
  if (strcmp(argv[5], "stop") == 0 && is_there(argv[4])) stop(argv[4]);
  return 0;
}
