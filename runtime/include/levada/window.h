/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Window: memory shared with a processor that this system does not run, and the protocol by which a
 * loader on that processor takes a program from it, runs it, and says how it went.
 *
 *   header | image | segment: records each way, streams (the layout of all channels)
 *
 * The HOST has made it and says what lies where; the FAR side is the other processor. Offsets from
 * the window's beginning only, since each side sees it at another address. Every word has one
 * writer, and nothing needs more than loads, stores and fences: there may be no atomic
 * read-modify-write, or none that reaches the other side.
 *
 * A command is its words, then `command`, a number one higher than the last (release). The loader
 * answers with its words, then `answered`, the same number (release), and rings. Whatever the loader
 * reports by itself (a program's end, a fault) it says in the same words, and then in `state`.
 *
 * The host maps the window without a cache, or is coherent with it; a far side whose caches are not
 * has hooks (caches.h), which its loader gives to programs, too.
 *
 * Freestanding. C17 and C++17. */
#ifndef LVD_WINDOW_H
#define LVD_WINDOW_H

#include <levada/atomic.h>
#include <levada/caches.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LVD_WINDOW_MAGIC   0x4e57564cu /* "LVWN" */
#define LVD_WINDOW_VERSION 1u
#define LVD_WINDOW_ORDER   0x01020304u /* as its writer's bytes lie */
#define LVD_WINDOW_UNIT    4096u       /* what lies in it begins at multiples of this */
#define LVD_WINDOW_MOST    ((uint64_t)1 << 40)

enum lvd_window_verb { LVD_WINDOW_RUN = 1, LVD_WINDOW_STOP };

/* What the far side is about. */
enum lvd_far_state {
  LVD_FAR_NONE,    /* no loader has come yet */
  LVD_FAR_READY,   /* the loader waits */
  LVD_FAR_REFUSED, /* ... it did not take that image: `status` */
  LVD_FAR_RUNS,    /* a program runs */
  LVD_FAR_ENDED,   /* the loader waits: the program has returned `status` */
  LVD_FAR_STOPPED, /* ... it was stopped, as asked */
  LVD_FAR_FAILED,  /* ... it has failed: `cause`, `pc`, `value`, in `procedure` */
  LVD_FAR_HUNG,    /* ... `procedure` ran for longer than `watch_ms` without waiting */
  LVD_FAR_STATES
};

typedef struct lvd_window {
  /* Constant. */
  uint32_t magic, version, order, header; /* header: bytes of this struct */
  uint32_t layout, line;                  /* of channels */
  uint64_t size;                          /* of all of it */
  uint64_t image, image_size;             /* where images are put */
  uint64_t segment, segment_size;         /* what a program and the host share */
  uint32_t watch_ms;                      /* 0: a procedure may run for ever */
  uint32_t checksum;                      /* of all before */
  /* The host's. */
  LVD_ALIGNED(LVD_LINE) lvd_a32 command; /* a number; of: */
  uint32_t verb;
  uint32_t length, sum;    /* of the image, and its checksum */
  uint64_t address, entry; /* of the far side: where it is to lie, where it begins */
  lvd_a32 asked;           /* a number, to be repeated: is there anybody? */
  /* The far side's. */
  LVD_ALIGNED(LVD_LINE) lvd_a32 answered;
  lvd_a32 state;
  lvd_a32 alive; /* what was last asked */
  uint32_t status;
  uint64_t cause, pc, value;
  uint64_t low, high; /* of the far side: where images may lie */
  char procedure[64];
} lvd_window;

/* CRC-32 of IEEE 802.3, a nibble at a time: a table of 64 bytes is what a small processor bears. What it is
 * about is read by words where it lies so: each access costs that as much as a nibble does. */
static inline uint32_t lvd_window_sum_byte(uint32_t sum) {
  static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                     0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                     0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  sum = sum >> 4 ^ table[sum & 15];
  return sum >> 4 ^ table[sum & 15];
}
static inline uint32_t lvd_window_sum(const void *from, size_t size) {
  const unsigned char *at = (const unsigned char *)from, *end = at + size;
  uint32_t sum = 0xffffffffu;
  while (at != end) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (((uintptr_t)at & 3) == 0 && end - at >= 4) {
      uint32_t word;
      __builtin_memcpy(&word, __builtin_assume_aligned(at, 4), 4);
      at += 4;
      sum = lvd_window_sum_byte(lvd_window_sum_byte(sum ^ word));
      sum = lvd_window_sum_byte(lvd_window_sum_byte(sum));
      continue;
    }
#endif
    sum = lvd_window_sum_byte(sum ^ *at++);
  }
  return ~sum;
}

