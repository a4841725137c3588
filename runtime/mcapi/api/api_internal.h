/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shared by the files that implement the standard's calls: requests, and the endpoints of this
 * process.
 *
 * A blocking call is a request that its caller waits for. So blocking and non-blocking calls take
 * the same path, and each waits behind the requests that were queued before it. */
#ifndef LVD_MCAPI_API_INTERNAL_H
#define LVD_MCAPI_API_INTERNAL_H

#include "../domain/domain.h"
#include "../domain/owner_lock.h"

#include <string.h>

enum { MC_COPY_BYTES = 2048 };

/* ---- requests -------------------------------------------------------------------------------- */

enum mc_kind {
  MC_MESSAGE_SEND, /* kinds below MC_QUEUED_KINDS are queued at their endpoint */
  MC_MESSAGE_RECEIVE,
  MC_PACKET_SEND,
  MC_PACKET_RECEIVE,
  MC_SCALAR_SEND,
  MC_SCALAR_RECEIVE,
  MC_QUEUED_KINDS,
  MC_ENDPOINT_GET = MC_QUEUED_KINDS,
  MC_CHANNEL_OPEN,
  MC_COMPLETED /* complete when it starts */
};

typedef struct mc_request {
  enum mc_kind kind;
  mc_local_node *node;
  mc_local_endpoint *local; /* at which it is queued; MC_CHANNEL_OPEN: that is opened */
  uint32_t handle;          /* of that endpoint */
  struct mc_request *next;
  uint32_t active; /* the node's `active` when the request was started */
  lvd_a32 claimed; /* 1: a thread is completing it; for requests that are in no queue */
  lvd_a32 done;    /* 1: `status` and `size` are the result */
  mcapi_status_t status;
  size_t size;
  /* MC_MESSAGE_SEND: destination, data, priority. MC_MESSAGE_RECEIVE: buffer. */
  mcapi_endpoint_t to;
  const void *out;
  void *in;
  /* MC_PACKET_RECEIVE: receives the address; MC_PACKET_SEND: asks for a loan instead */
  void **packet;
  uint64_t scalar;
  uint32_t level;
  bool fail_when_full; /* fails instead of waiting for room, or for a buffer */
  /* MC_ENDPOINT_GET */
  uint32_t target_node, target_port;
  mcapi_endpoint_t *endpoint;
} mc_request;

/* ---- endpoints ------------------------------------------------------------------------------- */

/* Requests of one kind, oldest first. */
typedef struct mc_request_list {
  mc_request *first, *last;
} mc_request_list;

/* A received packet that has not been released, or several adjacent ones that have. There is at
 * most one released entry after each held one. */
enum { MC_HELD_ENTRIES = 2 * MC_SLOTS };
typedef struct mc_held_packet {
  const unsigned char *at;
  uint32_t lines;
  bool released;
} mc_held_packet;

/* Buffers that a program still holds of an end that has been closed (held_packets.c). The object is
 * part of the transport's data for that end, which the transport keeps until all buffers are
 * released. */
typedef struct mc_detached {
  struct mc_detached *next;
  const mc_local_node *node;
  uint32_t active; /* the node's `active` when the end was closed */
  uint32_t count;
  const void *buffer[MC_SLOTS + 1]; /* packets, and a loan */
  /* called when none is held any more; with the detached lock */
  void (*end)(struct mc_detached *l);
} mc_detached;

/* An end of a channel that is open in this process. */
typedef struct mc_channel {
  uint32_t role; /* 0: none */
  bool open;     /* false: it is being opened */
  mcapi_endpoint_t peer;
  uint32_t peer_node;
  void *loan; /* buffer that the program is filling; null: none */
  size_t loan_size;
  void *transport_data; /* of a transport other than shm; the rest is shm's */
  mc_view *view;
  lvd_producer out;
  uint64_t origin; /* sending: these three as in packet_ring.h */
  uint32_t stretch, stretch_end;
  lvd_consumer in;     /* gets */
  lvd_consumer popper; /* pops; behind `in`, since packets are released one by one */
  mc_held_packet held[MC_HELD_ENTRIES];
  uint32_t first, count;       /* of `held`, a ring */
  uint32_t held_count;         /* packets that are held; at most MC_SLOTS */
  bool broadcast;              /* true: the rest applies */
  bool admitted;               /* receiving: the sender has admitted this end */
  uint32_t membership_version; /* sending: the endpoint's, to which receiver_node belongs */
  uint32_t receiver_node[MC_BROADCAST_RECEIVERS]; /* nodes to notify; MC_NODES: none */
} mc_channel;

/* An endpoint that was created by this process. The object stays allocated for the next one at its
 * index. */
