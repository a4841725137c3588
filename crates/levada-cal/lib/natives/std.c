/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of Orcc's units std.*: a source of bytes (the option "in"), displays and a writer (the
 * option "out"), a comparison with known output ("compare").
 *
 * Orcc's applications end by source_exit, which ends the process, or never. This process has other
 * applications, so
 *   - the input is delivered once, or as often as the option "loops" says, as if it were one file; then
 *     its source ends, and the network becomes quiescent when all elements in flight have been consumed.
 *     A video stream is followed by a part of its beginning (see tail.h);
 *   - source_isMaxLoopsReached is true for the reading actor only. Displays call it, too, to end the
 *     application; they would cut off elements in flight;
 *   - an actor that reads beyond the end, rewinds once too often, or calls source_exit, ends;
 *     source_exit by an actor that does not read ends the application.
 *
 * All of them are weak, so that the user's own functions override them. */
#include "files.h"
#include "tail.h"
#include "video.h"
#include <stdatomic.h>
#include <time.h>

#define STD __attribute__((weak))

/* An option that is an integer of at least `least`. */
static int32_t number_option(const char *name, int32_t least, int32_t usual) {
  const char *given = option(name);
  char *end;
  if (!given) return usual;
  errno = 0;
  long number = strtol(given, &end, 10);
  if (end == given || *end || errno || number < least || number > INT32_MAX)
    refuse("the option %s=%s is no whole number from %d on", name, given, least);
  return (int32_t)number;
}

/* ---- The source -------------------------------------------------------------------------------- */

typedef struct source {
  lvd_app *app;                 /* its application: a new version has a reader of its own */
  _Atomic(const void *) reader; /* the actor that came first */
  input in;
  uint8_t *bytes; /* of all files, concatenated */
  size_t size, room;
  size_t given, next; /* the total of all loops, without the tail */
  tail tail;
  size_t pictures; /* maximum number that is shown; 0: all */
  bool done;
  _Atomic bool loaded;
  _Atomic(lvd_app *)
      loader; /* several actors may read from it, and one of the application's reads it in */
} source;

static const char source_key;

static void source_end(void *data, lvd_status outcome) {
  source *s = data;
  free(s->bytes);
  input_end(&s->in, outcome);
}

static source *source_of_app(void) {
  return persistent_block("levada.source", &source_key, sizeof(source), source_end);
}

/* The length has to be known first, so everything is read. The previous version may have been abandoned while it
 * read; then the new one continues there. */
static void source_load(source *s) {
  input *in = &s->in;
  if (in->given && is_another(in->given, "in")) {
    source_end(s, LVD_OK);
    s->bytes = NULL;
    s->size = s->room = 0;
    *in = (input){0};
  }
  if (!in->given) {
    in->fd = -1;
    input_name_files(in);
    in->given = copy_option("in");
  }
  for (; in->at < in->count; in->at++) {
    if (in->fd < 0) input_open_file(in);
    while (input_ahead(in, 0, lvd_wait_input_restartable)) {
      size_t count = in->limit - in->next;
      if (s->room - s->size < count) {
        uint8_t *grown = realloc(s->bytes, 2 * s->room + count);
        if (!grown) refuse("out of memory for the input");
        s->bytes = grown;
        s->room = 2 * s->room + count;
      }
      memcpy(s->bytes + s->size, in->buffer + in->next, count);
      s->size += count;
      in->next = in->limit;
    }
    lvd_sys_close(in->fd);
    in->fd = -1;
  }
  const char *wish = option("tail");
  size_t loops = (size_t)number_option("loops", 1, 1);
  if (wish && strcmp(wish, "no")) refuse("the option tail=%s is not tail=no", wish);
  if (!wish) s->tail = tail_of(s->bytes, s->size);
  s->given = s->size * loops;
  s->pictures = s->tail.pictures * loops;
  if (s->given + s->tail.bytes > INT32_MAX)
    refuse("the input has more bytes than an int can count");
  atomic_store_explicit(&s->loaded, true, memory_order_release);
}

