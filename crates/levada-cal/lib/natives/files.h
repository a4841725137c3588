/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Files: what a network reads (the option "in") and a file that it writes, for natives.
 *
 * What a network reads or writes belongs to its application: it is in persistent blocks of the
 * application, and only their keys outlive a call here.
 *
 * Calls that may wait (for a pipe, a terminal) use lvd_wait_* and lvd_run_blocking, which release the
 * worker and do not return if the application ends meanwhile. So a waiting call owns nothing: all
 * open files are in a block, and are closed at the end.
 *
 * A file gets its name by a rename when it is complete; until then it is NAME.part-PROCESS-N in the
 * same folder. The next process that writes NAME removes what a killed process has left. A symbolic
 * link is followed: it stays, and its target is replaced.
 *
 * System calls are made as the runtime makes them (syscall.h), and no function of the C library is called that ISO C
 * does not have: a native of the user's may have the name `read` or `open`. */
#ifndef LEVADA_FILES_H
#define LEVADA_FILES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <levada/native.h>

#include "platform/linux/syscall.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

/* Stops the application because of its input or output, which is not a fault of the actor. */
LVD_NORETURN static void refuse(const char *format, ...) LVD_PRINTF(1, 2);
static void refuse(const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  lvd_app_fail(lvd_current_app(), "%s", text);
  lvd_native_fail("%s", text); /* leaves the action; the first report counts */
}

static const char *option(const char *name) { return lvd_app_option(lvd_current_app(), name); }

/* A key that several native files define is one in a network, so that they share the data. */
#define SHARED __attribute__((weak, visibility("hidden")))

static void *block(const void *key, size_t size, void (*end)(void *, lvd_status)) {
  void *data = lvd_app_data(lvd_current_app(), key, size, end);
  if (!data) refuse("out of memory");
  return data;
}

/* The same; the previous version may have created it. */
static void *persistent_block(const char *name, const void *key, size_t size,
                              void (*end)(void *, lvd_status)) {
  void *data = lvd_app_persistent_data(lvd_current_app(), name, key, size, end);
  if (!data) refuse("out of memory");
  return data;
}

static char *copy_text(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) refuse("out of memory");
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

/* The value of an option is kept, since a new version may have another one. */
static char *copy_option(const char *name) {
  const char *given = option(name);
  return copy_text(given ? given : "", given ? strlen(given) : 0);
}

static bool is_another(const char *was, const char *name) {
  const char *given = option(name);
  return strcmp(was ? was : "", given ? given : "") != 0;
}

static bool ends_with(const char *text, const char *end) {
  size_t a = strlen(text), b = strlen(end);
  return a >= b && !strcmp(text + a - b, end);
}

/* ---- Descriptors ------------------------------------------------------------------------------- */

/* Returns a descriptor of at least 3, like all of syscall.h; negative with errno on errors. */
static int open_at_name(const char *name, int flags) {
  return lvd_sys_openat(AT_FDCWD, name, flags | O_CLOEXEC, 0666);
}

/* Of the target, if the name is a link. */
static bool name_stat(const char *name, struct lvd_sys_statx *out) {
  return *name && lvd_sys_stat(AT_FDCWD, name, out) == 0;
}

__attribute__((unused)) static bool fd_stat(int fd, struct lvd_sys_statx *out) {
  return lvd_sys_stat(fd, "", out) == 0;
}

/* ---- Input: the files that --in names ---------------------------------------------------------- */

enum { INPUT_BUFFER = 65536, BURST = 4096 };

typedef struct input {
  bool open; /* the names are known */
  char **name;
  int count;
  int at; /* the file being read */
  int fd;
  bool waits; /* a read may wait: it is not a regular file */
  int line;   /* of text, from 1 */
  bool ended;
  bool comment;                     /* inside a comment, of text */
  char *given;                      /* the value of --in */
  bool reports;                     /* reports the consumed bytes as progress */
  uint64_t read_bytes, total_bytes; /* of all files; the total is 0 if unknown */
  size_t next, limit;
  uint8_t buffer[INPUT_BUFFER];
} input;

SHARED const char input_key = 0;

static void input_end(void *data, lvd_status outcome) {
  (void)outcome;
  input *in = data;
  if (in->fd > 0) lvd_sys_close(in->fd);
  for (int i = 0; i < in->count; i++) free(in->name[i]);
  free(in->name);
  free(in->given);
}

