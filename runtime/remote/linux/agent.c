/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Agent of a remote processor (the program levada-remote-agent): the host's child process that stands for
 * a processor that is no process, or for an emulator that would not notice its host's exit. It
 * forwards signals between the host's socket and the kernel's device; its exit tells the host that
 * the remote processor has ended.
 *
 *   levada-remote-agent uio SOCKET NODE [OFFSET VALUE]
 *       NODE: a UIO device; OFFSET, VALUE: the register that signals the remote processor
 *   levada-remote-agent mem SOCKET NODE [OFFSET VALUE]
 *       NODE: /dev/mem; nothing signals this side, so it polls
 *   levada-remote-agent rpmsg SOCKET NODE STATE stop|leave destroy|leave
 *       NODE: an rpmsg endpoint; STATE: the processor's state file in sysfs; what to do at exit
 *       with the processor, and with the endpoint
 *   levada-remote-agent emulator SOCKET COMMAND ...
 *       starts an emulator, which uses the socket itself, and exits with it
 *
 * It exits when the host's end of the socket is closed, or on SIGTERM. */
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

enum { TICK_MS = 1, POLL_MS = 200 };

static int host_socket, node;
static volatile uint32_t *reg;
static uint32_t value;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static void signal_host(void) {
  ssize_t n = send(host_socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)n; /* full: enough signals are pending */
}

static void signal_remote(void) {
  if (!reg) return;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  *reg = value;
}

/* UIO drivers with interrupt control need it; others reject the write. */
static void enable(void) {
  ssize_t n = write(node, &(int32_t){1}, sizeof(int32_t));
  (void)n;
}

static void find_register(const char *offset, const char *what) {
  uint64_t at = strtoull(offset, NULL, 0), page = (uint64_t)sysconf(_SC_PAGESIZE);
  unsigned char *p =
      mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)(at / page * page));
  if (p == MAP_FAILED) fail("the doorbell register");
  reg = (volatile uint32_t *)(void *)(p + at % page);
  value = (uint32_t)strtoul(what, NULL, 0);
}

