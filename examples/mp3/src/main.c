/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The command: mp3 [OPTION]... IN.mp3 OUT.wav */
#include "decoder.h"
#include "entropy.h"
#include "hybrid.h"
#include "synthesis.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS_MAX = 10 }; /* damages that are reported one by one; the rest are counted */

static const char usage[] =
    "usage: mp3 [OPTION]... IN.mp3 OUT.wav\n"
    "Decodes MPEG-1, MPEG-2 and MPEG-2.5 Layer III. - is the standard input or output.\n"
    "  --form NAME   form of the decoder (default: the first of --forms)\n"
    "  --forms       list the forms\n"
    "  --unit NAME   unit of the rpc form's inverse MDCT: native:FILE or qemu:FILE\n"
    "  --workers N   number of cores (all forms except the first)\n"
    "  --threshold N elements that wake a receiver; 0: chosen by measurement (likewise)\n"
    "  --sleep       idle workers sleep at once, without spinning (likewise)\n"
    "  --sink N      core of the streaming form's sink; 0 is the transmitter's\n"
    "  --float       write 32-bit floats instead of 16-bit integers\n"
    "  --all         also write the padding of encoder and decoder before and after the sound\n"
    "  --profile     print the share of time of each stage\n"
    "  --quiet       print nothing on success\n"
    "Exit status: 0; 1: no WAV file was written; 3: a part of the stream with another sampling "
    "rate or\n"
    "layer was left out.\n";

static const struct {
  const char *name;
  mp3_form *run;
} forms[] = {{"sequential", mp3_form_sequential},
             {"rpc", mp3_form_rpc},
             {"streaming", mp3_form_streaming},
             {"pipeline", mp3_form_pipeline}};
enum { FORMS = sizeof forms / sizeof *forms };

/* The whole file; NULL with errno set if it cannot be read. */
static uint8_t *read_all(const char *path, size_t *size) {
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  uint8_t *bytes = NULL;
  size_t room = 0, got;
  *size = 0;
  if (!file) return NULL;
  do {
    if (room - *size < 65536) {
      room = room ? 2 * room : 1 << 20;
      uint8_t *more = realloc(bytes, room);
      if (!more) {
        free(bytes);
        if (file != stdin) fclose(file);
        return NULL;
      }
      bytes = more;
    }
    got = fread(bytes + *size, 1, room - *size, file);
    *size += got;
  } while (got > 0);
  int why = ferror(file) ? errno : 0;
  if (file != stdin) fclose(file);
  if (why) {
    free(bytes);
    errno = why;
    return NULL;
  }
  return bytes;
}

static int fail(const char *path, const char *what) {
  fprintf(stderr, "mp3: %s: %s\n", path, what);
  return 1;
}

static int decode(mp3_decoder *decoder, const char *in, const char *out, mp3_form *form,
                  bool floats, bool all, bool quiet) {
  mp3_report report = {.file = in, .tell = REPORTS_MAX};
  size_t size;
  uint8_t *bytes = read_all(in, &size);
  if (!bytes) return fail(in, strerror(errno));
  decoder->damage = report;
  if (!mp3_source_open(&decoder->source, bytes, size, &report)) {
    free(bytes);
    return fail(in, size ? "there is no Layer III frame in it" : "it is empty");
  }
  const mp3_header *first = &decoder->source.first;
  decoder->channels = first->channels;
  mp3_wav *wav = &decoder->wav;
  if (!mp3_wav_open(wav, out, first->rate, decoder->channels, floats)) {
    free(bytes);
    free(wav->unfinished);
    return fail(out, strerror(errno));
  }
  if (!all) {
    wav->skip = decoder->source.info.skip;
    if (decoder->source.info.samples) {
      wav->left = decoder->source.info.samples;
      wav->all = decoder->source.info.all;
    }
  }
  bool good = form(decoder);
  uint64_t samples = wav->written;
  free(bytes);
  if (good && !decoder->frames) {
    fail(in, "none of its frames can be decoded");
    good = false;
  }
  if (!good) wav->failed = true;
  errno = 0;
  if (!mp3_wav_close(wav) && good) return fail(out, errno ? strerror(errno) : "cannot be written");
  if (!good) return 1;
  if (report.count) fprintf(stderr, "mp3: %s: damaged in %u places\n", in, report.count);
  if (!quiet) {
    static const char *const versions[3] = {"1", "2", "2.5"};
    double plays = (double)samples / first->rate;
    fprintf(stderr,
            "%s: MPEG-%s Layer III, %u Hz, %s: %.2f s in %llu frames; took %.1f ms, %.0f times as "
            "fast as it plays\n",
            out, versions[first->version], (unsigned)first->rate,
            decoder->channels == 1 ? "mono" : "stereo", plays, (unsigned long long)decoder->frames,
            decoder->took * 1e3, plays / decoder->took);
  }
  if (decoder->profile.on) mp3_profile_print(&decoder->profile);
  const mp3_kind *left_out = &decoder->source.left_out;
  if (!left_out->name[0]) return 0;
  fprintf(stderr,
          "mp3: %s: from byte %zu on it is %s; the WAV is of the first kind, so that part is left "
          "out: cut the file there, and decode each part by itself\n",
          in, left_out->offset, left_out->name);
  return 3;
}

