/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Domain: what the processes whose nodes talk to each other share, a file of shared memory, and what
 * each of them keeps to itself.
 *
 * Everything has its place by number: process, node and endpoint tables, then a queue for each
 * endpoint. So no offset is ever read from shared memory, and a number only after a check. The file
 * is sparse: what is not used takes no memory.
 *
 * Guarantees
 *   D1  Tables change behind the gate only: a lock of the system that ends with its holder.
 *   D2  A record is whole when its first word says that it is there (its handle, stored last), and
 *       one that a dead process left half made is not there.
 *   D3  A process is alive while it holds its lock; whoever finds that it does not takes away what it
 *       had, then rings for everybody.
 *   D4  Who waits has armed its node's bell, and is woken by the next ring, or by D3 when the one who
 *       should have rung is dead.
 *
 * Pairs of orders
 *   publish: store_release handle                -> find: load_acquire                   D2
 *   bury: past, store_release handle             -> was: load_acquire handle, past       D3
 *   bury: store_release serial                   -> is_alive: load_acquire, what it left  D3
 *   use again: handle = 0, store_release port, node, id -> find: load_acquire those, handle again  D2
 *   ring: what came, [light], threads and fibers <> arm: threads or fibers, [heavy], look  D4
 *   ring: exchange threads, add rung             -> sleep: on what rung was before arm   D4
 *
 * [light] is a compiler barrier and [heavy] a membarrier on all cores that run one of the domain's
 * processes; where one of them has none (`fences`), both are seq_cst fences. (Whoever joins without it
 * says so first: what was under way without a fence then is over when it sleeps, since all that
 * delays a store for longer, such as a switch of threads, is a fence.)
 *
 * Whatever else is in the tables is ordered by the gate.
 *
 * Locks of this process: domains, then a domain's gate, then an endpoint's, then the domain's own, or
 * the requests'. */
#ifndef LVD_MCAPI_DOMAIN_H
#define LVD_MCAPI_DOMAIN_H

#define LVD_SLOT_STRIDE 128 /* a message's head, with its slot: mc_message */
#define LVD_INBOX_ALIGN LVD_LINE
#include <levada/channel.h>
#include <levada/inbox.h>
#include <levada/wait.h>
#include <mcapi.h>

#include "../../platform/domain.h"
#include "../../platform/platform.h"
#include "../../platform/process.h"
#include "call_guard.h"

/* How many there can be; the model checker has fewer. */
#ifndef MC_PROCESSES
#define MC_PROCESSES 128
#define MC_NODES     MCAPI_MAX_NODES          /* a multiple of 32 */
#define MC_ENDPOINTS MCAPI_MAX_ENDPOINTS      /* a power of two: the lower bits of a handle */
#define MC_SLOTS     MCAPI_MAX_QUEUE_ELEMENTS /* messages that an endpoint can hold */
#endif

enum {
  MC_PAGE = 4096,
  /* From one message to the next: the most there can be, and no multiple of 4096 away from where
     users' large buffers begin (16 after a page): such copies are slow. */
  MC_STRIDE = MCAPI_MAX_MESSAGE_SIZE + MC_PAGE,
  MC_INDENT = 1024,
  MC_SMALL = LVD_SLOT_STRIDE - 32, /* a message as short as this lies with its head */
  MC_UNIT = 65536, /* what is mapped begins at multiples: as large as pages are anywhere */
  MC_RING_AT_FIRST = 512 * 1024, /* bytes of a channel's ring, as packet_ring.h has it, */
  MC_RING = 2048 * 1024,         /* and of a large one */
  MC_SCALARS = 1024,             /* scalars that a channel can hold */
  MC_SEATS = 16                  /* receivers of one broadcast */
};
#define MC_MAGIC  0x4c564d43u /* "LVMC" */
#define MC_LAYOUT (LVD_LAYOUT << 16 | 12u)

/* ---- shared --------------------------------------------------------------------------------- */

