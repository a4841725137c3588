/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait: what every blocking call goes through, and channels between threads of a program.
 *
 * Who waits is the handle's `self`. A sleeper is a thread: it spins briefly, then sleeps in the
 * kernel. */
#ifndef LVD_WAIT_H
#define LVD_WAIT_H

#include <levada/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A thread that waits. One wait at a time. */
typedef struct lvd_sleeper {
  lvd_waiter waiter;
  lvd_a32 asleep;   /* what it sleeps on */
  uint32_t spin_us; /* it looks around for so long before it sleeps */
  uint64_t sleeps;  /* counter: times it went to the kernel */
} lvd_sleeper;

LVD_API void lvd_sleeper_init(lvd_sleeper *s, uint32_t spin_us);

/* Waits until there is room for `n`, or until there are `n` elements (n <= capacity). Before it
 * waits, it publishes: a producer flushes, a consumer releases. Returns
 *   LVD_OK       there are;
 *   LVD_E_ENDED  the stream has ended with fewer than n left, which can still be got; or the error
 *                that the producer ended with;
 *   LVD_E_PEER   every consumer has left;
 *   LVD_E_CORRUPT  the other side has written what the protocol cannot write;
 *   LVD_E_TIME   `timeout_ns` passed (negative: for ever);
 *   LVD_E_STATE  the handle has no `self`, or is an actor's (actors await, they do not wait). */
LVD_API lvd_status lvd_wait_room(lvd_producer *p, uint32_t n, int64_t timeout_ns);
LVD_API lvd_status lvd_wait_elements(lvd_consumer *c, uint32_t n, int64_t timeout_ns);

/* A channel in private memory, its ring mapped twice so that spans never wrap, for threads of one
 * program. Attach handles with lvd_producer_attach and lvd_consumer_attach, `fenced` as
 * lvd_channel_fenced says. Destroy it when nobody uses a handle any more. */
LVD_API lvd_status lvd_channel_create(uint32_t elem_size, uint32_t capacity, uint32_t consumers,
                                      lvd_channel **out);
LVD_API void lvd_channel_destroy(lvd_channel *ch);
LVD_API bool lvd_channel_fenced(void);

#ifdef __cplusplus
}
#endif
#endif