/* The value of an option; false, and said, if it is no whole number. */
static bool whole_number(const char *option, const char *word, unsigned *value) {
  char *end;
  errno = 0;
  unsigned long number = strtoul(word, &end, 10);
  if (errno || *end || *word < '0' || *word > '9' || number > INT_MAX) {
    fprintf(stderr, "mp3: %s takes a whole number, and %s is none\n", option, word);
    return false;
  }
  *value = (unsigned)number;
  return true;
}

int main(int count, char **words) {
  static mp3_decoder decoder = {.tuning.sink = 1};
  const char *paths[2];
  mp3_form *form = forms[0].run;
  unsigned given = 0;
  bool floats = false, all = false, quiet = false;
  for (int i = 1; i < count; i++) {
    const char *word = words[i];
    if (strcmp(word, "--forms") == 0) {
      for (unsigned k = 0; k < FORMS; k++) puts(forms[k].name);
      return 0;
    } else if (strcmp(word, "--float") == 0) {
      floats = true;
    } else if (strcmp(word, "--all") == 0) {
      all = true;
    } else if (strcmp(word, "--profile") == 0) {
      decoder.profile.on = true;
    } else if (strcmp(word, "--quiet") == 0) {
      quiet = true;
    } else if (strcmp(word, "--help") == 0) {
      fputs(usage, stdout);
      return 0;
    } else if (strcmp(word, "--sleep") == 0) {
      decoder.tuning.sleep = true;
    } else if (strcmp(word, "--unit") == 0 && i + 1 < count) {
      decoder.tuning.unit = words[++i];
    } else if (strcmp(word, "--workers") == 0 && i + 1 < count) {
      if (!whole_number(word, words[++i], &decoder.tuning.workers)) return 2;
    } else if (strcmp(word, "--threshold") == 0 && i + 1 < count) {
      if (!whole_number(word, words[++i], &decoder.tuning.threshold)) return 2;
    } else if (strcmp(word, "--sink") == 0 && i + 1 < count) {
      if (!whole_number(word, words[++i], &decoder.tuning.sink)) return 2;
    } else if (strcmp(word, "--form") == 0 && i + 1 < count) {
      form = NULL;
      word = words[++i];
      for (unsigned k = 0; k < FORMS; k++)
        if (strcmp(word, forms[k].name) == 0) form = forms[k].run;
      if (!form) {
        fprintf(stderr, "mp3: there is no form %s\n%s", word, usage);
        return 2;
      }
    } else if ((word[0] == '-' && word[1]) || given == 2) {
      fprintf(stderr, "mp3: what is %s?\n%s", word, usage);
      return 2;
    } else {
      paths[given++] = word;
    }
  }
  if (given < 2) {
    fputs(usage, stderr);
    return 2;
  }
  if (decoder.tuning.unit && form != mp3_form_rpc) {
    fprintf(stderr, "mp3: --unit is for --form rpc\n");
    return 2;
  }
  mp3_entropy_prepare();
  mp3_hybrid_prepare();
  mp3_synthesis_prepare();
  return decode(&decoder, paths[0], paths[1], form, floats, all, quiet);
}