struct mc_local_endpoint {
  uint32_t index;
  lvd_aptr node;                            /* mc_owner; written with the lock */
  mc_lock lock;                             /* of all that follows */
  lvd_a32 handle;                           /* 0: none */
  mc_request_list pending[MC_QUEUED_KINDS]; /* by kind */
  mc_channel channel;
  lvd_a32 timeout, memory; /* attributes; readable without the lock */
  lvd_a32 spin_us; /* microseconds a thread polls before it sleeps; readable without the lock */
  bool has_descriptor;
  int descriptor;
  mc_listener listener; /* of the descriptor */
  void *transport_data; /* of a transport other than shm; the rest is shm's */
  mc_queue *queue;
  lvd_receiver receiver;
  lvd_a32 last_level; /* at which a message arrived last */
  uint32_t list[MC_SLOTS];
  lvd_aptr tail; /* of the channel that was last opened here to receive; read without the lock */
  lvd_a32 got;   /* its receive cursor */
  uint32_t next_sending_id, sending_ids_left; /* of the block that was taken from the domain */
  uint32_t deaths;          /* tables->deaths when slots of dead processes were last reclaimed */
  uint64_t unsettled_slots; /* a bit per slot with an unknown holder */
};

/* The node that has created it, or had last. Without the lock the endpoint may be deleted, and
 * created for another node, at any time. */
static inline mc_local_node *mc_owner(const mc_local_endpoint *local) {
  return lvd_load_relaxed_ptr(&local->node);
}

/* Copies in pieces: the C library copies 4 KiB and more in a way that is ten times slower if the
 * addresses are 16 apart modulo 4096. */
static inline void mc_copy(void *to, const void *from, size_t size) {
  unsigned char *t = to;
  const unsigned char *f = from;
  size_t piece = MC_COPY_BYTES;
  /* else the compiler emits one string instruction, which starts slowly */
  __asm__("" : "+r"(piece));
  for (; size > piece; size -= piece, t += piece, f += piece) memcpy(t, f, piece);
  memcpy(t, f, size);
}

static inline uint32_t mc_index(mcapi_endpoint_t handle) { return handle % MC_ENDPOINTS; }

/* True: a call fails instead of waiting for room, or for a buffer. */
static inline bool mc_fails_when_full(const mc_local_endpoint *local) {
  return lvd_load_relaxed_u32(&local->memory) & MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT;
}

/* ---- channel.c ------------------------------------------------------------------------------- */

mcapi_status_t mc_channel_progress(mc_domain *d, mc_request *r); /* with the endpoint's lock */
/* MC_CHANNEL_OPEN: completes it if the end is connected. True: it is complete. */
bool mc_channel_poll_open(mc_request *r);
/* MC_CHANNEL_OPEN: completes it with the status `why`. False: it was complete already. */
bool mc_channel_cancel_open(mc_request *r, mcapi_status_t why);
/* Fills in a request of the open end `handle`. MCAPI_ERR_CHAN_INVALID: it is not open as `role`. */
mcapi_status_t mc_channel_prepare(mc_request *r, mc_local_node *self, enum mc_kind kind,
                                  uint32_t handle, uint32_t role, size_t size);
mcapi_uint_t mc_channel_available(uint32_t handle, uint32_t role, mcapi_status_t *mcapi_status);
mcapi_status_t mc_channel_release(const void *buffer, bool only_test);
/* True: the other end exists and has not been closed; it need not be open yet. With the endpoint's
 * lock. */
static inline bool mc_channel_peer_is_open(const mc_domain *d, const mc_local_endpoint *local) {
  const mc_endpoint *other = &d->tables->endpoint[mc_index(local->channel.peer)];
  return lvd_load_acquire_u32(&other->handle) == local->channel.peer &&
         !(lvd_load_acquire_u32(&other->state) & MC_END_CLOSED);
}
/* MCAPI_SUCCESS; else why nothing more will arrive than what is queued. With the endpoint's
 * lock. */
mcapi_status_t mc_channel_ended(const mc_domain *d, const mc_local_endpoint *local);
bool mc_is_connected(const mc_domain *d, mcapi_endpoint_t endpoint);
/* The receiver of the channel at that index has ended. True: an end is still attached to the
 * channel. */
bool mc_channel_in_use(const mc_domain *d, uint32_t index);
/* Resets an end if its other end does not exist or does not name it, unless the end is open: then
 * its owner has to close it first. With the tables lock. */
void mc_channel_reset_half_connected(mc_domain *d, mcapi_endpoint_t endpoint);
void mc_channel_reset(mc_endpoint *e); /* makes it unconnected, and not open */
/* Before a connect: resets an end if it is not open and its other end has ended. With the tables
 * lock. */
void mc_channel_clear_dead_peer(const mc_domain *d, mcapi_endpoint_t e);
/* Gives up the channel's end, whatever its state. With the tables lock. */
void mc_channel_abandon(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t handle);
mcapi_endp_attr_status_t mc_channel_status(const mc_domain *d, mcapi_endpoint_t endpoint);
/* MCAPI_SUCCESS, or why an end that has `role` (0: none) cannot be used as `wanted`. */
mcapi_status_t mc_channel_role_error(uint32_t role, uint32_t wanted);
bool mc_channel_compatible(const mc_domain *d, mcapi_endpoint_t a, mcapi_endpoint_t b);

