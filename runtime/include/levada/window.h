/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Window: memory shared with a processor that this system does not run, and the protocol by which
 * a loader on that processor takes a program from it, runs it, and reports the outcome.
 *
 *   header | image | segment: records in each direction, streams (laid out as channels)
 *
 * The HOST creates it and defines the layout; the REMOTE side is the other processor. All offsets
 * are relative to the window's start, since each side maps it at another address. Each word has one
 * writer, and only loads, stores and fences are used: atomic read-modify-write may be missing, or
 * not reach the other side.
 *
 * A command consists of its words, then `command`, a sequence number one higher than the last
 * (release). The loader answers with its words, then `answered`, the same number (release), and
 * rings. It reports other events (end of a program, a fault) in the same words, then in `state`.
 *
 * The host maps the window uncached, or is coherent with it; a remote side with non-coherent caches
 * has hooks (caches.h), which its loader also passes to programs.
 *
 * Freestanding. C17 and C++17. */
#ifndef LVD_WINDOW_H
#define LVD_WINDOW_H

#include <levada/atomic.h>
#include <levada/caches.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LVD_WINDOW_MAGIC     0x4e57564cu /* "LVWN" */
#define LVD_WINDOW_VERSION   1u
#define LVD_WINDOW_ORDER     0x01020304u /* detects the byte order of its writer */
#define LVD_WINDOW_UNIT      4096u       /* bytes; alignment of the parts */
#define LVD_WINDOW_BYTES_MAX ((uint64_t)1 << 40)

enum lvd_window_verb { LVD_WINDOW_RUN = 1, LVD_WINDOW_STOP };

/* State of the remote side. */
enum lvd_remote_state {
  LVD_REMOTE_NONE,    /* no loader has started yet */
  LVD_REMOTE_READY,   /* the loader is idle */
  LVD_REMOTE_REFUSED, /* idle: the image was refused; `status` */
  LVD_REMOTE_RUNNING, /* a program is running */
  LVD_REMOTE_EXITED,  /* idle: the program has returned `status` */
  LVD_REMOTE_STOPPED, /* idle: the program was stopped on request */
  LVD_REMOTE_FAILED,  /* idle: the program failed; `cause`, `pc`, `value`, in `procedure` */
  LVD_REMOTE_HUNG,    /* idle: `procedure` ran longer than `watch_ms` without waiting */
  LVD_REMOTE_STATES
};

typedef struct lvd_window {
  /* Constant. */
  uint32_t magic, version, order, header; /* header: bytes of this struct */
  uint32_t abi_version, line;             /* LVD_ABI_VERSION and LVD_CACHE_LINE of the channels */
  uint64_t size;                          /* bytes of the window */
  uint64_t image, image_size;             /* area for images: offset, bytes */
  uint64_t segment, segment_size;         /* memory shared by program and host: offset, bytes */
  uint32_t watch_ms;                      /* time limit of a procedure between waits, ms; 0: none */
  uint32_t checksum;                      /* of all words before it */
  /* Written by the host. */
  LVD_ALIGNED(LVD_CACHE_LINE)
  lvd_a32 command; /* sequence number of the command in the next words */
  uint32_t verb;
  uint32_t length, sum;    /* bytes and checksum of the image */
  uint64_t address, entry; /* remote addresses: load address, entry */
  lvd_a32 asked;           /* liveness probe: a number to be echoed in `alive` */
  /* Written by the remote side. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 answered;
  lvd_a32 state;
  lvd_a32 alive; /* echo of `asked` */
  uint32_t status;
  uint64_t cause, pc, value;
  uint64_t low, high; /* remote addresses between which images may lie */
  char procedure[64];
} lvd_window;

/* CRC-32 (IEEE 802.3), a nibble at a time: a table of 64 bytes suits a small processor. Aligned
 * data is read by words, since there each access costs as much as processing a nibble. */
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

/* The constant words of the header, copied once, so that the values checked are the values used. */
typedef struct lvd_window_shape {
  uint64_t size, image, image_size, segment, segment_size;
  uint32_t watch_ms;
} lvd_window_shape;

static inline bool lvd_window_holds(uint64_t size, uint64_t offset, uint64_t length) {
  return offset >= sizeof(lvd_window) && offset % LVD_WINDOW_UNIT == 0 && offset <= size &&
         length <= size - offset;
}

/* Validates a window of `size` accessible bytes. Returns null and sets *out if it is valid;
 * otherwise a static sentence that says what is wrong. */
static inline const char *lvd_window_read(const lvd_window *w, uint64_t size,
                                          lvd_window_shape *out) {
  lvd_window copy; /* copied as a whole before it is checked */
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
  if (copy.abi_version != LVD_ABI_VERSION || copy.line != LVD_CACHE_LINE)
    return "the window's channels are of another layout: build both sides of one version";
  if (copy.size > size || copy.size > LVD_WINDOW_BYTES_MAX)
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

/* K1: the words of each side begin at a cache line, which holds no words of the other side. */
#define LVD_WINDOW_LINES(what)                                                                     \
  typedef char                                                                                     \
      lvd_window_##what##_begins_a_line[offsetof(lvd_window, what) % LVD_CACHE_LINE == 0 ? 1 : -1]
LVD_WINDOW_LINES(command);
LVD_WINDOW_LINES(answered);
#undef LVD_WINDOW_LINES

/* Fills in the header at `w`, before the remote side reads it. */
static inline void lvd_window_make(lvd_window *w, const lvd_window_shape *shape) {
  w->magic = LVD_WINDOW_MAGIC;
  w->version = LVD_WINDOW_VERSION;
  w->order = LVD_WINDOW_ORDER;
  w->header = sizeof(lvd_window);
  w->abi_version = LVD_ABI_VERSION;
  w->line = LVD_CACHE_LINE;
  w->size = shape->size;
  w->image = shape->image;
  w->image_size = shape->image_size;
  w->segment = shape->segment;
  w->segment_size = shape->segment_size;
  w->watch_ms = shape->watch_ms;
  w->checksum = lvd_window_sum(w, offsetof(lvd_window, checksum));
}

/* ---- interface between a loader and a program ----------------------------------------------- */

#define LVD_REMOTE_VERSION 2u

/* Board support that a loader passes to a program: everything that differs between boards. The
 * program's entry is int entry(const lvd_remote_hal *), called on the loader's stack; the result is
 * the program's status. */
typedef struct lvd_remote_hal {
  uint32_t version;
  uint32_t reserved;
  lvd_window *window;
  uint64_t size; /* bytes of the window */
  void (*ring)(void);
  /* Sleeps until the doorbell rings or now_ns() reaches `until_ns` (0: no limit). May return
   * spuriously. */
  void (*sleep)(uint64_t until_ns);
  uint64_t (*now_ns)(void);
  /* Reports that `procedure` begins to run; null: none runs. */
  void (*watch)(const char *procedure);
  const lvd_caches *caches; /* null: coherent with the host's memory, or no caches */
} lvd_remote_hal;

#ifdef __cplusplus
}
#endif
#endif
