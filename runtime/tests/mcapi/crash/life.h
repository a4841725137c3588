/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Death after every store: what the lives of victims and their survivors share. */
#ifndef LVD_CRASH_LIFE_H
#define LVD_CRASH_LIFE_H

#include <levada/mcapi_ext.h>
#include <mcapi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 5, PACKETS = 5, BIG = 3000, SURVIVOR = 1, VICTIM = 2, LIMIT_MS = 2000 };
/* Ports of the survivor: messages, and two more. The victim's are the same. */
enum { MAIL = 1, IN = 2, OUT = 3 };

/* A life of a victim, and of who survives it. */
typedef struct life {
  const char *name;
  void (*before)(void); /* the survivor, before there is a victim */
  void (*live)(void);  /* the victim, from mcapi_initialize to mcapi_finalize, with `counted` set */
  void (*serve)(void); /* the survivor, again and again, while the victim lives */
  void (*after)(
      void); /* it is gone: all that it left is checked; MAIL, IN and OUT are there still ... */
  void (*away)(void); /* ... and then IN and OUT are deleted */
} life;
extern const life packets_life, ends_lives[]; /* the last of these has no name */

extern mcapi_domain_t number;
extern mcapi_status_t s;
extern size_t size;
extern long round_number;
extern _Thread_local bool counted;

/* Seen by both: how far the victim has got. */
typedef struct progress {
  volatile long points, messages, packets;
  volatile int ended; /* its last call has returned */
  volatile char where[32];
} progress;
extern progress *seen;

#define FAIL(...)                                                                                  \
  do {                                                                                             \
    fprintf(stderr, "%s:%d: store %ld (%s): ", __FILE__, __LINE__, round_number,                   \
            (const char *)seen->where);                                                            \
    fprintf(stderr, __VA_ARGS__);                                                                  \
    fputc('\n', stderr);                                                                           \
    exit(1);                                                                                       \
  } while (0)
#define CHECK(x)                                                                                   \
  do {                                                                                             \
    if (!(x)) FAIL("not so: %s", #x);                                                              \
  } while (0)
#define SAYS(expected)                                                                             \
  do {                                                                                             \
    char text_[64];                                                                                \
    if (s != (expected))                                                                           \
      FAIL("%s, not %s", mcapi_display_status(s, text_, sizeof text_), #expected);                 \
  } while (0)

double seconds(void);
void nap(long ns);
void at(const char *where); /* where the victim is, in words */
/* Bytes that only `seed` makes. */
void fill(unsigned char *to, size_t n, long seed);
bool is_filled(const unsigned char *from, size_t n, long seed);
size_t size_of(long i); /* of message or packet `i` */

void begin(mcapi_node_t node);
mcapi_endpoint_t make(mcapi_port_t port);
mcapi_endpoint_t get(mcapi_node_t node, mcapi_port_t port);
void finish(mcapi_request_t *r); /* it is done, and well */
void end_life(void);             /* finalize, the last of it */
/* An endpoint with no channel any more is deleted. */
void put_away(mcapi_endpoint_t endpoint);

#endif
