/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The prelude of every compiled network: ports in registers, checks, CAL's arithmetic. Its text is copied into the C
 * of each network, which therefore includes only the runtime's headers. */
#include <levada/actor.h>
#include <levada/native.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEVADA_UNUSED __attribute__((unused))
#define LEVADA_INLINE static inline __attribute__((always_inline, unused))

/* ---- Ports. While an actor runs, each of its ports is three variables: where the next element
 * lies (in_X), how many may be used before looking again (in_X_n), and how many there were when we
 * last looked (in_X_size). The other side sees what was used after half a channel or
 * LEVADA_PUBLISH_BYTES at the latest, so that both sides overlap: no more than what is left until
 * then is taken at a time, and where that is too little for `need`, it is seen before.
 *
 * A large channel lets its producer run ahead of a consumer that is busy with something else. That
 * must not delay a consumer that waits: so the amount that is published at once does not grow with
 * the capacity. */
#define LEVADA_PUBLISH_BYTES 8192
#define LEVADA_PUBLISH(port)                                                                       \
  (sizeof *(port) < LEVADA_PUBLISH_BYTES ? (uint32_t)(LEVADA_PUBLISH_BYTES / sizeof *(port)) : 1)

LEVADA_INLINE uint32_t levada_at_once(uint32_t capacity, uint32_t most) {
  return capacity / 2 < most ? capacity / 2 : most;
}

static __attribute__((noinline, unused)) uint32_t levada_elements(lvd_consumer *c, uint32_t used,
                                                                  uint32_t need, uint32_t publish) {
  uint32_t most = levada_at_once(c->capacity, publish), n;
  int64_t there;
  lvd_get_done(c, used);
  used = (uint32_t)(c->got - c->popped);
  if (used && used + need > most) {
    lvd_pop(c);
    used = 0;
  }
  there = (int64_t)(c->limit - c->got);
  n = there >= (int64_t)need ? (uint32_t)there : lvd_elements_refresh(c);
  most = used + need > most ? need : most - used;
  return n < most ? n : most;
}

static __attribute__((noinline, unused)) uint32_t levada_room(lvd_producer *p, uint32_t used,
                                                              uint32_t need, uint32_t publish) {
  uint32_t most = levada_at_once(p->capacity, publish), n;
  int64_t there;
  lvd_put_done(p, used);
  used = (uint32_t)(p->put - p->pushed);
  if (used && used + need > most) {
    lvd_push(p);
    used = 0;
  }
  there = (int64_t)(p->limit - p->put);
  n = there >= (int64_t)need ? (uint32_t)there : lvd_room_refresh(p);
  most = used + need > most ? need : most - used;
  return n < most ? n : most;
}

