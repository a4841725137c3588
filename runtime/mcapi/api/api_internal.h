/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the standard's calls share: endpoints of this process, and requests.
 *
 * A call that blocks is a request of its own that is waited for, so there is one way through for both
 * kinds, and each waits for its turn behind those that were there before. */
#ifndef LVD_MCAPI_FACE_H
#define LVD_MCAPI_FACE_H

#include "../domain/domain.h"
#include "../domain/owner_lock.h"

#include <string.h>

enum { MC_PIECE = 2048 };

/* ---- requests ------------------------------------------------------------------------------- */

enum mc_kind {
  MC_SEND, /* messages: those up to MC_LINES stand in line at their endpoint */
  MC_RECEIVE,
  MC_PACKET_OUT,
  MC_PACKET_IN,
  MC_SCALAR_OUT,
  MC_SCALAR_IN,
  MC_LINES,
  MC_GET = MC_LINES,
  MC_OPEN,
  MC_DONE /* it is done when it begins */
};

typedef struct mc_request {
  enum mc_kind kind;
  mc_mine *node;
  mc_local *local; /* the endpoint in whose line it stands; MC_OPEN: that is opened */
  uint32_t handle; /* of that endpoint */
  struct mc_request *next;
  uint32_t active; /* its node's, when it was begun */
  lvd_a32 claimed; /* 1: one that stands in no line is being concluded */
  lvd_a32 done;    /* 1: `status` and `size` say how it went */
  mcapi_status_t status;
  size_t size;
  /* MC_SEND: to whom, what, how urgent. MC_RECEIVE: where to. */
  mcapi_endpoint_t to;
  const void *out;
  void *in;
  void **packet; /* where to say where it lies: MC_PACKET_IN; MC_PACKET_OUT, to get a loan */
  uint64_t scalar;
  uint32_t level;
  bool may_fail; /* rather than wait for room, or for a buffer */
  /* MC_GET */
  uint32_t target_node, target_port;
  mcapi_endpoint_t *endpoint;
} mc_request;

/* ---- endpoints ------------------------------------------------------------------------------ */

/* Where one stands in line: sending, or receiving. */
typedef struct mc_line {
  mc_request *first, *last;
} mc_line;

/* A packet that was received, from the oldest that is not released on; or several that lie one behind the other,
 * and are released. There is one of those, at the most, behind each that is held. */
enum { MC_HELD = 2 * MC_SLOTS };
typedef struct mc_held {
  const unsigned char *at;
  uint32_t lines;
  bool released;
} mc_held;

/* What a program still holds of an end that has been closed (held_packets.c). It lies in what the transport had for that end,
 * which keeps it until all of it is released. */
typedef struct mc_lent {
  struct mc_lent *next;
  const mc_mine *node;
  uint32_t active; /* the node's then */
  uint32_t count;
  const void *buffer[MC_SLOTS + 1]; /* packets, and a loan */
  void (*end)(struct mc_lent *l);   /* none is held any more; with the lents' lock */
} mc_lent;

/* The end of a channel that is open here. */
typedef struct mc_channel {
  uint32_t role; /* 0: none */
  bool open;     /* else it is being opened */
  mcapi_endpoint_t peer;
  uint32_t peer_node;
  void *loan; /* what is out to be filled; null: nothing */
  size_t loan_size;
  void *own; /* another transport's than shm, whose is what follows */
  mc_view *view;
  lvd_producer out;
  uint64_t lie; /* sending: as packet_ring.h has it, these three */
  uint32_t round, turn;
  lvd_consumer in;   /* gets */
  lvd_consumer back; /* pops: behind, since packets are released one by one */
  mc_held held[MC_HELD];
  uint32_t first, count;   /* of `held`, in a ring */
  uint32_t out_there;      /* packets that are held: at most MC_SLOTS */
  bool many;               /* a broadcast's; then also: */
  bool seated;             /* receiving: the sender has let us in */
  uint32_t calls;          /* sending: the audience is as it was at this count, */
  uint32_t node[MC_SEATS]; /* and to be rung for; MC_NODES: nobody */
} mc_channel;

