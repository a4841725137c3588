/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A simulated processor that Linux starts: its state is a file, its messages are packets. The
 * firmware is the native machine's loader with a prologue: it starts with the message that tells
 * the window's address. */
#include "inside.h"

#include "../../support/test.h"

#include <fcntl.h>
#include <levada/rpmsg.h>
#include <linux/rpmsg.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "sys/class/remoteproc/remoteproc0/"

enum { CONTROL, NODE, HOST, WIRE, DESCRIPTORS };

typedef struct remote {
  const board *b;
  int fd[DESCRIPTORS], memory, far; /* far: the loader's end of the socket */
  pid_t loader;
} remote;

void board_remote(board *b, const char *state, bool control) {
  board_mem(b);
  board_write(b, FOLDER "name", "m4\n");
  board_write(b, FOLDER "firmware", "usual.elf\n");
  board_write(b, FOLDER "state", state);
  if (!control) board_write(b, "sys/class/rpmsg/rpmsg2/name", "rpmsg-raw\n");
}

static bool reads(const board *b, const char *file, const char *text) {
  char path[100], line[40] = "";
  board_path(b, file, path);
  FILE *f = fopen(path, "r");
  bool there = f && fgets(line, sizeof line, f);
  if (f) fclose(f);
  line[strcspn(line, "\n")] = 0;
  return there && strcmp(line, text) == 0;
}

void board_await(const board *b, const char *file, const char *text) {
  while (!reads(b, file, text)) usleep(1000);
}

static void close_one(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void halt(remote *r, const char *state) {
  if (r->loader > 0) {
    kill(r->loader, SIGKILL);
    waitpid(r->loader, NULL, 0);
  }
  r->loader = 0;
  close_one(&r->fd[WIRE]);
  close_one(&r->fd[HOST]);
  board_write(r->b, FOLDER "state", state);
}

static void power(remote *r) {
  if (reads(r->b, FOLDER "state", "start")) {
    bool there = !reads(r->b, FOLDER "firmware", "nothing.elf");
    board_write(r->b, FOLDER "state", there ? "running\n" : "crashed\n");
  }
  if (reads(r->b, FOLDER "state", "stop")) halt(r, "offline\n");
  if (reads(r->b, FOLDER "state", "crash")) halt(r, "crashed\n");
}

static void arrives(remote *r, const lvd_rpmsg *m) {
  CHECK(m->magic == LVD_RPMSG_MAGIC);
  CHECK(m->kind == LVD_RPMSG_WINDOW || m->kind == LVD_RPMSG_RING);
  if (m->kind == LVD_RPMSG_WINDOW) {
    CHECK(m->address == 0 && m->size == BOARD_WINDOW);
    if (reads(r->b, FOLDER "firmware", "refuses.elf")) {
      const lvd_rpmsg no = {LVD_RPMSG_MAGIC, LVD_RPMSG_REFUSED, 0, 0, "it is not mapped here"};
      CHECK_EQ(send(r->fd[HOST], &no, sizeof no, MSG_NOSIGNAL), sizeof no);
      return;
    }
  }
  if (m->kind == LVD_RPMSG_WINDOW && !r->loader) {
    int wire[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, wire), 0);
    CHECK(fcntl(wire[0], F_SETFD, FD_CLOEXEC) == 0);
    r->fd[WIRE] = wire[0];
    r->loader = board_loader(r->memory, wire[1]);
    close(wire[1]);
  }
  if (r->fd[WIRE] >= 0) board_ring(r->fd[WIRE]);
}

static void hear(remote *r) {
  lvd_rpmsg m;
  ssize_t n = recv(r->fd[HOST], &m, sizeof m, MSG_DONTWAIT);
  if (n == 0)
    close_one(&r->fd[HOST]);
  else if (n > 0) {
    CHECK_EQ(n, sizeof m);
    arrives(r, &m);
  }
}

static void make_endpoint(remote *r) {
  struct rpmsg_endpoint_info info;
  int host = accept4(r->fd[CONTROL], NULL, NULL, SOCK_CLOEXEC), error = 0;
  if (recv(host, &info, sizeof info, 0) == sizeof info) {
    char name[40];
    snprintf(name, sizeof name, "%.32s\n", info.name);
    board_write(r->b, "sys/class/rpmsg/rpmsg2/name", name);
    error = info.dst == 0x400 ? 0 : 22;
    send(host, &error, sizeof error, MSG_NOSIGNAL);
  }
  close(host);
}

void board_remote_start(board *b, bool control) {
  remote r = {.b = b, .fd = {-1, -1, -1, -1}};
  r.fd[NODE] = board_listen(b, "dev/rpmsg2");
  if (control) r.fd[CONTROL] = board_listen(b, "dev/rpmsg_ctrl0");
  if (!board_fork(b)) {
    close_one(&r.fd[NODE]);
    close_one(&r.fd[CONTROL]);
    return;
  }
  r.memory = board_memory(b, "dev/mem");
  for (;;) {
    struct pollfd on[DESCRIPTORS];
    for (int i = 0; i < DESCRIPTORS; i++) on[i] = (struct pollfd){r.fd[i], POLLIN, 0};
    if (r.fd[HOST] >= 0) on[NODE].fd = -1;
    poll(on, DESCRIPTORS, 1);
    power(&r);
    if (r.fd[CONTROL] >= 0 && on[CONTROL].revents) make_endpoint(&r);
    if (on[NODE].revents) r.fd[HOST] = accept4(r.fd[NODE], NULL, NULL, SOCK_CLOEXEC);
    if (r.fd[HOST] >= 0 && on[HOST].revents) hear(&r);
    if (r.fd[WIRE] >= 0 && on[WIRE].revents && board_drain(r.fd[WIRE]) && r.fd[HOST] >= 0) {
      const lvd_rpmsg ring = {.magic = LVD_RPMSG_MAGIC, .kind = LVD_RPMSG_RING};
      ssize_t n = send(r.fd[HOST], &ring, sizeof ring, MSG_NOSIGNAL | MSG_DONTWAIT);
      (void)n;
    }
  }
}