#define LEVADA_ELEMENTS(port, index, need)                                                         \
  do {                                                                                             \
    port##_n =                                                                                     \
        levada_elements(&self->in[index], port##_size - port##_n, need, LEVADA_PUBLISH(port));     \
    port##_size = port##_n;                                                                        \
    port = lvd_get_span(&self->in[index]);                                                         \
  } while (0)

#define LEVADA_ROOM(port, index, need)                                                             \
  do {                                                                                             \
    port##_n = levada_room(&self->out[index], port##_size - port##_n, need, LEVADA_PUBLISH(port)); \
    port##_size = port##_n;                                                                        \
    port = lvd_put_span(&self->out[index]);                                                        \
  } while (0)

/* Asks for the lines that a coming firing will write, as many as this one does: where the consumer
 * sits on another core they are in its cache, and each would be waited for. */
LEVADA_INLINE void levada_ahead(const void *at, size_t bytes) {
  for (size_t i = 0; i < bytes && i < LVD_PREFETCH_DISTANCE; i += 64)
    lvd_prefetch_write((const char *)at + i);
}

/* Whether all consumers of this actor have closed. */
static LEVADA_UNUSED bool levada_consumers_closed(const lvd_actor *self) {
  for (uint32_t i = 0; i < self->cls->outputs; i++)
    if (!lvd_consumers_closed(&self->out[i])) return false;
  return true;
}

/* Several actions may wait on one port: the smallest wish counts. */
LEVADA_INLINE void levada_await_elements(lvd_actor *self, uint32_t port, uint32_t n) {
  uint32_t had = self->in[port].await;
  if (had == 0 || n < had) lvd_await_elements(self, port, n);
}
LEVADA_INLINE void levada_await_room(lvd_actor *self, uint32_t port, uint32_t n) {
  uint32_t had = self->out[port].await;
  if (had == 0 || n < had) lvd_await_room(self, port, n);
}
static LEVADA_UNUSED void levada_await_nothing(lvd_actor *self) {
  for (uint32_t i = 0; i < self->cls->inputs; i++) self->in[i].await = 0;
  for (uint32_t i = 0; i < self->cls->outputs; i++) self->out[i].await = 0;
}

/* The action that is tried or fires from here on. Reports read it while it runs, also one that never
 * ends, after which the C compiler finds no reader: so it may not leave this out. */
#define LEVADA_FIRES(id) (*(volatile uint32_t *)&self->action = (id))

/* ---- Natives. An action that does not end is abandoned wherever it is, but not while it is in
 * code that may hold a lock or own something. */

/* Returns the one that we are in already: a native's argument may be a call of another. */
LEVADA_INLINE const char *levada_in_native(lvd_actor *self, const char *name) {
  const char *outer = self->native;
  *(const char *volatile *)&self->native = name;
  return outer;
}
#define LEVADA_NATIVE(name, call)                                                                  \
  __extension__({                                                                                  \
    const char *levada_outer = levada_in_native(self, name);                                       \
    call;                                                                                          \
    levada_in_native(self, levada_outer);                                                          \
  })
#define LEVADA_NATIVE_VALUE(name, call)                                                            \
  __extension__({                                                                                  \
    const char *levada_outer = levada_in_native(self, name);                                       \
    __auto_type levada_result = (call);                                                            \
    levada_in_native(self, levada_outer);                                                          \
    levada_result;                                                                                 \
  })

/* A native may wait, and what was put before is not to wait with it: the channel learns of it. */
#define LEVADA_PUT(port, index)                                                                    \
  do {                                                                                             \
    lvd_put_done(&self->out[index], port##_size - port##_n);                                       \
    port##_size = port##_n;                                                                        \
  } while (0)

/* ---- Checks. A negative index is a huge one. */

/* `columns` are the first and the last one of an expression in its line, the last one in the upper half;
 * 0: not known. */
static LVD_COLD LEVADA_UNUSED const char *levada_columns(char text[48], uint32_t columns) {
  unsigned first = columns & 0xffff, last = columns >> 16;
  text[0] = '\0';
  if (first && first == last) snprintf(text, 48, ", at column %u", first);
  if (first && first != last) snprintf(text, 48, ", at columns %u to %u", first, last);
  return text;
}
static LVD_NORETURN LVD_COLD LEVADA_UNUSED void
levada_index_fails(lvd_actor *self, int64_t i, uint32_t n, uint32_t line, uint32_t columns) {
  char at[48];
  lvd_actor_fail(self, LVD_FAULT_INDEX, line, "index %lld of a list of %lu%s", (long long)i,
                 (unsigned long)n, levada_columns(at, columns));
}
static LVD_NORETURN LVD_COLD LEVADA_UNUSED void levada_divisor_fails(lvd_actor *self, uint32_t line,
                                                                     uint32_t columns) {
  char at[48];
  lvd_actor_fail(self, LVD_FAULT_DIVISION, line, "division by zero%s", levada_columns(at, columns));
}
LEVADA_INLINE size_t levada_index(lvd_actor *self, int64_t i, uint32_t n, uint32_t line,
                                  uint32_t columns) {
  if (LVD_UNLIKELY((uint64_t)i >= n)) levada_index_fails(self, i, n, line, columns);
  return (size_t)i;
}
/* The same in code of another file than the action's: the place is part of the message. */
static LVD_NORETURN LVD_COLD LEVADA_UNUSED void levada_bad_index(lvd_actor *self, int64_t i,
                                                                 uint32_t n, const char *at) {
  lvd_actor_fail(self, LVD_FAULT_INDEX, 0, "index %lld of a list of %lu, at %s", (long long)i,
                 (unsigned long)n, at);
}
LEVADA_INLINE size_t levada_index_at(lvd_actor *self, int64_t i, uint32_t n, const char *at) {
  if (LVD_UNLIKELY((uint64_t)i >= n)) levada_bad_index(self, i, n, at);
  return (size_t)i;
}

/* Where what is read outside of a list is its nearest element; the first time is reported. It
 * changes nothing that the compiler has to know of. */
__attribute__((const, cold, noinline, unused)) static size_t
levada_far(lvd_actor *self, int64_t i, uint32_t n, const char *at) {
  static char reported;
  if (!__atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED))
    fprintf(stderr,
            "warning: index %lld of a list of %lu, at %s: the nearest element is read, here and "
            "wherever there is no such element\n",
            (long long)i, (unsigned long)n, at);
  (void)self;
  return i < 0 ? 0 : n - 1;
}
LEVADA_INLINE size_t levada_near(lvd_actor *self, int64_t i, uint32_t n, const char *at) {
  return LVD_UNLIKELY((uint64_t)i >= n) ? levada_far(self, i, n, at) : (size_t)i;
}

/* The same where one is written: what is written to no element is lost. */
static LVD_COLD LEVADA_UNUSED bool levada_lost(int64_t i, uint32_t n, const char *at) {
  static char reported;
  if (!__atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED))
    fprintf(stderr,
            "warning: index %lld of a list of %lu, at %s: what is written there is lost, here and "
            "wherever there is no such element\n",
            (long long)i, (unsigned long)n, at);
  return false;
}
LEVADA_INLINE bool levada_holds(int64_t i, uint32_t n, const char *at) {
  return LVD_LIKELY((uint64_t)i < n) || levada_lost(i, n, at);
}

