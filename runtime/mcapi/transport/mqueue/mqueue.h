/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The transport over POSIX message queues: one queue for the messages of each endpoint that somebody
 * has sent to, one for each channel.
 *
 * A message or a packet travels as one message of the queue, or as several pieces where the system's
 * limits are narrow. Pieces are sent when there is room for all of them; of a message whose sender
 * found none after all (others send there, too) the receiver drops what has come when the same sender
 * begins anew. What lies in queues is the system's, so nobody can leave half a message there but by
 * dying between two pieces. */
#ifndef LVD_MCAPI_PMQ_H
#define LVD_MCAPI_PMQ_H

#include "../../../platform/queue.h"
#include "../transport.h"

typedef struct pmq_head {
  uint32_t to, from; /* handles of endpoints */
  uint32_t claim;    /* the sender's number for this sending */
  uint32_t size;     /* of all of it, */
  uint32_t offset;   /* and where this piece begins */
  uint32_t unused[3];
} pmq_head;

enum {
  PMQ_MESSAGES = 64,
  PMQ_MOST = MCAPI_MAX_MESSAGE_SIZE + sizeof(pmq_head),
  PMQ_LEAST =
      1024, /* where the user's limit leaves no more: what is too long for such a queue is refused */
  PMQ_AT_ONCE = 1024, /* pieces that a call receives, with its endpoint's lock */
  PMQ_TARGETS = 8     /* queues that an endpoint keeps open to send to */
};

/* Messages that are put together, or wait in memory because somebody has counted them. */
typedef struct pmq_parcel {
  struct pmq_parcel *next;
  pmq_head head;
  uint32_t level, have;
  unsigned char data[];
} pmq_parcel;

/* An endpoint's: local->own. */
typedef struct pmq_endpoint {
  lvd_os_queue in;
  unsigned char *piece;        /* one message of a queue */
  pmq_parcel *partial, *whole; /* `whole`: as they are to be received */
  uint32_t partials, wholes;
  uint32_t claims;
  struct {
    mcapi_endpoint_t to;
    lvd_os_queue queue;
  } target[PMQ_TARGETS];
  uint32_t next_target;
} pmq_endpoint;

/* An open end's: local->channel.own. One that has been closed stays for what is held of it. */
typedef struct pmq_channel {
  mc_lent lent; /* first */
  lvd_os_queue queue;
  unsigned char *piece;
  /* Receiving packets: buffers, and those of them that are filled and not taken yet, in a ring. */
  unsigned char *buffer[MC_SLOTS];
  uint32_t size[MC_SLOTS];
  bool held[MC_SLOTS], filled[MC_SLOTS];
  uint32_t order[MC_SLOTS], first, count;
  uint32_t filling, have, claim; /* the one that pieces are put into: slot + 1 */
  /* Receiving scalars: one that was of another size than asked for. */
  bool has_scalar;
  uint64_t scalar;
  uint32_t scalar_size;
  unsigned char *loan; /* sending: what is lent */
} pmq_channel;

void mc_pmq_name(char *out, size_t size, mcapi_domain_t number, uint32_t index, bool channel);
/* How many pieces `size` bytes are. */
static inline uint32_t pmq_pieces(const lvd_os_queue *q, size_t size) {
  size_t each = q->size - sizeof(pmq_head);
  return size ? (uint32_t)((size + each - 1) / each) : 1;
}
/* Sends `data` in pieces, built in `piece`, if there is room for all. */
lvd_status mc_pmq_put(const lvd_os_queue *q, unsigned char *piece, pmq_head head, const void *data,
                      uint32_t level);
/* A piece that can have been sent: its data are `*length` bytes. Of `*left` that may be received, since anybody
 * can send what cannot have been; LVD_E_TIME, too, when none of those is left (mc_pmq_more). */
bool mc_pmq_take(const lvd_os_queue *q, unsigned char *piece, pmq_head *head, size_t *length,
                 uint32_t *level, uint32_t *left, lvd_status *status);
/* Somebody may wait for what lies behind those that were received: he is to look again. */
static inline void mc_pmq_more(mc_domain *d, const mc_local *local, uint32_t left) {
  if (LVD_UNLIKELY(!left)) mc_ring(d, local->node->index);
}

#define MC_PMQ_FUNCTION(function) MC_FUNCTION(function, mc_pmq_##function)
#define MC_PMQ_ENTRY(function)    .function = mc_pmq_##function,
MC_TRANSPORT(MC_PMQ_FUNCTION)

#endif
