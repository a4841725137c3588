/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The shapes of what moves between the stages of the decoder. Each is a plain structure without a
 * pointer, so that a stage may run anywhere and its input and output may be elements of a stream:
 *
 *   bytes ─ source ─▶ packet ─ entropy ─▶ spectra ─ hybrid ─▶ subbands ─ synthesis ─▶ sound ─▶ WAV
 */
#ifndef MP3_MP3_H
#define MP3_MP3_H

#include <stdint.h>

enum {
  MP3_LINES = 576,        /* frequency lines, and samples, of a granule of one channel */
  MP3_SUBBANDS = 32,      /* of the polyphase filter bank */
  MP3_SLOTS = 18,         /* samples of each subband in a granule, and lines of each subband */
  MP3_BANDS = 39,         /* the most scalefactor bands: 13, three windows each */
  MP3_MAIN_BYTES = 2048,  /* the most that four parts of 4095 bits take */
  MP3_RESERVOIR = 511,    /* how far back a frame's main data may begin */
  MP3_FRAME_BYTES = 5768, /* the longest frame read: free format, 640 kbit/s at 8 kHz */
  MP3_SLACK = 40,         /* bytes behind main data that may be read, but mean nothing: more than
                               all scalefactors, or one code, and a word */
  MP3_ELEMENT = 128       /* elements of streams begin at multiples of it: no two share a cache
                               line, and a ring of few of them fills whole pages */
};

enum { MP3_LONG = 0, MP3_START = 1, MP3_SHORT = 2, MP3_STOP = 3 };  /* block types */
enum { MP3_STEREO = 0, MP3_JOINT = 1, MP3_DUAL = 2, MP3_MONO = 3 }; /* modes */
enum { MP3_INTENSITY = 1, MP3_MID_SIDE = 2 };                       /* mode extensions */

/* A frame's header, decoded. */
typedef struct mp3_header {
  uint32_t rate;    /* samples a second */
  uint32_t bytes;   /* of the whole frame; 0 in free format, where the header does not tell */
  uint16_t kbits;   /* a second; 0 in free format */
  uint8_t version;  /* 0: MPEG-1, 1: MPEG-2, 2: MPEG-2.5 */
  uint8_t rate_row; /* which of the nine sampling rates: 3 × version + the header's index */
  uint8_t checked;  /* a checksum follows the header */
  uint8_t padding;  /* bytes */
  uint8_t mode;
  uint8_t extension; /* of joint stereo, else 0 */
  uint8_t channels;
  uint8_t granules; /* 2 in MPEG-1, 1 later */
} mp3_header;

/* Side information of one granule of one channel. */
typedef struct mp3_part {
  uint16_t bits;       /* scalefactors and Huffman codes ("part2_3_length") */
  uint16_t big_values; /* pairs */
  uint16_t scalefactor_compress;
  uint8_t global_gain;
  uint8_t block_type;
  uint8_t mixed; /* the two lowest subbands have the window of a long block */
  uint8_t table[3];
  uint8_t subblock_gain[3];
  uint16_t region[2]; /* the line where the second and the third region begin */
  uint8_t preflag;
  uint8_t coarse; /* scalefactors count in whole, not in half powers of two */
  uint8_t count1_table;
  uint8_t shared; /* groups of scalefactors taken from the granule before: 4 bits */
} mp3_part;

/* What the source hands on: one frame with all its main data, wherever that lay. A packet needs no
 * other packet to be decoded as far as the spectrum. */
typedef struct mp3_packet {
  mp3_header header;
  uint64_t offset;     /* of the frame in the file, and */
  uint32_t frame;      /* its number, to say where something is wrong */
  uint32_t main_bits;  /* how much of `main` is there; the rest of the frame is lost */
  uint8_t lost;        /* nothing of it can be used: silence takes its place */
  mp3_part part[2][2]; /* granule, channel */
  uint8_t main[MP3_MAIN_BYTES + MP3_SLACK];
} mp3_packet;

/* What the inverse transform must know of a granule of one channel. */
typedef struct mp3_shape {
  uint16_t lines; /* from here on all lines are zero */
  uint8_t block_type;
  uint8_t mixed;
} mp3_shape;

/* A granule of one channel after stereo and alias reduction. */
typedef struct mp3_spectrum {
  _Alignas(16) float line[MP3_LINES];
  mp3_shape shape;
} mp3_spectrum;

/* A granule of one channel as time slots of subband samples. */
typedef struct mp3_subbands {
  _Alignas(16) float slot[MP3_SLOTS][MP3_SUBBANDS];
} mp3_subbands;

/* A granule of one channel as sound; 1 is full scale. */
typedef struct mp3_sound {
  _Alignas(16) float sample[MP3_LINES];
} mp3_sound;

#endif
