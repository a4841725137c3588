/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of the units intf.net.Tcp, system.io.AccessFile and system.io.Console, for CAL
 * applications for Orcc. Their functions have names such as `open`, so the C names begin with the unit.
 *
 * Descriptors are the system's; those that are open at the end of the application are closed. */
#include "files.h"

#include <netdb.h>

#define STD __attribute__((weak))

typedef struct descriptors {
  int *fd;
  size_t count;
  char **line; /* lines that were read; strings pass through channels, so they are kept */
  size_t lines;
  /* Of a call that waits and may not return: */
  const char *address, *port;
  int called; /* 1 + the descriptor that it has created */
  const char *error;
} descriptors;

static void descriptors_end(void *data, lvd_status outcome) {
  (void)outcome;
  descriptors *d = data;
  for (size_t i = 0; i < d->count; i++)
    if (d->fd[i] >= 0) lvd_sys_close(d->fd[i]);
  if (d->called) lvd_sys_close(d->called - 1);
  free(d->fd);
  for (size_t i = 0; i < d->lines; i++) free(d->line[i]);
  free(d->line);
}

/* One for each actor, since several may call at the same time. */
static descriptors *descriptors_of_actor(void) {
  return block(lvd_current_actor(), sizeof(descriptors), descriptors_end);
}

static int32_t keep(int fd) {
  descriptors *d = descriptors_of_actor();
  if (fd < 0) return -1;
  int *grown = realloc(d->fd, (d->count + 1) * sizeof *grown);
  if (!grown) {
    lvd_sys_close(fd);
    refuse("out of memory");
  }
  d->fd = grown;
  d->fd[d->count++] = fd;
  return fd;
}

static void give_up(int32_t fd) {
  descriptors *d = descriptors_of_actor();
  for (size_t i = 0; i < d->count; i++)
    if (fd >= 0 && d->fd[i] == fd) {
      lvd_sys_close(fd);
      d->fd[i] = -1;
    }
}

/* False at the end of the file. `wait` waits for data. */
static bool read_byte(int32_t fd, uint8_t *byte, lvd_status (*wait)(int)) {
  for (;;) {
    wait(fd);
    ssize_t got = lvd_sys_read(fd, byte, 1);
    if (got > 0) return true;
    if (got == 0) return false;
    if (errno != EINTR && errno != EAGAIN) refuse("cannot read: %s", strerror(errno));
  }
}

/* Of this actor, which ends if there is none. */
static uint8_t next_byte(int32_t fd, lvd_status (*wait)(int)) {
  uint8_t byte;
  if (!read_byte(fd, &byte, wait)) lvd_native_end();
  return byte;
}

static void write_bytes(int32_t fd, const void *bytes, size_t count) {
  for (const char *at = bytes; count;) {
    lvd_wait_writable(fd);
    ssize_t put = lvd_sys_write(fd, at, count < AT_ONCE ? count : AT_ONCE);
    if (put < 0 && errno != EINTR && errno != EAGAIN) refuse("cannot write: %s", strerror(errno));
    if (put <= 0) continue;
    at += put;
    count -= (size_t)put;
  }
}

/* ---- intf.net.Tcp ------------------------------------------------------------------------------ */