/* Rung when something has happened that somebody of a node may wait for. */
typedef struct mc_bell {
  lvd_a32 rung;    /* how often */
  lvd_a32 threads; /* 1: a thread sleeps, or is about to */
  lvd_a32 fibers;  /* 1: a fiber does */
} mc_bell;

/* Nodes that wait for something that is not theirs. */
typedef struct mc_set {
  lvd_a32 word[MC_NODES / 32];
} mc_set;

typedef struct mc_process {
  LVD_ALIGNED(LVD_LINE) lvd_a32 serial; /* 0: nobody; never used twice */
  lvd_a32 id;
} mc_process;

typedef struct mc_node {
  LVD_ALIGNED(LVD_LINE) lvd_a32 owner; /* 1 + the process; 0: nobody */
  lvd_a32 id;
  LVD_ALIGNED(LVD_LINE) mc_bell bell;
} mc_node;

typedef struct mc_endpoint {
  LVD_ALIGNED(LVD_LINE) lvd_a32 handle; /* 0: there is none */
  lvd_a32 owner;                        /* 1 + the process */
  lvd_a32 node, port;                   /* the node's place in its table */
  lvd_a64 past;                         /* of the handles here: mc_generation, mc_died */
  lvd_a32 get_count, get_domain, get_node;
  lvd_a32 role; /* MC_PACKETS or MC_NUMBERS, and MC_SENDS: of its channel, or as which it is open */
  lvd_a32 peer; /* handle of the other end; 0: not connected */
  lvd_a32 state; /* MC_OPENED, MC_CLOSED, MC_LEFT, MC_LOST */
  lvd_a32 user;  /* handle of the last that was connected to send into the channel here */
  lvd_a32 many;  /* 1: an end of a broadcast (broadcast.c) */
  lvd_a32 seat;  /* of one that receives it */
  lvd_a32 calls; /* of one that sends it: counts who comes and goes */
  lvd_a32 attribute[MCAPI_ENDP_ATTR_END];
  /* What it has received, of any kind; its owner's, for whoever looks on. */
  LVD_ALIGNED(LVD_LINE) lvd_a64 received;
  lvd_a64 received_bytes;
} mc_endpoint;

typedef struct mc_tables {
  LVD_ALIGNED(LVD_LINE) lvd_a32 magic; /* stored last */
  uint32_t layout, line, processes, nodes, endpoints, slots;
  uint32_t transport; /* its number */
  uint64_t size;
  lvd_a32 next_serial;
  lvd_a32 joins;                        /* counts those who began to join */
  LVD_ALIGNED(LVD_LINE) lvd_a32 deaths; /* counts */
  lvd_a32 fences; /* 1: somebody of us has no barrier for all, so each ring makes a fence */
  LVD_ALIGNED(LVD_LINE) mc_set births; /* who waits for an endpoint to be created */
  mc_set rooms; /* who waits for room in a queue that is none of shared memory */
  mc_process process[MC_PROCESSES];
  mc_node node[MC_NODES];
  mc_endpoint endpoint[MC_ENDPOINTS];
} mc_tables;

/* An endpoint's `past`: the generation of its handle, which counts on when the place is used again; and above
 * it a bit each for that handle and those before it: 1, it went with its process. One word, so that who dies
 * leaves no half of it. */
enum { MC_GENERATION_BITS = 22, MC_REMEMBERED = 64 - MC_GENERATION_BITS };
static inline uint32_t mc_generation(uint64_t past) {
  return (uint32_t)past & ((1u << MC_GENERATION_BITS) - 1);
}
static inline bool mc_died(uint64_t past, uint32_t age) {
  return past >> (MC_GENERATION_BITS + age) & 1;
}

/* All that travels of a short message, and what is read first of a long one: two lines, which come
 * together on most machines. */
typedef struct mc_message {
  LVD_ALIGNED(LVD_SLOT_STRIDE) lvd_slot slot;
  lvd_a64 claim;                 /* the sender's number for this sending */
  lvd_a32 to, from, size;        /* handles of endpoints, bytes */
  lvd_a32 at;                    /* of a long one: where in its slot it lies, in lines */
  unsigned char small[MC_SMALL]; /* what is no longer than that */
} mc_message;

