/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Holds a decoded file against that of a trusted decoder, both of raw 32-bit floats behind an
 * optional WAV header:   compare OURS THEIRS
 * Prints the root of the mean square of the difference, in units of the ISO limit for full
 * accuracy (2^-15 / √12 of full scale), the largest difference, and how many samples there are;
 * fails if the limit is passed or one has more samples than the other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *read_floats(const char *path, size_t *count) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file), skip = 0;
  rewind(file);
  char *bytes = malloc(size + 1);
  if (!bytes || fread(bytes, 1, size, file) != size) {
    perror(path);
    exit(2);
  }
  fclose(file);
  if (size >= 12 && memcmp(bytes, "RIFF", 4) == 0)
    for (skip = 12; skip + 8 <= size;) { /* chunks, as far as the data */
      unsigned length;
      memcpy(&length, bytes + skip + 4, 4);
      skip += 8;
      if (memcmp(bytes + skip - 8, "data", 4) == 0) break;
      skip += length;
    }
  *count = (size - skip) / sizeof(float);
  float *floats = malloc(*count * sizeof(float) + 1);
  if (!floats) exit(2);
  memcpy(floats, bytes + skip, *count * sizeof(float));
  free(bytes);
  return floats;
}

int main(int count, char **words) {
  if (count != 3) {
    fprintf(stderr, "usage: compare OURS THEIRS\n");
    return 2;
  }
  size_t ours, theirs;
  float *a = read_floats(words[1], &ours), *b = read_floats(words[2], &theirs);
  size_t common = ours < theirs ? ours : theirs;
  double sum = 0, most = 0, power = 0;
  for (size_t i = 0; i < common; i++) {
    double apart = fabs((double)a[i] - b[i]);
    sum += apart * apart;
    power += (double)b[i] * b[i];
    if (!(apart <= most)) most = apart;
  }
  double limit = pow(2, -15) / sqrt(12), rms = common ? sqrt(sum / (double)common) : INFINITY;
  printf("%.5f of the limit, largest %.2e, level %.3f, %zu samples", rms / limit, most,
         common ? sqrt(power / (double)common) : 0, common);
  if (ours != theirs) printf(", not %zu", theirs);
  printf("\n");
  free(a);
  free(b);
  return rms <= limit && ours == theirs ? 0 : 1;
}