/* An endpoint that was created here; stays in memory, for the next one at its place. */
struct mc_local {
  uint32_t index;
  mc_mine *node;
  mc_lock lock;           /* of all that follows */
  lvd_a32 handle;         /* 0: there is none */
  mc_line line[MC_LINES]; /* by kind */
  mc_channel channel;
  lvd_a32 timeout, memory; /* its attributes; these may be read without the lock */
  lvd_a32 spin_us;         /* before a thread sleeps; this, too */
  bool has_descriptor;
  int descriptor;
  mc_listener listener; /* its */
  void *own;            /* another transport's than shm, whose is what follows */
  mc_queue *queue;
  lvd_receiver receiver;
  lvd_a32 level; /* at which a message came last */
  uint32_t list[MC_SLOTS];
  lvd_aptr tail; /* of the channel that was opened here last to receive, and how far we have got */
  lvd_a32 got;
  uint32_t sending, sendings; /* the next number for a sending, and how many more are ours */
  uint32_t deaths;            /* of the domain, when we last looked after slots of the dead */
  uint64_t unsure;            /* slots, a bit each, of which it is not known whose they are */
};

/* In pieces: the C library copies 4 KiB and more in a way that is ten times slower where the addresses
 * are 16 apart modulo 4096. */
static inline void mc_copy(void *to, const void *from, size_t size) {
  unsigned char *t = to;
  const unsigned char *f = from;
  size_t piece = MC_PIECE;
  __asm__("" : "+r"(piece)); /* or the compiler copies with one instruction, which begins slowly */
  for (; size > piece; size -= piece, t += piece, f += piece) memcpy(t, f, piece);
  memcpy(t, f, size);
}

static inline uint32_t mc_index(mcapi_endpoint_t handle) { return handle % MC_ENDPOINTS; }

/* It says so rather than wait for room, or for a buffer. */
static inline bool mc_may_fail(const mc_local *local) {
  return lvd_load_relaxed_u32(&local->memory) & MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT;
}

/* ---- channel.c ------------------------------------------------------------------------------ */

mcapi_status_t mc_channel_go_on(mc_domain *d, mc_request *r); /* with the endpoint's lock in hand */
bool mc_channel_opened(mc_request *r); /* MC_OPEN: it is done, and says how */
/* MC_OPEN: and will not be. False: it was done already. */
bool mc_channel_not_opened(mc_request *r, mcapi_status_t why);
/* Fills in a request of the open end `handle`. MCAPI_ERR_CHAN_INVALID: it is not open as `role`. */
mcapi_status_t mc_channel_prepare(mc_request *r, mc_mine *self, enum mc_kind kind, uint32_t handle,
                                  uint32_t role, size_t size);
mcapi_uint_t mc_channel_available(uint32_t handle, uint32_t role, mcapi_status_t *mcapi_status);
mcapi_status_t mc_channel_release(const void *buffer, bool only_test);
/* The other end is there and has not been closed; it may not have been opened yet. With the lock. */
static inline bool mc_channel_goes_on(const mc_domain *d, const mc_local *local) {
  const mc_endpoint *other = &d->tables->endpoint[mc_index(local->channel.peer)];
  return lvd_load_acquire_u32(&other->handle) == local->channel.peer &&
         !(lvd_load_acquire_u32(&other->state) & MC_CLOSED);
}
/* MCAPI_SUCCESS; else why nothing comes any more but what is there. With the lock. */
mcapi_status_t mc_channel_ended(const mc_domain *d, const mc_local *local);
bool mc_is_connected(const mc_domain *d, mcapi_endpoint_t endpoint);
/* Is somebody still attached to the channel at that place, whose receiver is gone? */
bool mc_channel_in_use(const mc_domain *d, uint32_t index);
/* Behind the gate: what is left of a connection whose other end is no more, or was never made, goes away,
 * unless its owner has it open and has to close it first. */
void mc_channel_settle(mc_domain *d, mcapi_endpoint_t endpoint);
void mc_channel_set_free(mc_endpoint *e); /* it is connected to nobody */
/* Behind the gate, before it is connected: one that is not open is no more connected to an end that is gone. */
void mc_channel_forget_gone(const mc_domain *d, mcapi_endpoint_t e);
/* Behind the gate: this end is given up, whatever its state. */
void mc_channel_drop(mc_domain *d, mc_local *local, mcapi_endpoint_t handle);
mcapi_endp_attr_status_t mc_channel_status(const mc_domain *d, mcapi_endpoint_t endpoint);
/* MCAPI_SUCCESS, or why an end that has `role` (0: none) cannot be `wanted`. */
mcapi_status_t mc_channel_misfit(uint32_t role, uint32_t wanted);
bool mc_channel_compatible(const mc_domain *d, mcapi_endpoint_t a, mcapi_endpoint_t b);

