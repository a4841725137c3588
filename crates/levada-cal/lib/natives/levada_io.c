/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of levada.io: bytes and numbers in, bytes, numbers, pictures and video out.
 *
 * Each of the four (input, stream, pictures, video) is a block of the application. The actors that
 * call may sit on different workers; no two of them share a block, except that io_fail reads the
 * names of the input's files, which never change. When an application fails, pictures and frames
 * that were complete are kept. */
#include "files.h"
#include "video.h"

void io_read(uint8_t *bytes, int32_t *got) {
  input *in = input_of_app();
  if (in->fd < 0 && in->at == in->count) {
    *got = -2;
  } else if (input_ahead(in, 0, lvd_wait_input_restartable)) {
    size_t count = in->limit - in->next;
    if (count > BURST) count = BURST;
    memcpy(bytes, in->buffer + in->next, count);
    in->next += count;
    *got = (int32_t)count;
  } else {
    lvd_sys_close(in->fd);
    in->fd = -1;
    if (++in->at < in->count) input_open_file(in);
    *got = -1;
  }
}

/* ---- Numbers as text --------------------------------------------------------------------------- */

/* Moves to the next number; false if there is none in any file. */
static bool input_ends_number(uint8_t c) { return c && strchr(" \t\r\n,#", c); }

static bool input_seek_number(input *in) {
  while (in->at < in->count) {
    if (!input_ahead(in, 0, lvd_wait_input_restartable)) {
      if (in->fd >= 0) lvd_sys_close(in->fd);
      in->fd = -1;
      if (++in->at < in->count) input_open_file(in);
      continue;
    }
    uint8_t c = in->buffer[in->next];
    if (c == '#') in->comment = true;
    if (c == '\n') in->comment = false;
    if (!in->comment && c != '#' && !input_ends_number(c)) return true;
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
  /* Nothing is consumed before all of it has arrived. */
  while (length < sizeof word - 1 && input_ahead(in, length, lvd_wait_input_restartable) &&
         !input_ends_number(in->buffer[in->next + length])) {
    word[length] = (char)in->buffer[in->next + length];
    length++;
  }
  in->next += length;
  word[length] = 0;
  errno = 0;
  long long number = strtoll(word, &end, 10);
  bool good = end == word + length, fits = errno != ERANGE; /* a zero byte does not end a word */
  for (char *c = word; c < word + length; c++)
    if (*c < ' ' || *c > '~') *c = '?'; /* escaped for terminals */
  if (!good) refuse("%s, line %d: \"%s\" is not a whole number", in->name[in->at], in->line, word);
  if (!fits) refuse("%s, line %d: %s does not fit into 64 bits", in->name[in->at], in->line, word);
  if (length == sizeof word - 1 && input_ahead(in, 0, lvd_wait_readable) &&
      !input_ends_number(in->buffer[in->next]))
    refuse("%s, line %d: %s... is too long for a number", in->name[in->at], in->line, word);
  return number;
}

/* ---- Stream: bytes and lines to one file ------------------------------------------------------- */

void io_open(void) { output_of_app(); }

void io_write(uint8_t *bytes, int32_t count) {
  if (count < 0 || count > BURST) lvd_native_fail("io_write: the count %d is not 0 to 4096", count);
  output *out = output_of_app();
  output_put(out, bytes, (size_t)count);
  output_show(out);
}

void io_write_number(int64_t number) {
  char line[32];
  int length = snprintf(line, sizeof line, "%" PRId64 "\n", number);
  output *out = output_of_app();
  output_put(out, line, (size_t)length);
  output_show(out);
}

void io_write_line(const char *line) {
  output *out = output_of_app();
  output_put(out, line, strlen(line));
  output_put(out, "\n", 1);
  output_show(out);
}

/* ---- Pictures ---------------------------------------------------------------------------------- */

typedef struct pictures {
  char *given; /* the value of --out */
  output out;
  uint64_t complete;
  size_t left; /* remaining samples of the current picture */
  bool widen;  /* grey into a .ppm: each sample three times */
} pictures;

static const char pictures_key;

static void pictures_end(void *data, lvd_status outcome) {
  (void)outcome;
  pictures *p = data;
  output_close(&p->out, false);
  free(p->given);
}

static pictures *pictures_of_app(void) {
  pictures *p = persistent_block("levada.pictures", &pictures_key, sizeof *p, pictures_end);
  if (p->given && is_another(p->given, "out")) {
    pictures_end(p, LVD_OK);
    *p = (pictures){0};
  }
  if (!p->given) p->given = copy_option("out");
  return p;
}

/* The placeholder for the number in a name, %d or %0Nd: its length and N; 0 if there is none. */
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

/* The name of picture `number`, derived from --out. */
static void picture_name(char *name, size_t room, const char *given, uint64_t number, bool colour) {
  struct lvd_sys_statx st;
  bool folder = ends_with(given, "/") || (name_stat(given, &st) && S_ISDIR(st.stx_mode));
  int digits, length;
  const char *place = given;
  if (folder) {
    if (lvd_sys_mkdir(given, 0777) && errno != EEXIST)
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
  pictures *p = pictures_of_app();
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
  pictures *p = pictures_of_app();
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
  pictures *p = pictures_of_app();
  if (!p->out.open || p->left) lvd_native_fail("io_picture_end: the picture is not complete");
  output_show(&p->out);
  output_complete(&p->out);
  lvd_app_progress(lvd_current_app(), "pictures", ++p->complete);
}

void io_video_begin(int32_t width, int32_t height, int32_t width1, int32_t height1, int32_t width2,
                    int32_t height2) {
  video *v = video_for_frame();
  int32_t w[3] = {width, width1, width2}, h[3] = {height, height1, height2};
  for (int i = 0; i < 3; i++)
    if (w[i] < !i || h[i] < !i) lvd_native_fail("io_video_begin: an impossible size");
  video_begin(v, w, h, " XCOLORRANGE=FULL");
}

void io_video_put(int32_t plane, int32_t line, int32_t x, uint8_t *samples, int32_t count) {
  video *v = video_of_app();
  if (!v->out.open || plane < 0 || plane > 2 || line < 0 || line >= v->height[plane] || x < 0 ||
      count < 0 || count > 64 || x > v->width[plane] - count)
    lvd_native_fail("io_video_put: samples that the frame does not have");
  memcpy(v->plane[plane] + (size_t)line * (size_t)v->width[plane] + (size_t)x, samples,
         (size_t)count);
}

void io_video_end(void) {
  video *v = video_of_app();
  if (!v->out.open) lvd_native_fail("io_video_end: no frame has begun");
  video_end_frame(v, (const uint8_t *const *)v->plane);
  lvd_app_progress(lvd_current_app(), "frames", v->complete);
}

/* ---- The end ----------------------------------------------------------------------------------- */

void io_finish(void) {
  video *v = video_of_app();
  if (v->out.open) output_complete(&v->out);
}

void io_fail(const char *reason, int32_t file, int32_t picture, int64_t where, int32_t mcu) {
  const input *in = persistent_block("levada.in", &input_key, sizeof *in, input_end);
  const char *name = file >= 0 && file < in->count ? in->name[file] : "the input";
  char place[96] = "";
  size_t length = 0;
  if (picture >= 0) length += (size_t)snprintf(place, sizeof place, ", picture %d", picture);
  if (where >= 0)
    length += (size_t)snprintf(place + length, sizeof place - length, ", byte %" PRId64, where);
  if (mcu >= 0) snprintf(place + length, sizeof place - length, ", MCU %d", mcu);
  refuse("%s%s: %s", strcmp(name, "-") ? name : "standard input", place, reason);
}