/* True: there is no peer yet. */
static bool try_port(descriptors *d, const struct addrinfo *found) {
  const bool serves = !*d->address;
  bool refused = false;
  for (const struct addrinfo *a = found; a && !d->called; a = a->ai_next) {
    int on = 1, fd = lvd_sys_descriptor(LVD_SYS(SYS_socket, a->ai_family,
                                                a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
    if (fd >= 0) LVD_SYS(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 &&
        (serves ? !LVD_SYS(SYS_bind, fd, a->ai_addr, a->ai_addrlen) && !LVD_SYS(SYS_listen, fd, 1)
                : !LVD_SYS(SYS_connect, fd, a->ai_addr, a->ai_addrlen))) {
      d->called = fd + 1;
    } else {
      d->error = strerror(errno);
      refused |= !serves && errno == ECONNREFUSED;
      if (fd >= 0) lvd_sys_close(fd);
    }
  }
  if (d->called) d->error = NULL;
  return refused && !d->called;
}

static void call_port(void *argument) {
  descriptors *d = argument;
  const struct addrinfo hints = {
      .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = *d->address ? 0 : AI_PASSIVE};
  const struct timespec rest = {.tv_nsec = 10000000};
  struct addrinfo *found = NULL;
  int error = getaddrinfo(*d->address ? d->address : NULL, d->port, &hints, &found);
  d->error = error ? gai_strerror(error) : NULL;
  while (try_port(d, found) && lvd_sys_nanosleep(&rest, NULL) == 0) continue;
  if (found) freeaddrinfo(found);
}

/* Connects to the port as soon as a peer listens there, or, without an address, listens until a
 * peer connects. */
STD int32_t intf_net_Tcp_open(const char *address, const char *port) {
  descriptors *d = descriptors_of_actor();
  d->address = address;
  d->port = port;
  lvd_run_blocking(call_port, d);
  if (d->error) refuse("%s port %s: %s", *address ? address : "to listen at", port, d->error);
  int32_t fd = d->called - 1;
  d->called = 0;
  if (keep(fd) < 0 || *address) return fd;
  lvd_wait_input_restartable(fd);
  int32_t connected = keep(lvd_sys_descriptor(LVD_SYS(SYS_accept4, fd, NULL, NULL, SOCK_CLOEXEC)));
  give_up(fd);
  return connected;
}

/* Applications use 0 as long as no socket is open; it is not a socket of theirs. */
STD bool intf_net_Tcp_exists(int32_t fd) {
  descriptors *d = descriptors_of_actor();
  for (size_t i = 0; i < d->count; i++)
    if (fd >= 0 && d->fd[i] == fd) return true;
  return false;
}

STD void intf_net_Tcp_close(int32_t fd) { give_up(fd); }

/* Also true as long as nothing has arrived. */
STD bool intf_net_Tcp_isInputShutdown(int32_t fd) {
  char byte;
  return fd < 0 || !lvd_poll_readable(fd) || lvd_sys_recv(fd, &byte, 1, MSG_PEEK) <= 0;
}

STD int8_t intf_net_Tcp_readByte(int32_t fd) {
  return (int8_t)next_byte(fd, lvd_wait_input_restartable);
}

STD bool intf_net_Tcp_isOutputShutdown(int32_t fd) { return fd < 0; }

STD void intf_net_Tcp_writeByte(int32_t fd, int8_t byte) { write_bytes(fd, &byte, 1); }

STD void intf_net_Tcp_setOption(int32_t fd, const char *name, const char *value) {
  (void)fd, (void)name, (void)value; /* there are none */
}

STD const char *intf_net_Tcp_getOption(int32_t fd, const char *name) {
  (void)fd, (void)name;
  return "";
}

/* ---- system.io.AccessFile ---------------------------------------------------------------------- */

STD int32_t system_io_AccessFile_openFile(const char *name) {
  int fd = open_at_name(name, O_RDWR | O_CREAT);
  if (fd < 0 && (errno == EACCES || errno == EROFS)) fd = open_at_name(name, O_RDONLY);
  if (fd < 0) refuse("cannot open %s: %s", name, strerror(errno));
  return keep(fd);
}

STD int32_t system_io_AccessFile_closeFile(int32_t fd) {
  give_up(fd);
  return 0;
}

STD uint8_t system_io_AccessFile_readByte(int32_t fd) {
  return next_byte(fd, lvd_wait_input_restartable);
}

STD void system_io_AccessFile_readBytes(int32_t fd, uint8_t *bytes, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    bytes[i] = next_byte(fd, i ? lvd_wait_readable : lvd_wait_input_restartable);
}

STD void system_io_AccessFile_writeByte(int32_t fd, int8_t byte) { write_bytes(fd, &byte, 1); }

STD void system_io_AccessFile_writeBytes(int32_t fd, uint8_t *bytes, int32_t count) {
  if (count > 0) write_bytes(fd, bytes, (size_t)count);
}

STD int32_t system_io_AccessFile_sizeOfFile(int32_t fd) {
  struct lvd_sys_statx st;
  if (!fd_stat(fd, &st)) refuse("cannot tell the size of a file: %s", strerror(errno));
  return st.stx_size > INT32_MAX ? INT32_MAX : (int32_t)st.stx_size;
}

STD void system_io_AccessFile_seek(int32_t fd, int32_t position) {
  LVD_SYS(SYS_lseek, fd, position, SEEK_SET);
}

STD uint32_t system_io_AccessFile_filePointer(int32_t fd) {
  return (uint32_t)LVD_SYS(SYS_lseek, fd, 0, SEEK_CUR);
}

/* ---- system.io.Console: standard input and output ---------------------------------------------- */

STD int32_t system_io_Console_openConsole(const char *name) {
  (void)name;
  return STDIN_FILENO;
}

STD int32_t system_io_Console_closeConsole(int32_t fd) {
  (void)fd;
  return 0;
}

/* A line without its terminator; the actor ends if there is none. */
STD const char *system_io_Console_read(int32_t fd) {
  descriptors *d = descriptors_of_actor();
  char **list = realloc(d->line, (d->lines + 1) * sizeof *list);
  if (list) d->line = list;
  char *text = list ? list[d->lines++] = calloc(1, 64) : NULL;
  size_t length = 0, room = 64;
  uint8_t byte = 0;
  while (text && read_byte(fd, &byte, length ? lvd_wait_readable : lvd_wait_input_restartable) &&
         byte != '\n') {
    text[length++] = (char)byte;
    if (length == room) {
      text = realloc(text, room *= 2);
      if (text) d->line[d->lines - 1] = text;
    }
  }
  if (!text) refuse("out of memory");
  if (!length && byte != '\n') lvd_native_end();
  text[length] = 0;
  return text;
}

STD int32_t system_io_Console_readInteger(int32_t fd) {
  const char *line = system_io_Console_read(fd);
  char *end;
  long number = strtol(line, &end, 10);
  if (end == line) refuse("\"%s\" is not a whole number", line);
  return (int32_t)number;
}

/* After earlier output, and visible at once. */
STD void system_io_Console_write(int32_t fd, const char *text) {
  (void)fd;
  for (size_t left = strlen(text), n; left; text += n, left -= n) {
    n = left < AT_ONCE ? left : AT_ONCE;
    lvd_app_throttle_output(lvd_current_app(), n);
    lvd_wait_writable(STDOUT_FILENO);
    if (fwrite(text, 1, n, stdout) != n || fflush(stdout))
      refuse("cannot write: %s", strerror(errno));
  }
}
