/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Death after every store: shared by the scenarios. */
#ifndef LVD_CRASH_LIFE_H
#define LVD_CRASH_LIFE_H

#include <levada/mcapi_ext.h>
#include <mcapi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 5, PACKETS = 5, BIG = 3000, SURVIVOR = 1, VICTIM = 2, LIMIT_MS = 2000 };
/* Ports of the survivor: messages, and two more. The victim has the same. */
enum { MAIL = 1, IN = 2, OUT = 3 };

/* A scenario: a victim and its survivor. */
typedef struct life {
  const char *name;
  void (*before)(void); /* by the survivor, before the victim starts */
  /* by the victim, from mcapi_initialize to mcapi_finalize, with `counted` set */
  void (*live)(void);
  void (*serve)(void); /* by the survivor, repeatedly, while the victim lives */
  /* after the victim's death: checks what it left; MAIL, IN and OUT still exist ... */
  void (*after)(void);
  void (*away)(void); /* ... and then IN and OUT are deleted */
} life;
extern const life packets_life, ends_lives[]; /* the last has no name */

extern mcapi_domain_t number;
extern mcapi_status_t s;
extern size_t size;
extern long round_number;
extern _Thread_local bool counted;

/* In shared memory: the progress of the victim. */
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
void at(const char *where); /* records what the victim is doing */
/* Fills with bytes that depend on `seed`. */
void fill(unsigned char *to, size_t n, long seed);
bool is_filled(const unsigned char *from, size_t n, long seed);
size_t size_of(long i); /* of message or packet `i` */

void begin(mcapi_node_t node);
mcapi_endpoint_t make(mcapi_port_t port);
mcapi_endpoint_t get(mcapi_node_t node, mcapi_port_t port);
void finish(mcapi_request_t *r); /* waits until it has succeeded */
void end_life(void);             /* mcapi_finalize, the last call */
/* Deletes an endpoint after its channel has ended. */
void put_away(mcapi_endpoint_t endpoint);

#endif
