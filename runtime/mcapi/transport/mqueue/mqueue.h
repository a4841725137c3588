/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Transport over POSIX message queues: one queue for the messages of each endpoint to which
 * anything was sent, and one for each channel.
 *
 * A message or packet is one message of the queue, or several pieces if the system's size limit is
 * smaller. The pieces are sent when there is room for all of them. If other senders take that room
 * meanwhile, the send fails; the receiver drops the pieces it has when the same sender begins
 * another message. Sent pieces are kept by the system, so a message can remain incomplete only if
 * its sender dies between two pieces. */
#ifndef LVD_MCAPI_MQUEUE_H
#define LVD_MCAPI_MQUEUE_H

#include "../../../platform/queue.h"
#include "../transport.h"

typedef struct pmq_head {
  uint32_t to, from;   /* handles of endpoints */
  uint32_t sending_id; /* the sender's number for this message; of a scalar: its size in bytes */
  uint32_t size;       /* of the whole message, in bytes */
  uint32_t offset;     /* of this piece in it */
  uint32_t unused[3];
} pmq_head;

enum {
  PMQ_QUEUE_MESSAGES = 64,
  PMQ_MESSAGE_MAX_BYTES = MCAPI_MAX_MESSAGE_SIZE + sizeof(pmq_head),
  /* If the user's limit allows no more; longer messages than such a queue holds are refused. */
  PMQ_MESSAGE_MIN_BYTES = 1024,
  PMQ_PIECES_PER_CALL = 1024, /* pieces received by one call, with its endpoint's lock */
  PMQ_OPEN_TARGETS = 8        /* queues that an endpoint keeps open for sending */
};

/* A message that is being assembled, or was received ahead of time to count it. */
typedef struct pmq_assembly {
  struct pmq_assembly *next;
  pmq_head head;
  uint32_t level, have; /* bytes that have arrived */
  unsigned char data[];
} pmq_assembly;

/* local->transport_data. */
typedef struct pmq_endpoint {
  lvd_os_queue in;
  unsigned char *piece;          /* buffer for one message of a queue */
  pmq_assembly *partial, *whole; /* `whole`: in the order in which they are received */
  uint32_t partials, wholes;
  uint32_t sending_ids;
  struct {
    mcapi_endpoint_t to;
    lvd_os_queue queue;
  } target[PMQ_OPEN_TARGETS];
  uint32_t next_target;
} pmq_endpoint;

/* local->channel.transport_data. Kept after the end is closed until all held buffers are
 * released. */
typedef struct pmq_channel {
  mc_detached detached; /* first */
  lvd_os_queue queue;
  unsigned char *piece;
  /* Receiving packets: buffers; `order` is a ring of those that are filled and not handed out
   * yet. */
  unsigned char *buffer[MC_SLOTS];
  uint32_t size[MC_SLOTS];
  bool held[MC_SLOTS], filled[MC_SLOTS];
  uint32_t order[MC_SLOTS], first, count;
  uint32_t filling, have, sending_id; /* packet that is being assembled: slot + 1; 0: none */
  /* Receiving scalars: one that had another size than asked for. */
  bool has_scalar;
  uint64_t scalar;
  uint32_t scalar_size;
  unsigned char *loan; /* sending: buffer lent to the program */
} pmq_channel;

void mc_pmq_name(char *out, size_t size, mcapi_domain_t number, uint32_t index, bool channel);
/* Number of pieces for `size` bytes. */
static inline uint32_t pmq_pieces(const lvd_os_queue *q, size_t size) {
  size_t each = q->size - sizeof(pmq_head);
  return size ? (uint32_t)((size + each - 1) / each) : 1;
}
/* Sends `data` in pieces, each built in the buffer `piece`, if there is room for all. */
lvd_status mc_pmq_put(const lvd_os_queue *q, unsigned char *piece, pmq_head head, const void *data,
                      uint32_t level);
/* Receives a well-formed piece, with *length bytes of data. Decrements *left for each piece that it
 * receives, malformed ones included, so that a flood of them cannot keep a call from returning.
 * False with LVD_E_TIMEOUT: the queue is empty, or *left is 0 (then see mc_pmq_renotify). */
bool mc_pmq_take(const lvd_os_queue *q, unsigned char *piece, pmq_head *head, size_t *length,
                 uint32_t *level, uint32_t *left, lvd_status *status);
/* If a call has stopped at its limit, notifies its own node, since waiters may be served by the
 * remaining pieces. */
static inline void mc_pmq_renotify(mc_domain *d, const mc_local_endpoint *local, uint32_t left) {
  if (LVD_UNLIKELY(!left)) mc_notify(d, mc_owner(local)->index);
}

#define MC_PMQ_FUNCTION(function) MC_FUNCTION(function, mc_pmq_##function)
#define MC_PMQ_ENTRY(function)    .function = mc_pmq_##function,
MC_TRANSPORT_FUNCTIONS(MC_PMQ_FUNCTION)

#endif