/* The same as `claim` once it is posted. So of a slot that nobody knows of any more can be said whether
 * its sender is done with it. Apart, since the receiver reads the message by then. */
typedef struct mc_posted {
  LVD_ALIGNED(LVD_LINE) lvd_a64 claim;
} mc_posted;

typedef struct mc_queue {
  lvd_inbox inbox;
  LVD_ALIGNED(LVD_LINE) mc_set room; /* who waits for a slot */
  mc_message message[MC_SLOTS];
  mc_posted posted[MC_SLOTS];
} mc_queue;

/* With its endpoint's lock in hand. */
static inline void mc_count(mc_tables *t, uint32_t index, size_t bytes) {
  mc_endpoint *e = &t->endpoint[index];
  lvd_store_relaxed_u64(&e->received, lvd_load_relaxed_u64(&e->received) + 1);
  lvd_store_relaxed_u64(&e->received_bytes, lvd_load_relaxed_u64(&e->received_bytes) + bytes);
}

/* Of a channel between two endpoints. */
enum { MC_PACKET_LINE = 64 }; /* a packet takes so many bytes, or a multiple */
enum { MC_PACKETS = 1, MC_NUMBERS = 2, MC_SENDS = 4 };
/* An end's state; 0: it has not been opened since it was connected, or is not connected. */
enum {
  MC_OPENED = 1,
  MC_CLOSED = 2,
  MC_LEFT = 4, /* the other end has been closed, */
  MC_LOST = 8  /* or its process has died: this one, which receives, has not been opened yet */
};

static inline size_t mc_pages(size_t size) { return (size + MC_PAGE - 1) / MC_PAGE * MC_PAGE; }
static inline size_t mc_units(size_t size) { return (size + MC_UNIT - 1) / MC_UNIT * MC_UNIT; }
static inline size_t mc_queue_size(void) {
  return mc_units(mc_pages(sizeof(mc_queue)) + (size_t)MC_SLOTS * MC_STRIDE);
}
/* Behind each queue there is a channel: of the endpoint that receives. */
static inline size_t mc_queue_at(uint32_t index) {
  return mc_units(sizeof(mc_tables)) + index * (mc_queue_size() + MC_UNIT + MC_RING);
}
static inline size_t mc_channel_at(uint32_t index) { return mc_queue_at(index) + mc_queue_size(); }
static inline size_t mc_size(void) { return mc_queue_at(MC_ENDPOINTS); }
static inline lvd_slot *mc_slots(mc_queue *q) { return &q->message[0].slot; }
static inline unsigned char *mc_payload(mc_queue *q, uint32_t slot, uint32_t at) {
  return (unsigned char *)q + mc_pages(sizeof(mc_queue)) + (size_t)slot * MC_STRIDE + MC_INDENT +
         (size_t)at * LVD_LINE;
}

/* ---- a process's own ------------------------------------------------------------------------ */

typedef struct mc_domain mc_domain;
typedef struct mc_local mc_local;
typedef struct mc_view mc_view;           /* shm_view.c */
typedef struct mc_transport mc_transport; /* transport.h */

/* Somebody who waits as a fiber, on the notifier's list. */
typedef struct mc_listener {
  lvd_watch watch; /* first */
  struct mc_mine *node;
  bool (*look)(void *what);
  void (*arm)(void *what);
  void *what;
  bool listed;
  struct mc_listener *next, *previous;
} mc_listener;

/* A node that this process has initialized. Kept when it is finalized, and used again. */
typedef struct mc_mine {
  lvd_a32 active; /* counts up at initialize and at finalize: odd, it is */
  lvd_a32 inside; /* calls that have gone the long way */
  lvd_a32 ending; /* 1: being finalized */
  mc_domain *domain;
  uint32_t index; /* in the domain's table */
  mcapi_node_t id;
  lvd_aptr fiber; /* the one that initialized it; null: a thread */
  mcapi_port_t next_port;
  lvd_a32 released; /* the place from which a packet was released last */
  lvd_aptr next;
} mc_mine;

