/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Poller on Linux: epoll with one-shot reports, so a descriptor that is no longer waited for costs
 * nothing. */
#include "../platform.h"
#include "syscall.h"

#include <stdlib.h>
#include <sys/eventfd.h>

struct lvd_os_poller {
  int epoll, eventfd;
};

lvd_status lvd_os_poller_open(lvd_os_poller **out) {
  lvd_os_poller *p = calloc(1, sizeof *p);
  if (!p) return LVD_E_MEMORY;
  p->epoll = lvd_sys_epoll_create(EPOLL_CLOEXEC);
  p->eventfd = lvd_sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event eventfd = {.events = EPOLLIN, .data = {.fd = -1}};
  if (p->epoll < 0 || p->eventfd < 0 ||
      lvd_sys_epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->eventfd, &eventfd) != 0) {
    lvd_os_poller_close(p);
    return LVD_E_LIMIT;
  }
  *out = p;
  return LVD_OK;
}

void lvd_os_poller_close(lvd_os_poller *p) {
  if (p->epoll >= 0) lvd_sys_close(p->epoll);
  if (p->eventfd >= 0) lvd_sys_close(p->eventfd);
  free(p);
}

bool lvd_os_poller_watch(lvd_os_poller *p, int fd, bool to_read, bool to_write) {
  struct epoll_event e = {.events = EPOLLONESHOT, .data = {.fd = fd}};
  if (to_read) e.events |= EPOLLIN;
  if (to_write) e.events |= EPOLLOUT;
  if (lvd_sys_epoll_ctl(p->epoll, EPOLL_CTL_MOD, fd, &e) == 0) return true;
  if (errno != ENOENT) return false;
  return lvd_sys_epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

uint32_t lvd_os_poller_wait(lvd_os_poller *p, lvd_os_ready_fd *ready, uint32_t most) {
  enum { EVENTS_MAX = 64 };
  struct epoll_event event[EVENTS_MAX];
  int n = lvd_sys_epoll_wait(p->epoll, event, most < EVENTS_MAX ? (int)most : EVENTS_MAX, -1);
  for (int i = 0; i < n; i++) {
    bool both = event[i].events & (EPOLLERR | EPOLLHUP); /* at its end, or has an error */
    ready[i].fd = event[i].data.fd;
    ready[i].to_read = both || event[i].events & EPOLLIN;
    ready[i].to_write = both || event[i].events & EPOLLOUT;
  }
  return n < 0 ? 0 : (uint32_t)n;
}

void lvd_os_poller_wake(lvd_os_poller *p) {
  ssize_t n = lvd_sys_write(p->eventfd, &(uint64_t){1}, sizeof(uint64_t));
  (void)n;
}