static LVD_NORETURN LVD_COLD LEVADA_UNUSED void levada_bad_divisor(lvd_actor *self,
                                                                   const char *at) {
  lvd_actor_fail(self, LVD_FAULT_DIVISION, 0, "division by zero, at %s", at);
}

/* ---- Copying. Few bytes are moved by loads and stores of a fixed size that meet in the middle. */

#define LEVADA_ENDS(T)                                                                             \
  do {                                                                                             \
    T first, last;                                                                                 \
    memcpy(&first, from, sizeof first);                                                            \
    memcpy(&last, (const char *)from + n - sizeof last, sizeof last);                              \
    memcpy(to, &first, sizeof first);                                                              \
    memcpy((char *)to + n - sizeof last, &last, sizeof last);                                      \
  } while (0)

typedef struct levada_16 {
  uint64_t half[2];
} levada_16;

/* Between lists that do not overlap. */
LEVADA_INLINE void levada_copy(void *to, const void *from, size_t n) {
  if (n > 32)
    memcpy(to, from, n);
  else if (n >= 16)
    LEVADA_ENDS(levada_16);
  else if (n >= 8)
    LEVADA_ENDS(uint64_t);
  else if (n >= 4)
    LEVADA_ENDS(uint32_t);
  else if (n >= 2)
    LEVADA_ENDS(uint16_t);
  else if (n == 1)
    *(char *)to = *(const char *)from;
}

/* ---- Arithmetic where C leaves something undefined. */

#define LEVADA_DIVISION(name, T, U)                                                                \
  /* The least number divided by -1 is itself. */                                                  \
  LEVADA_INLINE T levada_div_##name(T a, T b) { return b == -1 ? (T)(0 - (U)a) : (T)(a / b); }     \
  LEVADA_INLINE T levada_mod_##name(T a, T b) { return b == -1 ? 0 : (T)(a % b); }                 \
  LEVADA_INLINE T levada_divisor_##name(lvd_actor *self, T b, uint32_t line, uint32_t columns) {   \
    if (LVD_UNLIKELY(b == 0)) levada_divisor_fails(self, line, columns);                           \
    return b;                                                                                      \
  }                                                                                                \
  LEVADA_INLINE U levada_divisor_u##name(lvd_actor *self, U b, uint32_t line, uint32_t columns) {  \
    if (LVD_UNLIKELY(b == 0)) levada_divisor_fails(self, line, columns);                           \
    return b;                                                                                      \
  }                                                                                                \
  LEVADA_INLINE T levada_divisor_at_##name(lvd_actor *self, T b, const char *at) {                 \
    if (LVD_UNLIKELY(b == 0)) levada_bad_divisor(self, at);                                        \
    return b;                                                                                      \
  }                                                                                                \
  LEVADA_INLINE U levada_divisor_at_u##name(lvd_actor *self, U b, const char *at) {                \
    if (LVD_UNLIKELY(b == 0)) levada_bad_divisor(self, at);                                        \
    return b;                                                                                      \
  }
