/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shared by all tests: CHECK, and a few actors (actors.c). */
#ifndef LVD_TEST_H
#define LVD_TEST_H

#include <levada/levada.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                   \
  do {                                                                                             \
    if (!(x)) {                                                                                    \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x);                              \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
#define CHECK_EQ(a, b)                                                                             \
  do {                                                                                             \
    long long a_ = (long long)(a), b_ = (long long)(b);                                            \
    if (a_ != b_) {                                                                                \
      fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #a, a_, b_, #b);   \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
#define SKIP(why)                                                                                  \
  do {                                                                                             \
    printf("skipped: %s\n", why);                                                                  \
    exit(77);                                                                                      \
  } while (0)

#define TEST(name) void test_##name(void);
#include "list.h"
#undef TEST

#define MS_NS INT64_C(1000000) /* nanoseconds in a millisecond */

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Scales a count down where a sanitizer or an emulator makes everything slow. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
#define SCALED(n) ((n) / 20)
#else
#define SCALED(n) (n)
#endif

/* A small random number generator; each test seeds its own. */
static inline uint64_t next_random(uint64_t *s) {
  *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
  return *s;
}

/* ---- actors on 32-bit elements (actors.c) -------------------------------------------------- */

extern const lvd_actor_class source_class; /* params: const uint32_t *count; puts 0, 1, 2, ... */
extern const lvd_actor_class add_class;    /* params: const uint32_t *n, or null for 1 */
extern const lvd_actor_class sum_class;    /* two inputs, one output: a + b */
extern const lvd_actor_class sink_class;   /* state: sink */
extern const lvd_actor_class slow_class;   /* as add; about 50 us per element */

typedef struct sink {
  uint64_t count, sum;
  uint32_t last;
  bool in_order; /* each one larger than the previous */
} sink;
/* params of sink_class: where to store the result when the application is unloaded; may be null */

/* Networks made at run time: connect, then use `net`. */
typedef struct builder {
  lvd_network net;
  lvd_actor_desc actor[64];
  lvd_channel_desc channel[128];
  lvd_port_ref to[256];
  uint32_t tos;
} builder;
void builder_init(builder *b, const char *name);
uint32_t builder_actor(builder *b, const char *name, const lvd_actor_class *cls,
                       const void *params);
void builder_connect(builder *b, uint32_t from, uint32_t out, uint32_t to, uint32_t in,
                     uint32_t capacity);

/* Source -> `adders` adders -> sink, all channels of `capacity`; and what the sink must have
 * got. */
void pipeline(builder *b, uint32_t adders, const uint32_t *count, sink *result, uint32_t capacity);
void check_pipeline(const sink *s, uint32_t count, uint32_t adders);

LVD_NORETURN void go_down(int depth); /* until the stack ends */

lvd_runtime *runtime_of(uint32_t workers);
lvd_app *app_loaded(lvd_runtime *rt, const builder *b);
lvd_app *app_begun(lvd_runtime *rt, const builder *b); /* loaded and started */
/* All of it on one worker. */
lvd_app *app_begun_at(lvd_runtime *rt, const builder *b, uint32_t worker);
void app_ended(lvd_app *app, lvd_status outcome); /* waits for it, and unloads it */
uint64_t firings_of(lvd_app *app, uint32_t actor);

uint32_t usable_cores(void);
/* Involuntary context switches of this process's threads: others wanted its cores. */
uint64_t times_preempted(void);
void sleep_ms(int ms);
uint64_t now_ns(void);
uint64_t cpu_ns(void); /* of the process */

#endif
