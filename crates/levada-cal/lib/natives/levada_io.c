/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of levada.io: bytes and numbers in, bytes, numbers, pictures and video out.
 *
 * What a network reads or writes belongs to its application, so each of the four (input, stream,
 * pictures, video) is a block of the application and nothing here is static but their keys. The
 * actors that call may sit on different workers; no two of them share a block, except that
 * io_fail reads the names of the input's files, which never change.
 *
 * What may wait (for a pipe, a terminal) waits through lvd_wait_* and lvd_blocking, which let the
 * worker go on and do not return if the application ends meanwhile. So nothing is owned by a call
 * that waits: all that is open lies in a block, and is closed at the end.
 *
 * A file gets its name when it is complete, by rename; until then it is NAME.part-PROCESS-N beside
 * it; the next that writes NAME removes what a killed process has left. A link is followed: it stays,
 * and the file that it leads to is the one that gets its name. When an application fails, pictures and
 * frames that were complete are kept. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <levada/native.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Stops the application because of what it was given to read or write: no fault of the actor's. */
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

static void *block(const void *key, size_t size, void (*end)(void *, lvd_status)) {
  void *data = lvd_app_data(lvd_current_app(), key, size, end);
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

/* ---- Input: the files that --in names ---------------------------------------------------------- */

enum { INPUT_BUFFER = 65536, BURST = 4096 };

typedef struct input {
  bool open; /* the names are known */
  char **name;
  int count;
  int at; /* the file being read */
  int fd, error;
  bool waits; /* for what it reads: it is no file */
  int line;   /* of text, from 1 */
  bool ended;
  size_t next, limit;
  uint8_t buffer[INPUT_BUFFER];
} input;

static const char input_key;

static void input_end(void *data, lvd_status outcome) {
  (void)outcome;
  input *in = data;
  if (in->fd > 0) close(in->fd);
  for (int i = 0; i < in->count; i++) free(in->name[i]);
  free(in->name);
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

static void input_add_folder(input *in, const char *folder) {
  DIR *dir = opendir(folder);
  if (!dir) refuse("cannot open the folder %s: %s", folder, strerror(errno));
  for (struct dirent *entry; (entry = readdir(dir));) {
    char path[PATH_MAX];
    struct stat st;
    if (entry->d_name[0] == '.') continue;
    int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (length < 0 || (size_t)length >= sizeof path || stat(path, &st) || !S_ISREG(st.st_mode))
      continue;
    input_add(in, copy_text(path, (size_t)length));
  }
  closedir(dir);
  if (!in->count) refuse("the folder %s holds no files", folder);
  qsort(in->name, (size_t)in->count, sizeof *in->name, by_name);
}

/* A name with a comma in it is one file if there is such a file, or else a list. */
static void input_name_files(input *in) {
  const char *given = option("in");
  struct stat st;
  if (!given || !*given) refuse("no input: name a file with --in FILE (or - for standard input)");
  if (!strcmp(given, "-")) {
    input_add(in, copy_text("-", 1));
  } else if (!stat(given, &st)) {
    if (S_ISDIR(st.st_mode))
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
      if (strcmp(in->name[i], "-") && access(in->name[i], R_OK))
        refuse("cannot read %s: %s", in->name[i], strerror(errno));
  }
}

/* Opens what may make us wait: a named pipe, until somebody opens its other end. */
static void open_file(const char *name, void (*open_now)(void *), void *file) {
  struct stat st;
  if (!stat(name, &st) && S_ISFIFO(st.st_mode))
    lvd_blocking(open_now, file);
  else
    open_now(file);
}

static void input_open_now(void *argument) {
  input *in = argument;
  const char *name = in->name[in->at];
  in->fd = strcmp(name, "-") ? open(name, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
  in->error = errno;
}

static void input_open_file(input *in) {
  const char *name = in->name[in->at];
  struct stat st;
  do open_file(name, input_open_now, in);
  while (in->fd < 0 && in->error == EINTR);
  if (in->fd < 0) refuse("cannot open %s: %s", name, strerror(in->error));
  in->waits = fstat(in->fd, &st) || !S_ISREG(st.st_mode);
  in->line = 1;
  in->ended = false;
}

static input *input_of_app(void) {
  input *in = block(&input_key, sizeof *in, input_end);
  if (!in->open) {
    in->fd = -1;
    input_name_files(in);
    input_open_file(in);
    in->open = true;
  }
  return in;
}

/* More bytes of the present file in the buffer; false at its end. */
static bool input_fill(input *in) {
  while (!in->ended && in->next == in->limit) {
    if (in->waits) lvd_wait_readable(in->fd);
    ssize_t got = read(in->fd, in->buffer, sizeof in->buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) refuse("cannot read %s: %s", in->name[in->at], strerror(errno));
    in->ended = got == 0;
    in->next = 0;
    in->limit = (size_t)got;
  }
  return in->next < in->limit;
}

void io_read(uint8_t *bytes, int32_t *got) {
  input *in = input_of_app();
  if (in->fd < 0 && in->at == in->count) {
    *got = -2;
  } else if (input_fill(in)) {
    size_t count = in->limit - in->next;
    if (count > BURST) count = BURST;
    memcpy(bytes, in->buffer + in->next, count);
    in->next += count;
    *got = (int32_t)count;
  } else {
    close(in->fd);
    in->fd = -1;
    if (++in->at < in->count) input_open_file(in);
    *got = -1;
  }
}

/* ---- Numbers as text --------------------------------------------------------------------------- */

/* Leads to the next number; false if there is none in any file. */
static bool input_ends_number(uint8_t c) { return c && strchr(" \t\r\n,#", c); }

static bool input_seek_number(input *in) {
  for (bool comment = false; in->at < in->count;) {
    if (!input_fill(in)) {
      if (in->fd >= 0) close(in->fd);
      in->fd = -1;
      comment = false;
      if (++in->at < in->count) input_open_file(in);
      continue;
    }
    uint8_t c = in->buffer[in->next];
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (!comment && c != '#' && !input_ends_number(c)) return true;
    if (c == '\n') in->line++;
    in->next++;
  }
  return false;
}

bool io_more(void) { return input_seek_number(input_of_app()); }

int64_t io_read_number(void) {
  input *in = input_of_app();
  char word[32], *end;
  size_t length = 0;
  if (!input_seek_number(in)) lvd_native_fail("io_read_number: there are no more numbers");
  while (length < sizeof word - 1 && input_fill(in) && !input_ends_number(in->buffer[in->next]))
    word[length++] = (char)in->buffer[in->next++];
  word[length] = 0;
  errno = 0;
  long long number = strtoll(word, &end, 10);
  bool good = end == word + length, fits = errno != ERANGE; /* a zero byte ends no word */
  for (char *c = word; c < word + length; c++)
    if (*c < ' ' || *c > '~') *c = '?'; /* what is no text is not put on a terminal */
  if (!good) refuse("%s, line %d: \"%s\" is not a whole number", in->name[in->at], in->line, word);
  if (!fits) refuse("%s, line %d: %s does not fit into 64 bits", in->name[in->at], in->line, word);
  if (length == sizeof word - 1 && input_fill(in) && !input_ends_number(in->buffer[in->next]))
    refuse("%s, line %d: %s... is too long for a number", in->name[in->at], in->line, word);
  return number;
}

/* ---- A file that is being written -------------------------------------------------------------- */

typedef struct output {
  bool open;
  int fd, error;
  char *name; /* its final one; null: there is nothing to rename (standard output, a device) */
  char *temporary;
  uint64_t length; /* of all that was put */
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
  struct stat st;
  return !stat(name, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Removes what a process that was killed has left of `name`: NAME.part-PROCESS-N, if there is no such
 * process any more. */
static void remove_abandoned(const char *name) {
  const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
  size_t length = strlen(last);
  char path[PATH_MAX];
  int folder = (int)(last - name);
  if ((size_t)folder + length + 64 >= sizeof path) return;
  snprintf(path, sizeof path, "%.*s", folder, name);
  DIR *dir = opendir(folder ? path : ".");
  if (!dir) return;
  for (struct dirent *entry; (entry = readdir(dir));) {
    long process;
    int n, end = 0;
    if (strncmp(entry->d_name, last, length) ||
        sscanf(entry->d_name + length, ".part-%ld-%d%n", &process, &n, &end) != 2 ||
        entry->d_name[length + (size_t)end] || process < 1 || process > INT_MAX)
      continue;
    if (!kill((pid_t)process, 0) || errno != ESRCH) continue;
    if (snprintf(path, sizeof path, "%.*s%s", folder, name, entry->d_name) >= (int)sizeof path)
      continue;
    /* One of another container has a number of its own there; but it holds the file's lock. */
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB)) unlink(path);
    if (fd >= 0) close(fd);
  }
  closedir(dir);
}

static void output_open_now(void *argument) {
  output *out = argument;
  const char *name = out->name;
  struct stat st;
  if (!strcmp(name, "-")) {
    out->fd = dup(STDOUT_FILENO);
  } else if (!stat(name, &st) && S_ISDIR(st.st_mode)) {
    errno = EISDIR;
  } else if (is_special(name)) {
    out->fd = open(name, O_WRONLY | O_CLOEXEC);
  } else {
    bool is_link = !lstat(name, &st) && S_ISLNK(st.st_mode);
    char *followed = is_link ? realpath(name, NULL) : NULL; /* null: it leads nowhere yet */
    if (followed) {
      free(out->name);
      name = out->name = followed;
    }
    remove_abandoned(name);
    size_t room = strlen(name) + 48;
    out->temporary = malloc(room);
    for (int i = 0; out->temporary && i <= 1000; i++) {
      snprintf(out->temporary, room, "%s.part-%ld-%d", name, (long)getpid(), i);
      out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (out->fd >= 0 || errno != EEXIST) break;
    }
    if (out->fd >= 0) flock(out->fd, LOCK_EX | LOCK_NB); /* see remove_abandoned */
  }
  out->error = errno;
}

static void output_open(output *out, const char *name) {
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

/* False, with errno, if that fails. */
static bool output_write(output *out, const uint8_t *bytes, size_t count) {
  while (count) {
    if (!out->name) lvd_wait_writable(out->fd);
    size_t part = out->name || count < AT_ONCE ? count : AT_ONCE;
    ssize_t put = write(out->fd, bytes, part);
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

/* Whoever reads along, at a terminal or through a pipe, sees what there is; and what is not kept back
 * need not be waited for at the end. */
static void output_show(output *out) {
  if (!out->name && !output_flush(out))
    refuse("cannot write %s: %s", output_name(out), strerror(errno));
}

/* Closes the file and gives it its name, or removes it. False, with errno, if that fails. */
static bool output_close(output *out, bool keep) {
  if (!out->open) {
    if (out->fd > 0) close(out->fd); /* the application has ended while it was opened */
    output_free(out);
    return true;
  }
  bool good = !keep || output_flush(out);
  int why = errno;
  if (close(out->fd) && good) {
    good = false;
    why = errno;
  }
  if (out->name && good && keep && rename(out->temporary, out->name)) {
    good = false;
    why = errno;
  }
  if (out->name && !(good && keep)) unlink(out->temporary);
  output_free(out);
  errno = why;
  return good;
}

/* The same at the application's end, when no actor is there to fail: `app` does. */
static void output_end(output *out, bool keep, lvd_app *app) {
  char *name = out->name ? strdup(out->name) : NULL;
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

/* ---- Stream: bytes and lines to one file ------------------------------------------------------- */

typedef struct stream {
  lvd_app *app;
  output out;
} stream;

static const char stream_key;

static void stream_end(void *data, lvd_status outcome) {
  stream *s = data;
  output_end(&s->out, outcome == LVD_OK, s->app);
}

static stream *stream_of_app(void) {
  stream *s = block(&stream_key, sizeof *s, stream_end);
  if (!s->out.open) {
    const char *name = option("out");
    s->app = lvd_current_app();
    output_open(&s->out, name ? name : "-");
  }
  return s;
}

void io_open(void) { stream_of_app(); }

void io_write(uint8_t *bytes, int32_t count) {
  if (count < 0 || count > BURST) lvd_native_fail("io_write: the count %d is not 0 to 4096", count);
  output *out = &stream_of_app()->out;
  output_put(out, bytes, (size_t)count);
  output_show(out);
}

void io_write_number(int64_t number) {
  char line[32];
  int length = snprintf(line, sizeof line, "%" PRId64 "\n", number);
  output *out = &stream_of_app()->out;
  output_put(out, line, (size_t)length);
  output_show(out);
}

void io_write_line(const char *line) {
  output *out = &stream_of_app()->out;
  output_put(out, line, strlen(line));
  output_put(out, "\n", 1);
  output_show(out);
}

/* ---- Pictures ---------------------------------------------------------------------------------- */

typedef struct pictures {
  output out;
  uint64_t complete;
  size_t left; /* samples of the present picture */
  bool widen;  /* grey into a .ppm: each sample three times */
} pictures;

static const char pictures_key;

static void pictures_end(void *data, lvd_status outcome) {
  (void)outcome;
  pictures *p = data;
  output_close(&p->out, false);
}

static bool ends_with(const char *text, const char *end) {
  size_t a = strlen(text), b = strlen(end);
  return a >= b && !strcmp(text + a - b, end);
}

/* The number's place in a name, %d or %0Nd: its length and N; 0 if there is none. */
static size_t number_place(const char *at, int *digits) {
  size_t length = 1;
  *digits = 0;
  if (at[0] != '%') return 0;
  while (at[length] >= '0' && at[length] <= '9') {
    *digits = *digits * 10 + (at[length++] - '0');
    if (*digits > 20) return 0;
  }
  return at[length] == 'd' ? length + 1 : 0;
}

/* The name of picture `number`, from what --out says. */
static void picture_name(char *name, size_t room, const char *given, uint64_t number, bool colour) {
  struct stat st;
  bool folder = ends_with(given, "/") || (!stat(given, &st) && S_ISDIR(st.st_mode));
  int digits, length;
  const char *place = given;
  if (folder) {
    if (mkdir(given, 0777) && errno != EEXIST)
      refuse("cannot make the folder %s: %s", given, strerror(errno));
    length = snprintf(name, room, "%s%spicture-%04" PRIu64 "%s", given,
                      ends_with(given, "/") ? "" : "/", number, colour ? ".ppm" : ".pgm");
  } else {
    while (*place && !number_place(place, &digits)) place++;
    if (*place) {
      size_t skip = number_place(place, &digits);
      length = snprintf(name, room, "%.*s%0*" PRIu64 "%s", (int)(place - given), given, digits,
                        number, place + skip);
    } else if (number > 1 && strcmp(given, "-") && !is_special(given)) {
      refuse("the input holds more than one picture, and --out names one file: give a "
             "folder, or a name with %%d where the number goes");
    } else {
      length = snprintf(name, room, "%s", given);
    }
  }
  if (length < 0 || (size_t)length >= room) refuse("the name of the output is too long");
}

void io_picture_begin(int32_t width, int32_t height, int32_t channels) {
  pictures *p = block(&pictures_key, sizeof *p, pictures_end);
  const char *given = option("out");
  char name[PATH_MAX - 64], header[64];
  if (width < 1 || height < 1 || (channels != 1 && channels != 3))
    lvd_native_fail("a picture cannot be of %d by %d pixels of %d samples", width, height,
                    channels);
  if (!given || !*given)
    refuse("no output: name a file or a folder with --out (- is standard output)");
  picture_name(name, sizeof name, given, p->complete + 1, channels == 3);
  p->widen = false;
  if (strcmp(name, "-") && !is_special(name)) {
    if (ends_with(name, ".ppm"))
      p->widen = channels == 1;
    else if (ends_with(name, ".y4m"))
      refuse("this network writes pictures, not video: name a folder, or .ppm files");
    else if (ends_with(name, ".pgm") && channels == 3)
      refuse("a colour picture does not fit into %s: name it .ppm", name);
    else if (!ends_with(name, ".pgm") && !ends_with(name, ".pnm"))
      refuse("pictures are written as .ppm, .pgm or .pnm, and %s is none of these", name);
  }
  p->left = (size_t)width * (size_t)height * (size_t)channels;
  output_open(&p->out, name);
  int length = snprintf(header, sizeof header, "P%d\n%d %d\n255\n",
                        channels == 3 || p->widen ? 6 : 5, width, height);
  output_put(&p->out, header, (size_t)length);
}

void io_picture_put(uint8_t *samples, int32_t count) {
  pictures *p = block(&pictures_key, sizeof *p, pictures_end);
  if (!p->out.open || count < 0 || count > 384 || (size_t)count > p->left)
    lvd_native_fail("io_picture_put: more samples than the picture has");
  p->left -= (size_t)count;
  if (p->widen) {
    for (int i = 0; i < count; i++)
      output_put(&p->out, (uint8_t[]){samples[i], samples[i], samples[i]}, 3);
  } else {
    output_put(&p->out, samples, (size_t)count);
  }
}

void io_picture_end(void) {
  pictures *p = block(&pictures_key, sizeof *p, pictures_end);
  if (!p->out.open || p->left) lvd_native_fail("io_picture_end: the picture is not complete");
  output_show(&p->out);
  output_complete(&p->out);
  lvd_app_progress(lvd_current_app(), "pictures", ++p->complete);
}

/* ---- Video ------------------------------------------------------------------------------------- */

typedef struct video {
  lvd_app *app;
  output out;
  uint64_t complete;
  uint64_t good; /* length of the file with all complete frames */
  int32_t width[3], height[3];
  uint8_t *plane[3];
  size_t size;
} video;

static const char video_key;

/* After a failure the frames that are complete make a video, without the part of another. Who stops
 * it wants none. */
static void video_end(void *data, lvd_status outcome) {
  video *v = data;
  bool keep = v->complete > 0 && (outcome == LVD_OK || outcome == LVD_E_FAULT);
  if (v->out.open && v->out.name && keep && outcome != LVD_OK) {
    keep = output_flush(&v->out) && ftruncate(v->out.fd, (off_t)v->good) == 0;
  }
  output_end(&v->out, keep, v->app);
  free(v->plane[0]);
}

/* What .y4m calls a picture with planes of these sizes. */
static const char *video_format(const int32_t *w, const int32_t *h) {
  if (!w[1] && !w[2]) return "mono";
  if (w[1] != w[2] || h[1] != h[2]) return NULL;
  if (w[1] == w[0] && h[1] == h[0]) return "444";
  if (w[1] == (w[0] + 1) / 2 && h[1] == (h[0] + 1) / 2) return "420jpeg";
  if (w[1] == (w[0] + 1) / 2 && h[1] == h[0]) return "422";
  if (w[1] == (w[0] + 3) / 4 && h[1] == h[0]) return "411";
  return NULL;
}

/* "25" or "30000:1001" and nothing else; both from 1 to a million. */
static bool read_rate(const char *text, unsigned long *frames, unsigned long *seconds) {
  unsigned long *const part[2] = {frames, seconds};
  *seconds = 1;
  for (int i = 0; i < 2; i++) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    *part[i] = strtoul(text, &end, 10);
    if (*part[i] < 1 || *part[i] > 1000000) return false;
    if (!*end) return true;
    if (*end != ':') return false;
    text = end + 1;
  }
  return false;
}

static void video_open(video *v, const int32_t *w, const int32_t *h) {
  const char *name = option("out"), *rate = option("rate"), *format = video_format(w, h);
  char header[128];
  unsigned long frames = 25, seconds = 1;
  if (!name || !*name) refuse("no output: name a .y4m file with --out (- is standard output)");
  if (strcmp(name, "-") && !is_special(name) && !ends_with(name, ".y4m"))
    refuse("video is written as .y4m, and %s is not named so", name);
  if (!format)
    refuse("a .y4m video cannot hold pictures whose planes have these sizes (%dx%d, %dx%d, "
           "%dx%d): write pictures instead",
           w[0], h[0], w[1], h[1], w[2], h[2]);
  if (rate && !read_rate(rate, &frames, &seconds))
    refuse("the rate \"%s\" is neither frames a second, such as 25, nor frames:seconds, such as "
           "30000:1001 (each from 1 to 1000000)",
           rate);
  size_t sizes[3];
  v->size = 0;
  for (int i = 0; i < 3; i++) {
    v->width[i] = w[i];
    v->height[i] = h[i];
    sizes[i] = (size_t)w[i] * (size_t)h[i];
    v->size += sizes[i];
  }
  v->plane[0] = malloc(v->size);
  if (!v->plane[0]) refuse("out of memory for a frame of %dx%d", w[0], h[0]);
  v->plane[1] = v->plane[0] + sizes[0];
  v->plane[2] = v->plane[1] + sizes[1];
  v->app = lvd_current_app();
  output_open(&v->out, name);
  int length =
      snprintf(header, sizeof header, "YUV4MPEG2 W%d H%d F%lu:%lu Ip A1:1 C%s XCOLORRANGE=FULL\n",
               w[0], h[0], frames, seconds, format);
  output_put(&v->out, header, (size_t)length);
}

/* How a picture's colours are sampled, for a message. */
static void sampling(char *text, size_t room, const int32_t *w, const int32_t *h) {
  const char *format = video_format(w, h);
  const char *names[][2] = {
      {"mono", "grey"}, {"444", "4:4:4"}, {"420jpeg", "4:2:0"}, {"422", "4:2:2"}, {"411", "4:1:1"}};
  for (size_t i = 0; format && i < sizeof names / sizeof *names; i++)
    if (!strcmp(format, names[i][0])) {
      snprintf(text, room, "%s", names[i][1]);
      return;
    }
  snprintf(text, room, "colours of %dx%d and %dx%d", w[1], h[1], w[2], h[2]);
}

void io_video_begin(int32_t width, int32_t height, int32_t width1, int32_t height1, int32_t width2,
                    int32_t height2) {
  video *v = block(&video_key, sizeof *v, video_end);
  int32_t w[3] = {width, width1, width2}, h[3] = {height, height1, height2};
  for (int i = 0; i < 3; i++)
    if (w[i] < !i || h[i] < !i) lvd_native_fail("io_video_begin: an impossible size");
  if (!v->out.open) {
    video_open(v, w, h);
  } else if (w[0] != v->width[0] || h[0] != v->height[0]) {
    refuse("picture %" PRIu64 " is of another size (%dx%d) than those before it (%dx%d): a video "
           "cannot hold both",
           v->complete + 1, w[0], h[0], v->width[0], v->height[0]);
  } else if (memcmp(w, v->width, sizeof w) || memcmp(h, v->height, sizeof h)) {
    char now[48], before[48];
    sampling(now, sizeof now, w, h);
    sampling(before, sizeof before, v->width, v->height);
    refuse("picture %" PRIu64 " is of another sampling (%s) than those before it (%s): a video "
           "cannot hold both",
           v->complete + 1, now, before);
  }
}

void io_video_put(int32_t plane, int32_t line, int32_t x, uint8_t *samples, int32_t count) {
  video *v = block(&video_key, sizeof *v, video_end);
  if (!v->out.open || plane < 0 || plane > 2 || line < 0 || line >= v->height[plane] || x < 0 ||
      count < 0 || count > 64 || x > v->width[plane] - count)
    lvd_native_fail("io_video_put: samples that the frame does not have");
  memcpy(v->plane[plane] + (size_t)line * (size_t)v->width[plane] + (size_t)x, samples,
         (size_t)count);
}

void io_video_end(void) {
  video *v = block(&video_key, sizeof *v, video_end);
  if (!v->out.open) lvd_native_fail("io_video_end: no frame has begun");
  output_put(&v->out, "FRAME\n", 6);
  output_put(&v->out, v->plane[0], v->size);
  if (!output_flush(&v->out)) refuse("cannot write %s: %s", output_name(&v->out), strerror(errno));
  v->good = v->out.length;
  lvd_app_progress(lvd_current_app(), "frames", ++v->complete);
}

/* ---- The end ----------------------------------------------------------------------------------- */

void io_finish(void) {
  video *v = block(&video_key, sizeof *v, video_end);
  if (v->out.open) output_complete(&v->out);
}

void io_fail(const char *reason, int32_t file, int32_t picture, int64_t where, int32_t mcu) {
  const input *in = block(&input_key, sizeof *in, input_end);
  const char *name = file >= 0 && file < in->count ? in->name[file] : "the input";
  char place[96] = "";
  size_t length = 0;
  if (picture >= 0) length += (size_t)snprintf(place, sizeof place, ", picture %d", picture);
  if (where >= 0)
    length += (size_t)snprintf(place + length, sizeof place - length, ", byte %" PRId64, where);
  if (mcu >= 0) snprintf(place + length, sizeof place - length, ", MCU %d", mcu);
  refuse("%s%s: %s", strcmp(name, "-") ? name : "standard input", place, reason);
}