/* The queue of an endpoint of whomever, as this process has mapped it. */
typedef struct mc_peer {
  mc_queue *queue;
  lvd_a32 rotor;           /* where we look for a free slot */
  lvd_a32 lap;             /* and how often we have been through all of them */
  lvd_aptr channel;        /* an lvd_channel; null: not mapped yet */
  uint8_t pages[MC_SLOTS]; /* of each slot that the system has given, as far as we have asked */
} mc_peer;

struct mc_domain {
  mcapi_domain_t number;
  int64_t group;  /* whose members share it; negative: it is the user's alone */
  uint32_t users; /* nodes of this process */
  int directory, file, bell;
  mc_tables *tables;
  const mc_transport *transport;
  void *own;                /* the transport's */
  uint32_t process, serial; /* ours */
  lvd_os_mutex gate;        /* threads of this process one by one */
  lvd_os_mutex lock;        /* of listeners and peers being mapped */
  lvd_os_thread *notifier;
  lvd_a32 stop;
  lvd_a32 serves; /* the notifier's priority: that of who serves the workers whose fibers it wakes */
  uint32_t joins; /* as the notifier has seen it */
  lvd_a64 sendings;
  mc_listener *listeners;
  mc_view *views;               /* with the lock */
  lvd_aptr peer[MC_ENDPOINTS];  /* mc_peer; stays mapped */
  lvd_aptr local[MC_ENDPOINTS]; /* mc_local of the endpoints that were created here */
  struct {
    uint32_t serial;
    int watch, bell;
  } other[MC_PROCESSES]; /* the notifier's, and who rings (with the lock) */
  mc_domain *next;
};

/* ---- domain.c ------------------------------------------------------------------------------- */

/* `wish`: 1 + the number of a transport, or what follows; `group`: a group's number, or what follows.
 * LVD_E_LAYOUT: in use by another version. LVD_E_LIMIT: too many processes. LVD_E_STATE: it has another
 * transport than was wished for, or a group wishes for one that it cannot share. LVD_E_UNKNOWN: there is no
 * such transport, or group. */
enum { MC_AS_SAID = 0 /* in the environment */, MC_WHATEVER = 1000 };
enum { MC_ALONE = -1, MC_GROUP_AS_SAID = -2 };
lvd_status mc_domain_join(mcapi_domain_t number, uint32_t wish, int64_t group, mc_domain **out);
/* The directory of the domains of a group, as above. */
lvd_status mc_names_open(int64_t *group, int *directory);
uint32_t mc_transport_number(const mc_domain *d);
void mc_domain_leave(mc_domain *d);
void mc_gate_enter(mc_domain *d);
void mc_gate_leave(mc_domain *d);
/* Takes away what process `i` had if it is dead. Behind the gate; true: it is not there any more. */
bool mc_bury(mc_domain *d, uint32_t i);
bool mc_is_alive(const mc_domain *d, uint32_t serial);
void mc_ring_process(mc_domain *d, uint32_t process); /* its notifier */
/* Of a domain that has not been joined: its file's name, whether we made these tables, and whether a
 * process of the table is alive. */
void mc_file_name(char *out, size_t size, mcapi_domain_t number);
bool mc_tables_fit(const mc_tables *t);
bool mc_file_alive(int file, uint32_t process);

/* ---- wait.c --------------------------------------------------------------------------------- */