LEVADA_DIVISION(32, int32_t, uint32_t)
LEVADA_DIVISION(64, int64_t, uint64_t)

/* The count of a shift is taken modulo the width, as processors do. */
LEVADA_INLINE uint32_t levada_shl_32(uint32_t a, uint64_t n) { return a << (n & 31); }
LEVADA_INLINE uint64_t levada_shl_64(uint64_t a, uint64_t n) { return a << (n & 63); }
LEVADA_INLINE int32_t levada_shr_32(int32_t a, uint64_t n) { return a >> (n & 31); }
LEVADA_INLINE int64_t levada_shr_64(int64_t a, uint64_t n) { return a >> (n & 63); }
LEVADA_INLINE uint32_t levada_shr_u32(uint32_t a, uint64_t n) { return a >> (n & 31); }
LEVADA_INLINE uint64_t levada_shr_u64(uint64_t a, uint64_t n) { return a >> (n & 63); }

/* Both sides are computed, and one is taken, without a branch. */
#define LEVADA_CHOOSE(T, U)                                                                        \
  LEVADA_INLINE T levada_choose_##T(bool c, T yes, T no) {                                         \
    return (T)((U)no ^ (((U)yes ^ (U)no) & (U) - (U)c));                                           \
  }
LEVADA_CHOOSE(int32_t, uint32_t)
LEVADA_CHOOSE(uint32_t, uint32_t)
LEVADA_CHOOSE(int64_t, uint64_t)
LEVADA_CHOOSE(uint64_t, uint64_t)

/* Toward zero; what does not fit becomes the nearest that does; not-a-number becomes 0. */
LEVADA_INLINE int64_t levada_truncate(double x) {
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x <= -9223372036854775808.0) return INT64_MIN;
  return (int64_t)x;
}

