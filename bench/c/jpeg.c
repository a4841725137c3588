/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* libjpeg-turbo, as the peer of the decoder in CAL, and as the encoder of the input of both.
 *
 *   jpeg encode QUALITY < PPM > JPEG    any number of pictures, 4:2:0
 *   jpeg decode planes FILE TIMES       to planes of Y, Cb and Cr, as coded
 *   jpeg decode pixels FILE TIMES       to red, green and blue
 *
 * Decoding is from memory, and each picture's result is dropped after it is complete. */
#include "bench.h"

#include <jpeglib.h>
#include <stdbool.h>

typedef struct bytes {
  unsigned char *data;
  size_t size;
} bytes;

static bytes read_all(FILE *f) {
  bytes b = {NULL, 0};
  size_t room = 0, n;
  do {
    if (b.size == room) b.data = (unsigned char *)realloc(b.data, room = room ? 2 * room : 1 << 20);
    n = fread(b.data + b.size, 1, room - b.size, f);
    b.size += n;
  } while (n);
  return b;
}

static void encode(int quality) {
  int width, height, most;
  while (scanf(" P6 %d %d %d", &width, &height, &most) == 3 && getchar() != EOF) {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr error;
    unsigned char *line = (unsigned char *)malloc((size_t)width * 3);
    c.err = jpeg_std_error(&error);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, stdout);
    c.image_width = (JDIMENSION)width;
    c.image_height = (JDIMENSION)height;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, quality, TRUE);
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < height; y++) {
      if (fread(line, 3, (size_t)width, stdin) != (size_t)width) exit(1);
      jpeg_write_scanlines(&c, &line, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(line);
  }
}

/* Decodes one picture; returns its size in bytes. */
static size_t decode(bytes b, bool planes, unsigned char *out, uint64_t *sum) {
  struct jpeg_decompress_struct d;
  struct jpeg_error_mgr error;
  d.err = jpeg_std_error(&error);
  jpeg_create_decompress(&d);
  jpeg_mem_src(&d, b.data, b.size);
  jpeg_read_header(&d, TRUE);
  d.dct_method = JDCT_ISLOW;
  d.raw_data_out = planes;
  jpeg_start_decompress(&d);
  unsigned char *to = out;
  while (d.output_scanline < d.output_height) {
    if (planes) {
      JSAMPROW row[3][4 * DCTSIZE];
      JSAMPARRAY plane[3] = {row[0], row[1], row[2]};
      for (int c = 0; c < d.num_components; c++)
        for (int y = 0; y < d.comp_info[c].v_samp_factor * DCTSIZE; y++) {
          row[c][y] = to;
          to += d.comp_info[c].width_in_blocks * DCTSIZE + 64;
        }
      jpeg_read_raw_data(&d, plane, (JDIMENSION)(d.max_v_samp_factor * DCTSIZE));
    } else {
      to += jpeg_read_scanlines(&d, &to, 1) * d.output_width * 3;
    }
  }
  jpeg_finish_decompress(&d);
  *sum += out[0];
  size_t used = b.size - d.src->bytes_in_buffer;
  jpeg_destroy_decompress(&d);
  return used;
}

int main(int argc, char **argv) {
  static const char usage[] = "encode QUALITY | decode planes|pixels FILE TIMES";
  if (argc > 2 && !strcmp(argv[1], "encode")) {
    encode((int)bench_number(argc, argv, 2, usage));
    return 0;
  }
  uint64_t times = bench_number(argc, argv, 4, usage), sum = 0, pictures = 0;
  FILE *f = fopen(argv[3], "rb");
  if (!f) {
    perror(argv[3]);
    return 1;
  }
  bytes all = read_all(f);
  unsigned char *out = (unsigned char *)malloc((size_t)128 << 20);
  bench_pin(bench_core(0));
  double start = bench_now(), cpu = bench_cpu();
  for (uint64_t t = 0; t < times; t++)
    for (bytes b = all; b.size > 3; pictures++) {
      size_t used = decode(b, !strcmp(argv[2], "planes"), out, &sum);
      b.data += used;
      b.size -= used;
    }
  cpu = bench_cpu() - cpu;
  bench_say("pictures", (double)pictures);
  bench_say("frames_per_s", (double)pictures / (bench_now() - start));
  bench_say("frames_per_cpu_s", (double)pictures / cpu);
  return sum == 1;
}