/* Whoever sleeps at the bell of this node. */
void mc_ring_sleepers(mc_domain *d, uint32_t node);
static inline void mc_ring(mc_domain *d, uint32_t node) {
  lvd_barrier_light(lvd_load_relaxed_u32(&d->tables->fences));
  if (node >= MC_NODES) return;
  const mc_bell *bell = &d->tables->node[node].bell;
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&bell->threads)) ||
      LVD_UNLIKELY(lvd_load_relaxed_u32(&bell->fibers)))
    mc_ring_sleepers(d, node);
}
/* Asks for a line that is about to be written. */
static inline void mc_fetch(const void *at) { lvd_ahead_put((const char *)at - LVD_AHEAD); }
static inline void mc_fetch_all(const void *at, size_t size) {
  for (size_t i = 0; i < size; i += LVD_LINE) mc_fetch((const char *)at + i);
}
/* For those in `set`; null: for everybody, whether or not somebody seems to wait. */
void mc_ring_all(mc_domain *d, mc_set *set);
static inline void mc_ring_set(mc_domain *d, mc_set *set) {
  uint32_t any = 0;
  lvd_barrier_light(lvd_load_relaxed_u32(&d->tables->fences));
  for (uint32_t i = 0; i < MC_NODES / 32; i++) any |= lvd_load_relaxed_u32(&set->word[i]);
  if (LVD_UNLIKELY(any)) mc_ring_all(d, set);
}
void mc_set_add(mc_set *set, uint32_t node);
/* Waits until look(what); `arm` (may be null) enters the node where it will be rung for. LVD_OK,
 * LVD_E_TIME, LVD_E_CANCELLED and whatever else ends the wait of a fiber. */
enum { MC_SPIN_US = 50 }; /* unless the user has said otherwise */
lvd_status mc_wait(mc_mine *node, bool (*look)(void *what), void (*arm)(void *what), void *what,
                   uint32_t spin_us, int64_t timeout_ns);
/* `l`, whose sleeper has somebody of its own to wake, is rung for once from now on; or not any more. */
void mc_listen(mc_listener *l, bool listens);
void mc_wake_fibers(mc_domain *d);

/* ---- shm_queue.c ---------------------------------------------------------------------------- */

/* The queue at `index`, mapped; null: no memory. */
mc_peer *mc_peer_at(mc_domain *d, uint32_t index);

/* ---- node.c --------------------------------------------------------------------------------- */

/* What the thread itself has initialized, and fibers that run on it have not. */
typedef struct mc_owner {
  mc_mine *node;   /* stays when that has ended: this thread has had one */
  uint32_t active; /* the node's, as it was then */
  bool plain;      /* no fiber ever runs on this thread, and `here` is there */
  bool fenced;     /* [light] must be a real fence */
  mc_here *here;
} mc_owner;
extern _Thread_local mc_owner mc_own __attribute__((tls_model("initial-exec")));

bool mc_any_node(void); /* of this process: there is one */
/* The caller's node, for a long call; null: it has none. */
mc_mine *mc_call_begin(void);
void mc_call_end(mc_mine *const *n);
#define MC_CALL(self) mc_mine *self __attribute__((cleanup(mc_call_end))) = mc_call_begin()

/* The same for a short one, which never waits. */
typedef struct mc_visit {
  mc_mine *node;
  mc_here *here;
} mc_visit;
mc_visit mc_visit_as_guest(void);

static inline void mc_visit_end(mc_visit *v) {
  if (LVD_LIKELY(v->here != NULL)) mc_here_leave(v->here);
}
static inline mc_visit mc_visit_begin(void) {
  mc_mine *own = mc_own.node;
  if (LVD_UNLIKELY(!mc_own.plain)) return mc_visit_as_guest();
  mc_visit v = {.node = own, .here = mc_own.here};
  if (!mc_here_enter(v.here, own, &own->active, mc_own.active, mc_own.fenced)) v.node = NULL;
  return v;
}
#define MC_VISIT(v) mc_visit v __attribute__((cleanup(mc_visit_end))) = mc_visit_begin()

static inline void mc_say(mcapi_status_t *to, mcapi_status_t status) {
  if (to) *to = status;
}
static inline int64_t mc_ns(mcapi_timeout_t ms) {
  return ms == MCAPI_TIMEOUT_INFINITE ? -1 : (int64_t)ms * 1000000;
}

#endif