/* A half is a float that is the nearest of IEEE's numbers of 16 bits: see operators/half.rs. */
LEVADA_INLINE float levada_half(float x) {
  uint32_t bits, sign;
  memcpy(&bits, &x, sizeof bits);
  sign = bits & 0x80000000u;
  bits ^= sign;
  if (bits > 0x7f800000u) return x; /* not a number */
  if (bits >= 0x477ff000u) {        /* 65520 */
    bits = 0x7f800000u;
  } else if (bits < 0x38800000u) { /* 2^-14 */
    memcpy(&x, &bits, sizeof x);
    x = (x + 0.5f) - 0.5f;
    memcpy(&bits, &x, sizeof bits);
  } else {
    bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
  }
  bits |= sign;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* ---- Printing. A line is written whole, so that the lines of several actors do not mix. */

typedef struct levada_line {
  uint32_t length;
  char text[1020];
} levada_line;

static LEVADA_UNUSED void levada_print_flush(levada_line *line) {
  lvd_app_throttle_output(lvd_current_app(), line->length);
  /* Where it goes through to a slow pipe or a terminal the worker goes on meanwhile. */
  if (__flbf(stdout) || __fpending(stdout) + line->length >= __fbufsize(stdout))
    lvd_wait_writable(STDOUT_FILENO);
  fwrite(line->text, 1, line->length, stdout);
  line->length = 0;
}
/* A reader sees all output before the program pauses. */
static LEVADA_UNUSED void levada_print_show(void) {
  if (__fpending(stdout)) lvd_wait_writable(STDOUT_FILENO);
  fflush(stdout);
}
/* At the end; what comes next on a terminal begins on a line of its own. */
static LEVADA_UNUSED void levada_print_last(levada_line *line) {
  if (line->length && isatty(STDOUT_FILENO)) line->text[line->length++] = '\n';
  levada_print_flush(line);
  fflush(stdout);
}
static LEVADA_UNUSED void levada_print_text(levada_line *line, const char *s) {
  for (; *s; s++) {
    if (line->length == sizeof line->text - 1) levada_print_flush(line); /* a line's end fits */
    line->text[line->length++] = *s;
  }
}
static LEVADA_UNUSED void levada_print_int(levada_line *line, int64_t v) {
  char s[32];
  snprintf(s, sizeof s, "%lld", (long long)v);
  levada_print_text(line, s);
}
static LEVADA_UNUSED void levada_print_uint(levada_line *line, uint64_t v) {
  char s[32];
  snprintf(s, sizeof s, "%llu", (unsigned long long)v);
  levada_print_text(line, s);
}
/* A number as it is shown: what is not a number has no sign, which processors choose differently. */
LEVADA_INLINE double levada_shown(double v) { return v != v ? __builtin_nan("") : v; }
static LEVADA_UNUSED void levada_print_real(levada_line *line, double v) {
  char s[400];
  snprintf(s, sizeof s, "%f", levada_shown(v));
  levada_print_text(line, s);
}
static LEVADA_UNUSED void levada_print_end(levada_line *line) {
  levada_print_text(line, "\n");
  levada_print_flush(line);
}

/* ---- Strings that are put together. */

typedef struct levada_text {
  char *text;
  size_t size;
} levada_text;

static LEVADA_UNUSED size_t levada_compose(levada_text *to, const char *format, va_list parts) {
  for (;;) {
    va_list again;
    va_copy(again, parts);
    int length = vsnprintf(to->text, to->size, format, again);
    va_end(again);
    if (length < 0) lvd_native_fail("a string is too long");
    if ((size_t)length < to->size) return (size_t)length;
    size_t size = 2 * (size_t)length + 64;
    char *grown = realloc(to->text, size);
    if (!grown) lvd_native_fail("no memory for a string of %d bytes", length);
    to->text = grown;
    to->size = size;
  }
}

/* For a native: the memory is used again for the next one. */
static LEVADA_UNUSED __attribute__((format(printf, 2, 3))) const char *
levada_put_together(levada_text *to, const char *format, ...) {
  va_list parts;
  va_start(parts, format);
  levada_compose(to, format, parts);
  va_end(parts);
  return to->text;
}

/* Other strings go into variables and through channels, and it is not known how long they are needed. So one copy
 * of each is kept until the application is unloaded. */
typedef struct levada_kept {
  levada_text next;
  char **at; /* a hash table, at most half full */
  size_t size, count;
} levada_kept;

static LEVADA_UNUSED char **levada_kept_at(char **table, size_t size, const char *text) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (const char *s = text; *s; s++) hash = (hash ^ (unsigned char)*s) * UINT64_C(1099511628211);
  size_t i = hash & (size - 1);
  while (table[i] && strcmp(table[i], text) != 0) i = (i + 1) & (size - 1);
  return &table[i];
}

static LEVADA_UNUSED __attribute__((format(printf, 2, 3))) const char *
levada_keep(levada_kept *kept, const char *format, ...) {
  va_list parts;
  va_start(parts, format);
  size_t length = levada_compose(&kept->next, format, parts);
  va_end(parts);
  if (2 * kept->count >= kept->size) {
    size_t size = kept->size ? 2 * kept->size : 16;
    char **table = calloc(size, sizeof *table);
    if (!table) lvd_native_fail("no memory for strings");
    for (size_t i = 0; i < kept->size; i++)
      if (kept->at[i]) *levada_kept_at(table, size, kept->at[i]) = kept->at[i];
    free(kept->at);
    kept->at = table;
    kept->size = size;
  }
  char **found = levada_kept_at(kept->at, kept->size, kept->next.text);
  if (*found) return *found;
  char *text = malloc(length + 1);
  if (!text) lvd_native_fail("no memory for strings");
  kept->count++;
  return *found = memcpy(text, kept->next.text, length + 1);
}

static LEVADA_UNUSED void levada_keep_end(levada_kept *kept) {
  for (size_t i = 0; i < kept->size; i++) free(kept->at[i]);
  free(kept->at);
  free(kept->next.text);
}
