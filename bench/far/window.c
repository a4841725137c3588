/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What runs behind the window while it is measured (c/window.c). */
#include <levada/process.h>
#include <levada/stream.h>
#include <string.h>

static lvd_status far_nothing(lvd_frame *f) {
  (void)f;
  return LVD_OK;
}
LVD_PROCEDURE(far_nothing)

/* Each element of "to" goes back on "fro", until the end. */
static lvd_status far_echo(lvd_frame *f) {
  lvd_stream *to, *fro;
  lvd_stream_options o = {.name = "to", .elem_size = 8, .capacity = 64, .threshold = 1};
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &to);
  (void)f;
  o.name = "fro";
  if (status == LVD_OK) status = lvd_stream_open(lvd_unit_parent(), &o, &fro);
  if (status != LVD_OK) return status;
  for (uint64_t x; (status = lvd_stream_get(to, &x, 8)) == LVD_OK;) {
    lvd_stream_pop(to);
    if ((status = lvd_stream_put(fro, &x, 8)) != LVD_OK) break;
    lvd_stream_flush(fro);
  }
  lvd_stream_destroy(to);
  lvd_stream_destroy(fro);
  return status == LVD_E_ENDED ? LVD_OK : status;
}
LVD_PROCEDURE(far_echo)

/* Reads all of "to", whose elements are of as many bytes as the argument says; the result is how many came
 * whose first and last bytes are as they should be. */
static lvd_status far_sink(lvd_frame *f) {
  static unsigned char element[4096];
  uint32_t size;
  uint64_t good = 0;
  memcpy(&size, f->argument, sizeof size);
  lvd_stream *to;
  lvd_stream_options o = {.name = "to", .elem_size = size};
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &to);
  while (status == LVD_OK && (status = lvd_stream_get(to, element, size)) == LVD_OK) {
    good += element[0] == (unsigned char)good && element[size - 1] == (unsigned char)good;
    lvd_stream_pop(to);
  }
  lvd_stream_destroy(to);
  memcpy(f->result, &good, sizeof good);
  f->result_size = sizeof good;
  return status == LVD_E_ENDED ? LVD_OK : status;
}
LVD_PROCEDURE(far_sink)
