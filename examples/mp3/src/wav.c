/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "wav.h"
#include "vector.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "samples are written as they lie");

enum { WAV_HEADER = 44, WHOLE = 1, FLOATS = 3 };

static void put(uint8_t *to, uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static bool write_header(mp3_wav *wav) {
  uint8_t header[WAV_HEADER] = "RIFF    WAVEfmt ";
  unsigned sample = wav->floats ? 4 : 2;
  /* What is not known yet, or does not fit, is "to the end of the file". */
  uint64_t bytes = wav->written * wav->channels * sample;
  uint32_t size = wav->written && bytes <= UINT32_MAX - WAV_HEADER ? (uint32_t)bytes : UINT32_MAX;
  put(header + 4, size == UINT32_MAX ? size : size + WAV_HEADER - 8, 4);
  put(header + 16, 16, 4);
  put(header + 20, wav->floats ? FLOATS : WHOLE, 2);
  put(header + 22, wav->channels, 2);
  put(header + 24, wav->rate, 4);
  put(header + 28, wav->rate * wav->channels * sample, 4);
  put(header + 32, wav->channels * sample, 2);
  put(header + 34, 8 * sample, 2);
  memcpy(header + 36, "data", 4);
  put(header + 40, size, 4);
  return fwrite(header, 1, WAV_HEADER, wav->file) == WAV_HEADER;
}

bool mp3_wav_open(mp3_wav *wav, const char *path, uint32_t rate, unsigned channels, bool floats) {
  *wav = (mp3_wav){.path = path, .rate = rate, .channels = channels, .floats = floats};
  wav->left = wav->all = UINT64_MAX;
  struct stat there;
  if (strcmp(path, "-") == 0) {
    wav->file = stdout;
  } else if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
    wav->file = fopen(path, "wb"); /* a device or a pipe keeps what it is */
  } else {
    size_t length = strlen(path) + sizeof ".unfinished";
    wav->unfinished = malloc(length);
    if (!wav->unfinished) return false;
    snprintf(wav->unfinished, length, "%s.unfinished", path);
    wav->file = fopen(wav->unfinished, "wb");
  }
  if (!wav->file) return false;
  setvbuf(wav->file, NULL, _IOFBF, 1 << 18);
  return write_header(wav);
}

/* To whole numbers, rounded to the nearest, in the low half of each lane; what is too loud stays at
 * the loudest. */
static mp3_v4i whole(mp3_v4 value) {
  /* Adding 1.5 × 2^23 leaves no room for a fraction, and the number in the lowest bits. */
  const float magic = 12582912.0f;
  const mp3_v4 most = {32767, 32767, 32767, 32767}, least = {-32768, -32768, -32768, -32768};
  value *= 32768.0f;
  mp3_v4i over = value > most, under = value < least;
  value = (mp3_v4)(((mp3_v4i)value & ~over) | ((mp3_v4i)most & over));
  value = (mp3_v4)(((mp3_v4i)value & ~under) | ((mp3_v4i)least & under));
  return (mp3_v4i)(value + magic);
}

/* Two samples a lane: `first` in front of `second`. */
static void store_pairs(int16_t *to, mp3_v4 first, mp3_v4 second) {
  mp3_v4i both = (whole(first) & 0xffff) | whole(second) << 16;
  memcpy(to, &both, sizeof both);
}

static void to_whole(const mp3_sound *const sound[2], unsigned channels, int16_t *to) {
  for (unsigned i = 0; i < MP3_LINES; i += 8) {
    const float *left = sound[0]->sample + i;
    mp3_v4 a = mp3_load(left), b = mp3_load(left + 4);
    if (channels == 2) {
      const float *right = sound[1]->sample + i;
      store_pairs(to + 2 * i, a, mp3_load(right));
      store_pairs(to + 2 * i + 8, b, mp3_load(right + 4));
    } else {
      store_pairs(to + i, MP3_SHUFFLE(a, b, 0, 2, 4, 6), MP3_SHUFFLE(a, b, 1, 3, 5, 7));
    }
  }
}

static void to_floats(const mp3_sound *const sound[2], unsigned channels, float *to) {
  if (channels == 1) {
    memcpy(to, sound[0]->sample, sizeof sound[0]->sample);
    return;
  }
  for (unsigned i = 0; i < MP3_LINES; i += 4) {
    mp3_v4 left = mp3_load(sound[0]->sample + i), right = mp3_load(sound[1]->sample + i);
    mp3_store(to + 2 * i, MP3_SHUFFLE(left, right, 0, 4, 1, 5));
    mp3_store(to + 2 * i + 4, MP3_SHUFFLE(left, right, 2, 6, 3, 7));
  }
}

static size_t frame_bytes(const mp3_wav *wav) { return wav->channels * (wav->floats ? 4u : 2u); }

size_t mp3_wav_bytes(const mp3_wav *wav) { return MP3_LINES * frame_bytes(wav); }

void mp3_wav_convert(const mp3_wav *wav, const mp3_sound *const sound[2], void *granule) {
  if (wav->floats)
    to_floats(sound, wav->channels, (float *)granule);
  else
    to_whole(sound, wav->channels, (int16_t *)granule);
}

void mp3_wav_put(mp3_wav *wav, const void *granule) {
  unsigned from = 0, count = MP3_LINES;
  wav->seen += MP3_LINES;
  if (wav->seen > wav->all) wav->left = UINT64_MAX;
  if (wav->skip) {
    from = wav->skip < count ? (unsigned)wav->skip : count;
    count -= from;
    wav->skip -= from;
  }
  if (count > wav->left) count = (unsigned)wav->left;
  if (!count) return;
  wav->left -= count;
  size_t size = frame_bytes(wav);
  if (fwrite((const char *)granule + from * size, size, count, wav->file) != count)
    wav->failed = true;
  wav->written += count;
}

void mp3_wav_write(mp3_wav *wav, const mp3_sound *const sound[2]) {
  float granule[2 * MP3_LINES];
  mp3_wav_convert(wav, sound, granule);
  mp3_wav_put(wav, granule);
}

bool mp3_wav_close(mp3_wav *wav) {
  bool good = !wav->failed;
  if (!wav->unfinished)
    return ((wav->file == stdout ? fflush(stdout) : fclose(wav->file)) == 0) & good;
  good = good && fseek(wav->file, 0, SEEK_SET) == 0 && write_header(wav);
  good = (fclose(wav->file) == 0) & good;
  if (good) good = rename(wav->unfinished, wav->path) == 0;
  if (!good) {
    int why = errno;
    remove(wav->unfinished);
    errno = why;
  }
  free(wav->unfinished);
  return good;
}