/* Another actor of the application is loading it, or was abandoned there in a drain. */
static void source_pause(void) {
  struct timespec now;
  if (lvd_app_is_draining(lvd_current_app())) lvd_native_end();
  LVD_SYS(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  LVD_SYS_WROTE(&now, sizeof now);
  lvd_wait_until((int64_t)now.tv_sec * 1000000000 + now.tv_nsec + 1000000);
}

static source *source_to_read(void) {
  source *s = source_of_app();
  if (s->loaded && is_another(s->in.given, "in")) {
    source_end(s, LVD_OK);
    *s = (source){.in.fd = -1};
  }
  if (s->app != lvd_current_app()) {
    s->app = lvd_current_app();
    s->reader = lvd_current_actor();
  }
  if (!atomic_load_explicit(&s->loaded, memory_order_acquire)) {
    if (atomic_exchange(&s->loader, s->app) != s->app) source_load(s);
    while (!atomic_load_explicit(&s->loaded, memory_order_acquire)) source_pause();
  }
  return s;
}

STD void source_init(void) { source_to_read(); }

STD void source_close(void) {}

STD int32_t source_sizeOfFile(void) {
  const source *s = source_to_read();
  return (int32_t)(s->given + s->tail.bytes);
}

STD void source_rewind(void) {
  source *s = source_to_read();
  s->done |= s->next > 0 && s->next == s->given + s->tail.bytes;
  s->next = 0;
}

STD void source_readNBytes(uint8_t *bytes, uint32_t count) {
  source *s = source_to_read();
  const size_t all = s->given + s->tail.bytes;
  if (s->done || s->next > all || count > all - s->next) lvd_native_end();
  const size_t before = s->next;
  while (count) {
    size_t from = s->next % s->size, part = s->size - from < count ? s->size - from : count;
    memcpy(bytes, s->bytes + from, part);
    bytes += part;
    s->next += part;
    count -= (uint32_t)part;
  }
  /* Not for each byte: applications read one at a time. */
  if (before < s->given && (s->next >= s->given || before / INPUT_BUFFER != s->next / INPUT_BUFFER))
    lvd_app_input_progress(lvd_current_app(), s->next < s->given ? s->next : s->given, s->given);
  if (s->next > s->given) lvd_app_set_quiescent_ok(lvd_current_app());
}

STD uint8_t source_readByte(void) {
  uint8_t byte;
  source_readNBytes(&byte, 1);
  return byte;
}

STD int32_t source_getNbLoop(void) { return 1; }

STD void source_decrementNbLoops(void) { source_to_read()->done = true; }

STD bool source_isMaxLoopsReached(void) {
  const source *s = source_of_app();
  return s->reader == lvd_current_actor() && s->done;
}

STD void source_exit(int32_t code) {
  const source *s = source_of_app();
  if (code) refuse("the application has ended itself: source_exit(%d)", code);
  if (s->reader != lvd_current_actor()) lvd_app_exit(lvd_current_app());
  lvd_native_end();
}

/* ---- The display ------------------------------------------------------------------------------- */

/* Whether the next picture is one of the input; `count` is the number of pictures before. */
static bool is_of_input(uint64_t count) {
  const size_t most = source_of_app()->pictures;
  return !most || count < most;
}

/* The container format of the input, if it is not a raw stream, which decoders need. */
static const char *container(void) {
  const source *s = source_of_app();
  bool loaded = atomic_load_explicit(&s->loaded, memory_order_acquire);
  if (!loaded || s->size < 12) return NULL;
  if (!memcmp(s->bytes + 4, "ftyp", 4)) return "MP4";
  if (!memcmp(s->bytes, "\x1a\x45\xdf\xa3", 4)) return "Matroska";
  if (!memcmp(s->bytes, "RIFF", 4) && !memcmp(s->bytes + 8, "AVI ", 4)) return "AVI";
  return NULL;
}

/* Without an output, pictures are counted and dropped. */
static bool is_shown(void) {
  const char *name = option("out");
  return name && *name;
}

static void show(const uint8_t *y, const uint8_t *u, const uint8_t *v, int32_t width,
                 int32_t height, int32_t part) {
  int32_t w[3] = {width, width / part, width / part}, h[3] = {height, height / part, height / part};
  if (width < part || height < part) {
    const char *in = container();
    if (in)
      lvd_native_fail(
          "a picture of %dx%d pixels cannot be shown: the input is a file of %s, and decoders "
          "read the bare stream (ffmpeg -i FILE -c copy -f m4v STREAM, or -f h264, -f hevc)",
          width, height, in);
    lvd_native_fail("a picture of %dx%d pixels cannot be shown", width, height);
  }
  if (!is_shown()) return;
  video *video_out = video_for_frame();
  if (!is_of_input(video_out->complete)) return;
  video_begin(video_out, w, h, "");
  video_end_frame(video_out, (const uint8_t *const[]){y, u, v});
}

STD uint8_t displayYUV_getFlags(void) { return is_shown(); }

STD int32_t displayYUV_getNbFrames(void) { return number_option("frames", 1, -1); }

STD void displayYUV_init(void) {}

STD void displayYUV_getEvent(void) {}

STD void displayYUV_displayPicture(uint8_t *y, uint8_t *u, uint8_t *v, int16_t width,
                                   int16_t height) {
  show(y, u, v, width, height, 2);
}

STD void displayYUV444_init(int16_t window_width, int16_t window_height, int16_t width,
                            int16_t height) {
  (void)window_width, (void)window_height, (void)width, (void)height;
}

STD void displayYUV444_displayPicture(uint8_t *y, uint8_t *u, uint8_t *v, int16_t width,
                                      int16_t height) {
  show(y, u, v, width, height, 1);
}

/* ---- The frame rate ---------------------------------------------------------------------------- */

/* One actor counts pictures. */
typedef struct pictures_decoded {
  uint64_t count;
} pictures_decoded;

static const char pictures_decoded_key;

STD void fpsPrintInit(void) {}

STD void fpsPrintNewPicDecoded(void) {
  pictures_decoded *p = persistent_block("levada.decoded", &pictures_decoded_key, sizeof *p, NULL);
  if (is_of_input(p->count)) lvd_app_progress(lvd_current_app(), "frames", ++p->count);
}

/* ---- The comparison ---------------------------------------------------------------------------- */

/* The expected bytes: the content of the file that the option "compare" names. Without it nothing is
 * compared. */
typedef struct known {
  bool open, none;
  int fd;
  char *name; /* the value of the option */
  uint64_t pictures;
  size_t next, limit;
  uint64_t at;
  uint8_t buffer[65536];
} known;

static const char known_key;

static void known_end(void *data, lvd_status outcome) {
  (void)outcome;
  known *k = data;
  if (k->open && !k->none) lvd_sys_close(k->fd);
  free(k->name);
}

static known *known_of_app(void) {
  known *k = persistent_block("levada.known", &known_key, sizeof *k, known_end);
  if (k->open && is_another(k->name, "compare")) {
    known_end(k, LVD_OK);
    *k = (known){0};
  }
  if (!k->open) {
    if (!k->name) k->name = copy_option("compare");
    k->none = !*k->name;
    if (!k->none && (k->fd = open_at_name(k->name, O_RDONLY)) < 0)
      refuse("cannot open %s: %s", k->name, strerror(errno));
    k->open = true;
  }
  return k;
}

/* The next expected byte; -1 after the last. */
static int known_byte(known *k) {
  while (k->next == k->limit) {
    ssize_t got = lvd_sys_read(k->fd, k->buffer, sizeof k->buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("cannot read %s: %s", k->name, strerror(errno));
    if (got == 0) return -1;
    k->next = 0;
    k->limit = (size_t)got;
  }
  k->at++;
  return k->buffer[k->next++];
}

/* Compares the next expected bytes; `where` describes them. */
static void compare(known *k, const uint8_t *bytes, size_t count, const char *what,
                    uint64_t number) {
  for (size_t i = 0; i < count; i++) {
    int byte = known_byte(k);
    if (byte < 0)
      refuse("%s ends before %s %" PRIu64 " does, after %" PRIu64 " bytes", k->name, what, number,
             k->at);
    if (byte != bytes[i])
      refuse("%s %" PRIu64 " differs from %s: byte %" PRIu64 " is %d, and should be %d", what,
             number, k->name, k->at - 1, bytes[i], byte);
  }
}

STD void compareYUV_init(void) {}

STD void compareYUV_comparePicture(uint8_t *y, uint8_t *u, uint8_t *v, int16_t width,
                                   int16_t height) {
  known *k = known_of_app();
  if (k->none || !is_of_input(k->pictures)) return;
  if (width < 2 || height < 2)
    lvd_native_fail("a picture of %dx%d pixels cannot be compared", width, height);
  size_t size = (size_t)width * (size_t)height, part = (size_t)(width / 2) * (size_t)(height / 2);
  k->pictures++;
  compare(k, y, size, "picture", k->pictures);
  compare(k, u, part, "picture", k->pictures);
  compare(k, v, part, "picture", k->pictures);
}

STD void compare_init(void) {}

STD void compare_close(void) {}

STD void compare_NBytes(uint8_t *bytes, uint32_t count) {
  known *k = known_of_app();
  if (!k->none) compare(k, bytes, count, "the output at byte", k->at);
}

STD void compare_readByte(uint8_t byte) { compare_NBytes(&byte, 1); }

/* ---- The writer -------------------------------------------------------------------------------- */

STD void Writer_init(void) { output_of_app(); }

STD void Writer_write(uint8_t byte) { output_put(output_of_app(), &byte, 1); }

/* The output is complete, and so is the application: applications with a writer feed it without
 * end. */
STD void Writer_close(void) {
  output_complete(output_of_app());
  lvd_app_exit(lvd_current_app());
  lvd_native_end();
}