/* ---- broadcast.c ----------------------------------------------------------------------------- */

/* True: the endpoint at index `k` receives what `sender` sends. With the tables lock; without it a
 * hint. */
bool mc_broadcast_is_receiver(const mc_domain *d, uint32_t k, mcapi_endpoint_t sender);
/* True: there is such an endpoint; with `opened`, one that has been opened. */
bool mc_broadcast_has_receiver(const mc_domain *d, mcapi_endpoint_t sender, bool opened);
/* Makes the sender of `receiver` (a handle or an index) read its set of receivers again. */
void mc_broadcast_changed(const mc_domain *d, mcapi_endpoint_t receiver);
/* Updates the tables for an end that has been closed. With the tables lock. */
void mc_broadcast_close(mc_domain *d, mcapi_endpoint_t endpoint);

/* ---- held_packets.c -------------------------------------------------------------------------- */

/* Adds `l`; `node` holds its buffers. With the endpoint's lock. */
void mc_detached_add(mc_detached *l, const mc_local_node *node);
/* False: the caller holds no such buffer of a closed end. */
bool mc_detached_release(const mc_local_node *self, const void *buffer, bool only_test);
void mc_detached_lock(void);
void mc_detached_unlock(void);
void mc_detached_reset(void); /* in the child of a fork */

/* ---- ext.c ----------------------------------------------------------------------------------- */

void mc_descriptor_close(mc_local_endpoint *local); /* with the endpoint's lock */

/* ---- endpoint.c ------------------------------------------------------------------------------ */

/* The endpoint `e`, if it is one of `node`; else null. */
static inline mc_local_endpoint *mc_local_endpoint_of(mc_local_node *node, mcapi_endpoint_t e) {
  mc_local_endpoint *local = lvd_load_acquire_ptr(&node->domain->local[mc_index(e)]);
  bool mine = local && e && lvd_load_acquire_u32(&local->handle) == e && mc_owner(local) == node;
  return mine ? local : NULL;
}
/* The same, locked, so that it is not deleted meanwhile. */
static inline mc_local_endpoint *mc_local_endpoint_lock(mc_local_node *node, mcapi_endpoint_t e) {
  mc_local_endpoint *local = mc_local_endpoint_of(node, e);
  if (!local) return NULL;
  mc_lock_acquire(&local->lock);
  if (lvd_load_relaxed_u32(&local->handle) == e) return local;
  mc_lock_release(&local->lock);
  return NULL;
}
bool mc_endpoint_exists(const mc_domain *d, mcapi_endpoint_t endpoint); /* of any process */
void mc_endpoints_delete(mc_local_node *node);
mcapi_endpoint_t mc_endpoint_find(mc_domain *d, mcapi_node_t node, mcapi_port_t port);
/* True: there was such an endpoint, and its owner deleted it; false also if its process died. */
bool mc_endpoint_was_deleted(const mc_domain *d, mcapi_endpoint_t endpoint);
/* false: too many */
bool mc_endpoint_add_reference(mc_local_node *node, mcapi_endpoint_t endpoint);
static inline uint32_t mc_attribute(const mc_domain *d, uint32_t index, uint32_t number) {
  return lvd_load_relaxed_u32(&d->tables->endpoint[index].attribute[number]);
}

/* ---- request.c ------------------------------------------------------------------------------- */

/* Makes what progress is possible. True: the request is complete. */
bool mc_request_poll(mc_request *r);
/* Queues it and waits until it is complete or the time has passed. */
mcapi_status_t mc_request_run(mc_request *r, int64_t timeout_ns);
/* Queues a copy of it, which gets a number, and does not wait. */
mcapi_status_t mc_request_begin(const mc_request *r, mcapi_request_t *out);
/* The two halves of mc_request_begin, for a call that has an effect only if it gets a request.
 * Null: none is free. A reserved entry is then started or unreserved. */
typedef struct mc_request_entry mc_request_entry;
mc_request_entry *mc_request_reserve(void);
void mc_request_unreserve(mc_request_entry *n);
/* Starts it as a completed request if `status` is MCAPI_SUCCESS; else unreserves it. */
mcapi_status_t mc_request_start_completed(mc_request_entry *n, mc_local_node *self,
                                          mcapi_status_t status, mcapi_request_t *out);
mcapi_status_t mc_request_start(mc_request_entry *n, const mc_request *r, mcapi_request_t *out);
/* Completes all requests of `kind` and higher that are queued at `local` with the status `why`.
 * With the endpoint's lock. */
void mc_requests_fail(mc_local_endpoint *local, enum mc_kind kind, mcapi_status_t why);
void mc_requests_forget_node(mc_local_node *node);
void mc_requests_reset(void); /* all of them: in the child of a fork */

#endif