/* The header's constant words, copied once: what was checked is then what is used. */
typedef struct lvd_window_shape {
  uint64_t size, image, image_size, segment, segment_size;
  uint32_t watch_ms;
} lvd_window_shape;

static inline bool lvd_window_holds(uint64_t size, uint64_t offset, uint64_t length) {
  return offset >= sizeof(lvd_window) && offset % LVD_WINDOW_UNIT == 0 && offset <= size &&
         length <= size - offset;
}

/* Null, and *out: it is a window, of which `size` bytes are there; else what is wrong with it. */
static inline const char *lvd_window_read(const lvd_window *w, uint64_t size,
                                          lvd_window_shape *out) {
  lvd_window copy; /* in one go, before it is looked at */
  const volatile unsigned char *from = (const volatile unsigned char *)w;
  if (size < sizeof copy) return "the window is smaller than its header";
  for (size_t i = 0; i < offsetof(lvd_window, command); i++) ((unsigned char *)&copy)[i] = from[i];
  if (copy.magic == __builtin_bswap32(LVD_WINDOW_MAGIC))
    return "the window was made by a processor of the other byte order";
  if (copy.magic != LVD_WINDOW_MAGIC)
    return "this memory is no window: the magic word is not there";
  if (copy.order != LVD_WINDOW_ORDER)
    return "the window was made by a processor of the other byte order";
  if (copy.version != LVD_WINDOW_VERSION || copy.header != sizeof(lvd_window))
    return "the window is of another version: build both sides of one version";
  if (copy.checksum != lvd_window_sum(&copy, offsetof(lvd_window, checksum)))
    return "the window's header is damaged: its checksum is wrong";
  if (copy.layout != LVD_LAYOUT || copy.line != LVD_LINE)
    return "the window's channels are of another layout: build both sides of one version";
  if (copy.size > size || copy.size > LVD_WINDOW_MOST)
    return "the window is larger than the memory that was given for it";
  if (!lvd_window_holds(copy.size, copy.image, copy.image_size) ||
      !lvd_window_holds(copy.size, copy.segment, copy.segment_size) ||
      copy.image + copy.image_size > copy.segment)
    return "the window's parts do not lie within it";
  out->size = copy.size;
  out->image = copy.image;
  out->image_size = copy.image_size;
  out->segment = copy.segment;
  out->segment_size = copy.segment_size;
  out->watch_ms = copy.watch_ms;
  return (const char *)0;
}

/* K1: what each side writes begins a line of its own, and nothing of the other's follows in it. */
#define LVD_WINDOW_LINES(what)                                                                     \
  typedef char                                                                                     \
      lvd_window_##what##_begins_a_line[offsetof(lvd_window, what) % LVD_LINE == 0 ? 1 : -1]
LVD_WINDOW_LINES(command);
LVD_WINDOW_LINES(answered);
#undef LVD_WINDOW_LINES

/* Lays out a header at `w`, before the far side looks. */
static inline void lvd_window_make(lvd_window *w, const lvd_window_shape *shape) {
  w->magic = LVD_WINDOW_MAGIC;
  w->version = LVD_WINDOW_VERSION;
  w->order = LVD_WINDOW_ORDER;
  w->header = sizeof(lvd_window);
  w->layout = LVD_LAYOUT;
  w->line = LVD_LINE;
  w->size = shape->size;
  w->image = shape->image;
  w->image_size = shape->image_size;
  w->segment = shape->segment;
  w->segment_size = shape->segment_size;
  w->watch_ms = shape->watch_ms;
  w->checksum = lvd_window_sum(w, offsetof(lvd_window, checksum));
}

/* ---- the far side's own seam ---------------------------------------------------------------- */

#define LVD_FAR_VERSION 2u

/* What a loader gives a program: all that differs from board to board. A program begins at its entry
 * as int entry(const lvd_far_board *), on the loader's stack; what it returns is its status. */
typedef struct lvd_far_board {
  uint32_t version;
  uint32_t reserved;
  lvd_window *window;
  uint64_t size; /* bytes of it */
  void (*ring)(void);
  /* Until it is rung, or that time has come (0: none). Returns at times without reason. */
  void (*sleep)(uint64_t until_ns);
  uint64_t (*now_ns)(void);
  /* `procedure` runs from now on; null: none does. */
  void (*watch)(const char *procedure);
  const lvd_caches *caches; /* null: they are coherent with the host's memory, or there are none */
} lvd_far_board;

#ifdef __cplusplus
}
#endif
#endif