static void input_add(input *in, char *name) {
  char **grown = realloc(in->name, sizeof *grown * ((size_t)in->count + 1));
  if (!grown) refuse("out of memory");
  in->name = grown;
  in->name[in->count++] = name;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct listing {
  input *in;
  const char *folder;
} listing;

static void input_add_entry(void *argument, const char *name) {
  const listing *l = argument;
  char path[PATH_MAX];
  struct lvd_sys_statx st;
  if (name[0] == '.') return;
  int length = snprintf(path, sizeof path, "%s/%s", l->folder, name);
  if (length < 0 || (size_t)length >= sizeof path || !name_stat(path, &st) || !S_ISREG(st.stx_mode))
    return;
  input_add(l->in, copy_text(path, (size_t)length));
}

static void input_add_folder(input *in, const char *folder) {
  listing l = {in, folder};
  int fd = open_at_name(folder, O_RDONLY | O_DIRECTORY);
  bool read = fd >= 0 && lvd_sys_list(fd, input_add_entry, &l);
  int error = errno;
  if (fd >= 0) lvd_sys_close(fd);
  if (!read) refuse("cannot open the folder %s: %s", folder, strerror(error));
  if (!in->count) refuse("the folder %s holds no files", folder);
  qsort(in->name, (size_t)in->count, sizeof *in->name, by_name);
}

/* A name with a comma is one file if such a file exists, else a list. */
static void input_name_files(input *in) {
  const char *given = option("in");
  struct lvd_sys_statx st;
  if (!given || !*given) refuse("no input: name a file with --in FILE (or - for standard input)");
  if (!strcmp(given, "-")) {
    input_add(in, copy_text("-", 1));
  } else if (name_stat(given, &st)) {
    if (S_ISDIR(st.stx_mode))
      input_add_folder(in, given);
    else
      input_add(in, copy_text(given, strlen(given)));
  } else {
    for (const char *from = given; from;) {
      const char *comma = strchr(from, ',');
      size_t length = comma ? (size_t)(comma - from) : strlen(from);
      if (length) input_add(in, copy_text(from, length));
      from = comma ? comma + 1 : NULL;
    }
    if (!in->count) refuse("no input: --in names no file");
    for (int i = 0; i < in->count; i++)
      if (strcmp(in->name[i], "-") && lvd_sys_access(in->name[i], R_OK))
        refuse("cannot read %s: %s", in->name[i], strerror(errno));
  }
}

/* Opens a file for which open may block: a named pipe, until its other end is opened. */
static void open_file(const char *name, void (*open_now)(void *), void *file) {
  struct lvd_sys_statx st;
  if (name_stat(name, &st) && S_ISFIFO(st.stx_mode))
    lvd_run_blocking(open_now, file);
  else
    open_now(file);
}

/* The total length of all files; 0 if one of them is not a regular file, such as a pipe. */
static uint64_t input_total_bytes(const input *in) {
  uint64_t total = 0;
  struct lvd_sys_statx st;
  for (int i = 0; i < in->count; i++) {
    bool is_standard = !strcmp(in->name[i], "-");
    bool known = is_standard ? fd_stat(STDIN_FILENO, &st) : name_stat(in->name[i], &st);
    if (!known || !S_ISREG(st.stx_mode)) return 0;
    total += st.stx_size;
  }
  return total;
}

static void input_open_file(input *in) {
  const char *name = in->name[in->at];
  struct lvd_sys_statx st;
  /* Nonblocking: a named pipe without a writer is waited for when it is read; and another process may consume data
   * before we read, which must not block the worker. The flags of an inherited descriptor (-) are shared with other
   * processes and are not changed. */
  do
    in->fd = strcmp(name, "-")
                 ? open_at_name(name, O_RDONLY | O_NONBLOCK)
                 : lvd_sys_descriptor(lvd_sys_fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  while (in->fd < 0 && errno == EINTR);
  if (in->fd < 0) refuse("cannot open %s: %s", name, strerror(errno));
  in->waits = !fd_stat(in->fd, &st) || !S_ISREG(st.stx_mode);
  in->line = 1;
  in->ended = in->comment = false;
}

static input *input_of_app(void) {
  input *in = persistent_block("levada.in", &input_key, sizeof *in, input_end);
  if (in->open && is_another(in->given, "in")) {
    input_end(in, LVD_OK);
    *in = (input){0};
  }
  if (!in->open) {
    in->fd = -1;
    input_name_files(in);
    in->given = copy_option("in");
    in->total_bytes = input_total_bytes(in);
    in->reports = true;
    input_open_file(in);
    in->open = true;
  }
  return in;
}

/* Reads until the buffer has more than `ahead` unused bytes; false: the file ends before. `wait` waits
 * for data. */
static bool input_ahead(input *in, size_t ahead, lvd_status (*wait)(int)) {
  while (!in->ended && in->limit - in->next <= ahead) {
    if (in->waits) wait(in->fd);
    if (in->next) memmove(in->buffer, in->buffer + in->next, in->limit - in->next);
    in->limit -= in->next;
    in->next = 0;
    ssize_t got = lvd_sys_read(in->fd, in->buffer + in->limit, sizeof in->buffer - in->limit);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) refuse("cannot read %s: %s", in->name[in->at], strerror(errno));
    in->ended = got == 0;
    in->read_bytes += (size_t)got;
    in->limit += (size_t)got;
    if (in->reports) /* bytes in the buffer are not consumed yet */
      lvd_app_input_progress(lvd_current_app(), in->read_bytes - in->limit, in->total_bytes);
  }
  return in->limit - in->next > ahead;
}

/* ---- A file that is being written -------------------------------------------------------------- */

typedef struct output {
  bool open;
  bool checked, waits; /* whether it is known that a write may wait; whether it may */
  int fd, error;
  char *name; /* the final name; null: nothing to rename (standard output, a device) */
  char *temporary;
  uint64_t length; /* of all output */
  size_t used;     /* of the buffer */
  uint8_t *buffer;
} output;

enum { OUTPUT_BUFFER = 65536, AT_ONCE = 4096 /* into a pipe that has room */ };

static void output_free(output *out) {
  free(out->name);
  free(out->temporary);
  free(out->buffer);
  *out = (output){0};
}

static bool is_special(const char *name) {
  struct lvd_sys_statx st;
  return name_stat(name, &st) && !S_ISREG(st.stx_mode) && !S_ISDIR(st.stx_mode);
}

/* Whether a process has ended, even if it has not been reaped. */
static bool has_ended(long process) {
  if (lvd_sys_kill((pid_t)process, 0)) return errno == ESRCH;
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%ld/stat", process);
  int fd = open_at_name(path, O_RDONLY);
  if (fd < 0) return false;
  ssize_t got = lvd_sys_read(fd, line, sizeof line - 1);
  lvd_sys_close(fd);
  if (got < 0) return false;
  line[got] = 0;
  const char *state = strrchr(line, ')'); /* the name's end */
  return state && !strncmp(state, ") Z", 3);
}

typedef struct abandoned {
  const char *name, *last; /* that is written; without its folder */
  size_t length;           /* ... of the latter */
} abandoned;

static void remove_if_abandoned(void *argument, const char *name) {
  const abandoned *a = argument;
  char path[PATH_MAX];
  long process;
  int n, end = 0, folder = (int)(a->last - a->name);
  if (strncmp(name, a->last, a->length) ||
      sscanf(name + a->length, ".part-%ld-%d%n", &process, &n, &end) != 2 ||
      name[a->length + (size_t)end] || process < 1 || process > INT_MAX || !has_ended(process) ||
      snprintf(path, sizeof path, "%.*s%s", folder, a->name, name) >= (int)sizeof path)
    return;
  /* A process of another container has another id here, but it holds the lock of the file. */
  int fd = open_at_name(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  if (LVD_SYS(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0) lvd_sys_unlinkat(AT_FDCWD, path, 0);
  lvd_sys_close(fd);
}

/* Removes what a killed process has left of `name`: NAME.part-PROCESS-N, if the process has ended. A host does the
 * same for applications that do not write again (partial_outputs.rs). */
static void remove_abandoned(const char *name) {
  const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
  abandoned a = {name, last, strlen(last)};
  char path[PATH_MAX];
  int folder = (int)(last - name);
  if ((size_t)folder + a.length + 64 >= sizeof path) return;
  snprintf(path, sizeof path, "%.*s", folder, name);
  int fd = open_at_name(folder ? path : ".", O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  lvd_sys_list(fd, remove_if_abandoned, &a);
  lvd_sys_close(fd);
}

/* The target of a symbolic link, in allocated memory; null: it is not a link, or its target does not exist. */
static char *link_target(const char *name) {
  enum { LINKS_MAX = 40 }; /* the kernel's limit */
  char *path = NULL, part[PATH_MAX];
  for (int links = 0; links <= LINKS_MAX; links++) {
    const char *from = path ? path : name, *slash = strrchr(from, '/');
    long length = LVD_SYS(SYS_readlinkat, AT_FDCWD, from, part, sizeof part);
    if (length < 0 && path && lvd_sys_access(path, F_OK) == 0) return path;
    if (length < 0 || (size_t)length == sizeof part) break;
    LVD_SYS_WROTE(part, (size_t)length);
    size_t folder = part[0] == '/' || !slash ? 0 : (size_t)(slash - from) + 1;
    char *next = malloc(folder + (size_t)length + 1);
    if (!next) break;
    memcpy(next, from, folder);
    memcpy(next + folder, part, (size_t)length);
    next[folder + (size_t)length] = 0;
    free(path);
    path = next;
  }
  free(path);
  return NULL;
}

static void output_open_now(void *argument) {
  output *out = argument;
  const char *name = out->name;
  struct lvd_sys_statx st;
  if (!strcmp(name, "-")) {
    out->fd = lvd_sys_descriptor(lvd_sys_fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  } else if (name_stat(name, &st) && S_ISDIR(st.stx_mode)) {
    errno = EISDIR;
  } else if (is_special(name)) {
    out->fd = open_at_name(name, O_WRONLY);
  } else {
    char *followed = link_target(name);
    if (followed) {
      free(out->name);
      name = out->name = followed;
    }
    remove_abandoned(name);
    size_t room = strlen(name) + 48;
    out->temporary = malloc(room);
    for (int i = 0; out->temporary && i <= 1000; i++) {
      snprintf(out->temporary, room, "%s.part-%ld-%d", name, (long)lvd_sys_getpid(), i);
      out->fd = open_at_name(out->temporary, O_WRONLY | O_CREAT | O_EXCL);
      if (out->fd >= 0 || errno != EEXIST) break;
    }
    if (out->fd >= 0) LVD_SYS(SYS_flock, out->fd, LOCK_EX | LOCK_NB); /* see remove_abandoned */
  }
  out->error = errno;
}

/* A file that is looked for, by what it is. */
typedef struct wanted {
  struct lvd_sys_statx file;
  int folder;
  bool found;
} wanted;

static void look_for(void *argument, const char *name) {
  wanted *w = argument;
  struct lvd_sys_statx st;
  if (*name && lvd_sys_stat(w->folder, name, &st) == 0)
    w->found |= st.stx_ino == w->file.stx_ino && st.stx_dev_major == w->file.stx_dev_major &&
                st.stx_dev_minor == w->file.stx_dev_minor;
}

/* Is this the name of a file that --in names, too? */
static bool is_input(const char *name) {
  const char *given = option("in");
  wanted w = {.folder = AT_FDCWD};
  struct lvd_sys_statx st;
  if (!given || !strcmp(name, "-") || !name_stat(name, &w.file) || !S_ISREG(w.file.stx_mode))
    return false;
  if (name_stat(given, &st)) {
    look_for(&w, given);
    w.folder = S_ISDIR(st.stx_mode) ? open_at_name(given, O_RDONLY | O_DIRECTORY) : -1;
    if (w.folder >= 0) {
      lvd_sys_list(w.folder, look_for, &w);
      lvd_sys_close(w.folder);
    }
    return w.found;
  }
  for (const char *from = given; from && !w.found;) {
    char path[PATH_MAX];
    const char *comma = strchr(from, ',');
    size_t length = comma ? (size_t)(comma - from) : strlen(from);
    if (length < sizeof path) {
      memcpy(path, from, length);
      path[length] = 0;
      look_for(&w, path);
    }
    from = comma ? comma + 1 : NULL;
  }
  return w.found;
}

static void output_open(output *out, const char *name) {
  if (is_input(name))
    refuse("cannot write %s: --in reads this file, and it would be replaced", name);
  out->fd = -1;
  out->name = copy_text(name, strlen(name));
  out->buffer = malloc(OUTPUT_BUFFER);
  if (!out->buffer) refuse("out of memory");
  do open_file(name, output_open_now, out);
  while (out->fd < 0 && out->error == EINTR);
  if (out->fd < 0) {
    int why = out->error;
    output_free(out);
    refuse("cannot write %s: %s", name, strerror(why));
  }
  out->open = true;
  if (!out->temporary) {
    free(out->name);
    out->name = NULL;
  }
}

static const char *output_name(const output *out) { return out->name ? out->name : "the output"; }

/* Whether a write may wait for a reader. Regular files and /dev/null do not. */
static bool output_waits(output *out) {
  struct lvd_sys_statx st;
  if (!out->checked) {
    bool known = fd_stat(out->fd, &st);
    bool memory =
        known && S_ISCHR(st.stx_mode) && st.stx_rdev_major == 1; /* /dev/null, /dev/full */
    out->waits = !known || !(S_ISREG(st.stx_mode) || memory);
    out->checked = true;
  }
  return out->waits;
}

/* False, with errno, if that fails. */
static bool output_write(output *out, const uint8_t *bytes, size_t count) {
  bool waits = output_waits(out);
  while (count) {
    if (waits) lvd_wait_writable(out->fd);
    size_t part = !waits || count < AT_ONCE ? count : AT_ONCE;
    ssize_t put = lvd_sys_write(out->fd, bytes, part);
    if (put < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (put <= 0) continue;
    bytes += put;
    count -= (size_t)put;
  }
  return true;
}

static bool output_flush(output *out) {
  bool good = output_write(out, out->buffer, out->used);
  out->used = 0;
  return good;
}

static void output_put(output *out, const void *bytes, size_t count) {
  bool good = true;
  if (count > OUTPUT_BUFFER - out->used) good = output_flush(out);
  if (count >= OUTPUT_BUFFER) {
    good = good && output_write(out, bytes, count);
  } else if (count) {
    memcpy(out->buffer + out->used, bytes, count);
    out->used += count;
  }
  out->length += count;
  if (!good) refuse("cannot write %s: %s", output_name(out), strerror(errno));
}

/* Makes the output visible to a terminal or the reader of a pipe; the end then need not wait for
 * buffered data. */
static void output_show(output *out) {
  if (!out->name && !output_flush(out))
    refuse("cannot write %s: %s", output_name(out), strerror(errno));
}

/* Closes the file and gives it its name, or removes it. False, with errno, if that fails. */
static bool output_close(output *out, bool keep) {
  if (!out->open) {
    if (out->fd > 0) lvd_sys_close(out->fd); /* the application has ended while it was opened */
    output_free(out);
    return true;
  }
  bool good = !keep || output_flush(out);
  int why = errno;
  if (lvd_sys_close(out->fd) && good) {
    good = false;
    why = errno;
  }
  if (out->name && good && keep && rename(out->temporary, out->name)) {
    good = false;
    why = errno;
  }
  if (out->name && !(good && keep)) lvd_sys_unlinkat(AT_FDCWD, out->temporary, 0);
  output_free(out);
  errno = why;
  return good;
}

/* The same at the end of the application, when no actor can fail: `app` fails. */
static void output_end(output *out, bool keep, lvd_app *app) {
  char *name = out->name ? malloc(strlen(out->name) + 1) : NULL;
  if (name) strcpy(name, out->name);
  if (!output_close(out, keep))
    lvd_app_fail(app, "cannot write %s: %s", name ? name : "the output", strerror(errno));
  free(name);
}

static void output_complete(output *out) {
  char *name = out->name ? copy_text(out->name, strlen(out->name)) : NULL;
  bool good = output_close(out, true);
  int why = errno;
  char text[PATH_MAX];
  snprintf(text, sizeof text, "%s", name ? name : "the output");
  free(name);
  if (!good) refuse("cannot write %s: %s", text, strerror(why));
}

/* ---- The one output of an application: what --out names, or else the standard output ------------ */

typedef struct app_output {
  lvd_app *app;
  char *given; /* the value of --out */
  output out;
} app_output;

SHARED const char app_output_key = 0;

static void app_output_end(void *data, lvd_status outcome) {
  app_output *o = data;
  output_end(&o->out, outcome == LVD_OK, o->app);
  free(o->given);
}

static output *output_of_app(void) {
  app_output *o = persistent_block("levada.out", &app_output_key, sizeof *o, app_output_end);
  o->app = lvd_current_app();
  if (o->out.open && is_another(o->given, "out")) {
    output_complete(&o->out);
    free(o->given);
    o->given = NULL;
  }
  if (!o->out.open) {
    const char *name = option("out");
    output_open(&o->out, name ? name : "-");
    free(o->given);
    o->given = copy_option("out");
  }
  return &o->out;
}

#endif
