/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "board.h"
#include "inside.h"

#include "../../support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void board_path(const board *b, const char *file, char path[100]) {
  snprintf(path, 100, "%s/%s", b->folder, file);
}

void board_write(const board *b, const char *file, const char *text) {
  char path[100];
  board_path(b, file, path);
  for (char *at = path + strlen(b->folder) + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    *at = '/';
  }
  FILE *f = fopen(path, "w");
  CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void memory(const board *b, const char *file, size_t size) {
  char path[100];
  board_path(b, file, path);
  board_write(b, file, "");
  CHECK_EQ(truncate(path, (off_t)size), 0);
}

void board_make(board *b) {
  *b = (board){.folder = "/tmp/levada-board-XXXXXX", .process = -1};
  CHECK(mkdtemp(b->folder));
  snprintf(b->sys, sizeof b->sys, "%s/sys", b->folder);
  snprintf(b->dev, sizeof b->dev, "%s/dev", b->folder);
  CHECK(mkdir(b->sys, 0700) == 0 && mkdir(b->dev, 0700) == 0);
  setenv("LEVADA_SYSFS", b->sys, 1);
  setenv("LEVADA_DEV", b->dev, 1);
  setenv("LEVADA_REMOTE_AGENT", LEVADA_FAKE_REMOTE_AGENT, 1);
}

void board_uio(board *b, size_t window) {
  char text[40];
  snprintf(text, sizeof text, "0x%zx\n", window);
  board_write(b, "sys/class/uio/uio0/name", "bridge\n");
  board_write(b, "sys/class/uio/uio0/maps/map0/size", text);
  board_write(b, "sys/class/uio/uio0/maps/map0/addr", "0x40000000\n");
  memory(b, "dev/uio0.map0", window);
  memory(b, "dev/uio0.map1", 4096);
}

void board_mem(board *b) { memory(b, "dev/mem", BOARD_WINDOW + 4096); }

/* ---- the process ----------------------------------------------------------------------------- */

int board_listen(const board *b, const char *file) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  board_path(b, file, at.sun_path);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0);
  return fd;
}

int board_memory(const board *b, const char *file) {
  char path[100];
  board_path(b, file, path);
  int fd = open(path, O_RDWR);
  CHECK(fd >= 0);
  return fd;
}

pid_t board_loader(int memory, int wire) {
  char words[2][12];
  snprintf(words[0], sizeof words[0], "%d", memory);
  snprintf(words[1], sizeof words[1], "%d", wire);
  char *const argument[] = {(char *)"loader", words[0], words[1], NULL};
  pid_t id;
  CHECK_EQ(posix_spawn(&id, LEVADA_NATIVE_LOADER, NULL, NULL, argument, environ), 0);
  return id;
}

bool board_drain(int fd) {
  char bytes[64];
  ssize_t n, all = 0;
  while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) all += n;
  return all > 0;
}

void board_ring(int wire) {
  ssize_t n = send(wire, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)n;
}

/* Like a UIO driver: an interrupt stays pending until it is enabled; then a packet tells its
 * number, and it is disabled. */
static void run(int nodes, int wire, volatile uint32_t *reg, bool bell) {
  int host = -1;
  bool pending = false, enabled = false;
  for (uint32_t count = 0;;) {
    struct pollfd on[3] = {{.fd = host < 0 ? nodes : -1, .events = POLLIN},
                           {.fd = host, .events = POLLIN},
                           {.fd = wire, .events = POLLIN}};
    poll(on, 3, 1);
    if (on[0].revents) host = accept4(nodes, NULL, NULL, SOCK_CLOEXEC);
    if (on[1].revents) {
      uint32_t word;
      ssize_t n = recv(host, &word, sizeof word, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) {
        close(host);
        host = -1;
        enabled = false;
      } else if (n == sizeof word) {
        enabled = word == 1;
      }
    }
    if (on[2].revents) pending |= board_drain(wire);
    if (pending && enabled && host >= 0) {
      count++;
      ssize_t n = send(host, &count, sizeof count, MSG_NOSIGNAL);
      (void)n;
      pending = enabled = false;
    }
    if (!bell)
      board_ring(wire);
    else if (*reg == BOARD_VALUE) {
      *reg = 0;
      board_ring(wire);
    }
  }
}

bool board_fork(board *b) {
  pid_t test = getpid();
  CHECK((b->process = fork()) >= 0);
  if (b->process) return false;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != test) _exit(0);
  return true;
}

void board_start(board *b, bool bell) {
  char path[100];
  board_path(b, "dev/mem", path);
  bool mem = access(path, F_OK) == 0;
  int nodes = mem ? -1 : board_listen(b, "dev/uio0"), wire[2];
  if (!board_fork(b)) {
    if (nodes >= 0) close(nodes);
    return;
  }
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, wire), 0);
  CHECK(fcntl(wire[0], F_SETFD, FD_CLOEXEC) == 0);
  int window = board_memory(b, mem ? "dev/mem" : "dev/uio0.map0");
  int registers = mem ? window : board_memory(b, "dev/uio0.map1");
  unsigned char *r =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, registers, mem ? BOARD_WINDOW : 0);
  CHECK(r != MAP_FAILED);
  board_loader(window, wire[1]);
  close(wire[1]);
  run(nodes, wire[0], (volatile uint32_t *)(void *)(r + BOARD_REGISTER), bell);
}

void board_free(board *b) {
  if (b->process > 0) {
    kill(b->process, SIGKILL);
    waitpid(b->process, NULL, 0);
  }
  char command[80];
  snprintf(command, sizeof command, "rm -rf %s", b->folder);
  CHECK_EQ(system(command), 0);
}