static bool receive_host(void) {
  char bytes[64];
  ssize_t n, all = 0;
  while ((n = recv(host_socket, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) all += n;
  if (all) signal_remote();
  return n != 0;
}

/* ---- devices with and without an interrupt --------------------------------------------------- */

static int forward_device(bool interrupts) {
  if (interrupts) enable();
  struct pollfd on[2] = {{.fd = host_socket, .events = POLLIN},
                         {.fd = interrupts ? node : -1, .events = POLLIN}};
  for (;;) {
    int n = poll(on, 2, interrupts ? -1 : TICK_MS);
    if (n < 0 && errno != EINTR) fail("poll");
    if (n > 0 && on[0].revents && !receive_host()) return 0;
    if (n > 0 && on[1].revents) {
      uint32_t count;
      if (read(node, &count, sizeof count) != sizeof count) fail("the device's interrupt");
      enable();
      signal_host();
    }
    if (!interrupts) signal_host();
  }
}

/* ---- an emulator ----------------------------------------------------------------------------- */

/* The emulator is killed if the agent is. */
static int run_emulator(char **command) {
  pid_t self = getpid(), machine = fork();
  if (machine < 0) fail("fork");
  if (machine == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(1);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
  }
  int how = 0, pidfd = -1;
#ifdef SYS_pidfd_open
  pidfd = (int)syscall(SYS_pidfd_open, machine, 0);
#endif
  /* Polls the socket for its end only: the data are the emulator's. */
  struct pollfd on[2] = {{.fd = host_socket}, {.fd = pidfd, .events = POLLIN}};
  while (waitpid(machine, &how, WNOHANG) == 0) {
    int n = poll(on, 2, pidfd < 0 ? POLL_MS : -1);
    if (n > 0 && on[0].revents) kill(machine, SIGKILL);
    if (n > 0 && on[0].revents) on[0].fd = -1;
  }
  return WIFEXITED(how) ? WEXITSTATUS(how) : 1;
}

/* ---- messages -------------------------------------------------------------------------------- */

static volatile sig_atomic_t ended;

static void on_sigterm(int signal) { ended = signal; }

static bool is_running(const char *state) {
  char line[40] = "";
  FILE *f = fopen(state, "r");
  bool read = f && fgets(line, sizeof line, f);
  if (f) fclose(f);
  return read && (strncmp(line, "running", 7) == 0 || strncmp(line, "attached", 8) == 0);
}

/* False: there is no room for the message now. */
static bool send_signal(void) {
  const lvd_rpmsg ring = {.magic = LVD_RPMSG_MAGIC, .kind = LVD_RPMSG_RING};
  if (write(node, &ring, sizeof ring) == sizeof ring) return true;
  if (errno == EAGAIN || errno == ENOMEM || errno == EINTR) return false;
  perror("a message to the processor");
  ended = 1;
  return true;
}

static void receive_remote(void) {
  lvd_rpmsg m;
  ssize_t n = read(node, &m, sizeof m);
  if (n < 0 && errno != EAGAIN && errno != EINTR) perror("a message of the processor");
  /* the endpoint has ended */
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) ended = 1;
  if (n != sizeof m || m.magic != LVD_RPMSG_MAGIC) return;
  if (m.kind == LVD_RPMSG_RING) signal_host();
  if (m.kind != LVD_RPMSG_REFUSED) return;
  m.text[sizeof m.text - 1] = 0;
  fprintf(stderr, "levada-remote-agent: the processor refuses the window: %s\n", m.text);
  ended = 1;
}

static void forward_rpmsg(const char *state) {
  sigset_t end, before;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, &before);
  signal(SIGTERM, on_sigterm);
  signal(SIGPIPE, SIG_IGN);
  struct pollfd on[2] = {{.fd = host_socket, .events = POLLIN}, {.fd = node, .events = POLLIN}};
  bool signal_pending = false;
  while (!ended) {
    const struct timespec wait = {.tv_nsec = (signal_pending ? TICK_MS : POLL_MS) * 1000000};
    int n = ppoll(on, 2, &wait, &before);
    if (n < 0 && errno != EINTR) fail("ppoll");
    if (n == 0 && !is_running(state)) return;
    if (n > 0 && on[0].revents) {
      if (!receive_host()) return;
      signal_pending = true;
    }
    if (n > 0 && on[1].revents & POLLIN)
      receive_remote();
    else if (n > 0 && on[1].revents)
      return; /* the endpoint has ended, with the processor */
    if (signal_pending) signal_pending = !send_signal();
  }
}

static void stop(const char *state) {
  int fd = open(state, O_WRONLY | O_TRUNC);
  if (fd < 0 || write(fd, "stop", 4) != 4) perror(state);
  if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  if (argc > 3 && strcmp(kind, "emulator") == 0) {
    host_socket = atoi(argv[2]);
    return run_emulator(argv + 3);
  }
  bool messages = strcmp(kind, "rpmsg") == 0, interrupts = strcmp(kind, "uio") == 0;
  if (messages ? argc != 7
               : (argc != 4 && argc != 6) || (!interrupts && strcmp(kind, "mem") != 0)) {
    fprintf(stderr, "usage: %s uio|mem|rpmsg|emulator SOCKET ... (the library starts it)\n",
            argv[0]);
    return 2;
  }
  host_socket = atoi(argv[2]);
  node = atoi(argv[3]);
  if (!messages) {
    if (argc == 6) find_register(argv[4], argv[5]);
    return forward_device(interrupts);
  }
  forward_rpmsg(argv[4]);
  if (strcmp(argv[6], "destroy") == 0) ioctl(node, RPMSG_DESTROY_EPT_IOCTL);
  if (strcmp(argv[5], "stop") == 0 && is_running(argv[4])) stop(argv[4]);
  return 0;
}