/* ---- broadcast.c ---------------------------------------------------------------------------- */

/* Behind the gate, or for a guess: is `k` a place whose endpoint receives what `sender` sends? */
bool mc_broadcast_hears(const mc_domain *d, uint32_t k, mcapi_endpoint_t sender);
/* Is there such a one? `opened`: that has been opened. */
bool mc_broadcast_heard(const mc_domain *d, mcapi_endpoint_t sender, bool opened);
/* Who sends to `receiver` (its handle, or its place) is to look at its audience. */
void mc_broadcast_call(const mc_domain *d, mcapi_endpoint_t receiver);
/* Behind the gate: the table's side of an end that has been closed. */
void mc_broadcast_close(mc_domain *d, mcapi_endpoint_t endpoint);

/* ---- held_packets.c --------------------------------------------------------------------------------- */

/* `l` says what is held, and `node` holds it. With the endpoint's lock. */
void mc_lent_keep(mc_lent *l, const mc_mine *node);
/* False: the caller does not hold it so. */
bool mc_lent_release(const mc_mine *self, const void *buffer, bool only_test);
void mc_lents_lock(void);
void mc_lents_unlock(void);
void mc_lents_reset(void); /* in a child that has been forked */

/* ---- ext.c ---------------------------------------------------------------------------------- */

void mc_descriptor_close(mc_local *local); /* with the lock */

/* ---- endpoint.c ----------------------------------------------------------------------------- */

/* The caller's own endpoint; null: it is not that. */
static inline mc_local *mc_local_of(mc_mine *node, mcapi_endpoint_t e) {
  mc_local *local = lvd_load_acquire_ptr(&node->domain->local[mc_index(e)]);
  bool mine = local && e && lvd_load_acquire_u32(&local->handle) == e && local->node == node;
  return mine ? local : NULL;
}
/* The same with its lock, so that it is not deleted meanwhile. */
static inline mc_local *mc_local_enter(mc_mine *node, mcapi_endpoint_t e) {
  mc_local *local = mc_local_of(node, e);
  if (!local) return NULL;
  mc_lock_take(&local->lock);
  if (lvd_load_relaxed_u32(&local->handle) == e) return local;
  mc_lock_drop(&local->lock);
  return NULL;
}
bool mc_endpoint_is(const mc_domain *d, mcapi_endpoint_t endpoint); /* anybody's, now */
void mc_endpoints_delete(mc_mine *node);
mcapi_endpoint_t mc_endpoint_find(mc_domain *d, mcapi_node_t node, mcapi_port_t port);
/* Was there such an endpoint, which its owner has deleted, and did not die with? */
bool mc_endpoint_was(const mc_domain *d, mcapi_endpoint_t endpoint);
bool mc_endpoint_got(mc_mine *node, mcapi_endpoint_t endpoint); /* false: too often */
static inline uint32_t mc_attribute(const mc_domain *d, uint32_t index, uint32_t number) {
  return lvd_load_relaxed_u32(&d->tables->endpoint[index].attribute[number]);
}

/* ---- request.c ------------------------------------------------------------------------------ */

/* Goes on with it as far as it goes now. True: it is done. */
bool mc_request_try(mc_request *r);
/* Puts it in line, tries, and waits until it is done or the time has passed. */
mcapi_status_t mc_request_run(mc_request *r, int64_t timeout_ns);
/* The same without waiting: the request is copied and gets a number. */
mcapi_status_t mc_request_begin(const mc_request *r, mcapi_request_t *out);
/* The two halves of it, for what is to be done only if there is a request for it: null, there is none left;
 * one that is reserved is started, or returned. */
typedef struct mc_numbered mc_numbered;
mc_numbered *mc_request_reserve(void);
void mc_request_return(mc_numbered *n);
/* Started as one that is done already, if `status` is MCAPI_SUCCESS; else returned. */
mcapi_status_t mc_request_conclude(mc_numbered *n, mc_mine *self, mcapi_status_t status,
                                   mcapi_request_t *out);
mcapi_status_t mc_request_start(mc_numbered *n, const mc_request *r, mcapi_request_t *out);
/* Takes all of `kind` and behind out of line that wait at `local`, with its lock in hand. */
void mc_requests_drop(mc_local *local, enum mc_kind kind, mcapi_status_t why);
void mc_requests_forget(mc_mine *node);
void mc_requests_reset(void); /* all of them: in a child that has been forked */

#endif
