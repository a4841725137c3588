/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbers as text, a line each: from the files that the option "in" lists, to the one that "out"
 * names. What an application opens lies in a block of it. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <levada/native.h>
#include <stdio.h>
#include <string.h>

enum { FILES = 16 };

typedef struct numbers {
  FILE *in[FILES], *out[FILES];
} numbers;

static const char numbers_key;

static void numbers_end(void *data, lvd_status outcome) {
  (void)outcome;
  numbers *n = data;
  for (int i = 0; i < FILES; i++) {
    if (n->in[i]) fclose(n->in[i]);
    if (n->out[i]) fclose(n->out[i]);
  }
}

/* The file number `index` of those that the option lists, with commas between them. */
static FILE *numbers_file(FILE **file, const char *option, int index, const char *mode) {
  if (*file) return *file;
  const char *list = lvd_app_option(lvd_current_app(), option);
  char name[4096];
  for (int i = 0; list && i < index; i++) {
    list = strchr(list, ',');
    if (list) list++;
  }
  if (!list) {
    lvd_app_fail(lvd_current_app(), "--%s lists no file number %d", option, index);
    lvd_native_fail("no file"); /* leaves the action; the first report counts */
  }
  snprintf(name, sizeof name, "%.*s", (int)strcspn(list, ","), list);
  *file = fopen(name, mode);
  if (!*file) {
    lvd_app_fail(lvd_current_app(), "cannot open %s", name);
    lvd_native_fail("no file");
  }
  return *file;
}

static numbers *numbers_of_app(void) {
  numbers *n = lvd_app_data(lvd_current_app(), &numbers_key, sizeof *n, numbers_end);
  if (!n) lvd_native_fail("out of memory");
  return n;
}

/* The next number of an input; false where there is none. */
static bool next_number(int index, double *number) {
  if (index < 0 || index >= FILES) lvd_native_fail("there are no %d inputs", index);
  FILE *file = numbers_file(&numbers_of_app()->in[index], "in", index, "r");
  return fscanf(file, "%lf", number) == 1;
}

/* The actor ends where there is none. */
static double number_in(int index) {
  double number;
  if (!next_number(index, &number)) lvd_native_end();
  return number;
}

/* The second output has an option of its own, as the command takes one file with --out. */
static FILE *output(int index) {
  return numbers_file(&numbers_of_app()->out[index], index ? "out2" : "out", 0, "w");
}

#endif
