/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Domain: the shared-memory file of one MCAPI domain, and what each member process keeps privately.
 *
 * The file has a fixed layout: process, node and endpoint tables, then one message queue and one
 * channel per endpoint. Every record is found by its index. No offset is ever read from shared
 * memory, and an index that was read there is checked before use. The file is sparse: unused parts
 * take no memory.
 *
 * Guarantees
 *   D1  Tables are changed only under the tables lock, a system file lock that ends with its
 *       holder.
 *   D2  A record is complete once its key word (the handle, stored last) says that it exists. A
 *       record that a process left incomplete when it died does not exist.
 *   D3  A process is alive while it holds its file lock. The process that finds the lock free
 *       removes the dead process's records, then notifies every node.
 *   D4  A waiter sets its node's waiter flag before it sleeps. It is woken by the next
 *       notification, or by D3 if the process that should have notified it is dead.
 *
 * Pairs of orders
 *   publish: store_release handle                -> find: load_acquire                   D2
 *   reap: history, store_release handle          -> was deleted: load_acquire handle, history  D3
 *   reap: store_release serial                   -> is_alive: load_acquire, its records  D3
 *   reuse: handle = 0, store_release port, node, id -> find: load_acquire those, handle again  D2
 *   notify: the change, [light], waiter flags    <> arm: waiter flag, [heavy], poll       D4
 *   notify: exchange thread_waiters, add sequence -> sleep: on the sequence read before arm  D4
 *
 * [light] is a compiler barrier and [heavy] a membarrier on all cores that run a process of the
 * domain. If a member has no such membarrier (`use_fences`), both are seq_cst fences. (A process
 * that joins without it sets `use_fences` first. A notification that began without a fence before
 * that is complete when the new member first sleeps: everything that delays a store for longer,
 * such as a thread switch, is a fence.)
 *
 * Everything else in the tables is ordered by the tables lock.
 *
 * Lock order within a process: list of domains, then a domain's tables lock, then an endpoint's
 * lock, then the domain's `lock` or the request table's lock. */
#ifndef LVD_MCAPI_DOMAIN_H
#define LVD_MCAPI_DOMAIN_H

#define LVD_SLOT_STRIDE 128 /* bytes of a message header, with its slot: mc_message */
#define LVD_INBOX_ALIGN LVD_CACHE_LINE
#include <levada/channel.h>
#include <levada/inbox.h>
#include <levada/wait.h>
#include <mcapi.h>

#include "../../platform/domain.h"
#include "../../platform/platform.h"
#include "../../platform/process.h"
#include "call_guard.h"

/* Table sizes; the model checker defines smaller ones. */
#ifndef MC_PROCESSES
#define MC_PROCESSES 128
#define MC_NODES     MCAPI_MAX_NODES          /* a multiple of 32 */
#define MC_ENDPOINTS MCAPI_MAX_ENDPOINTS      /* a power of two: the lower bits of a handle */
#define MC_SLOTS     MCAPI_MAX_QUEUE_ELEMENTS /* messages that an endpoint can hold */
#endif

enum {
  MC_PAGE_BYTES = 4096,
  /* Distance between two message slots: the largest message, plus a page, so that it is no multiple
   * of 4096 away from where users' large buffers begin (16 bytes after a page): such copies are
   * slow. */
  MC_SLOT_BYTES = MCAPI_MAX_MESSAGE_SIZE + MC_PAGE_BYTES,
  MC_PAYLOAD_OFFSET = 1024,               /* bytes from the start of a slot to its payload */
  MC_INLINE_BYTES = LVD_SLOT_STRIDE - 32, /* messages up to this size are stored in their header */
  /* Mappings begin at multiples of this, the largest page size of any processor. */
  MC_MAP_GRANULE = 65536,
  MC_RING_INITIAL_BYTES = 512 * 1024, /* of a channel's ring (packet_ring.h) */
  MC_RING_MAX_BYTES = 2048 * 1024,    /* of an enlarged one */
  MC_CHANNEL_SCALARS = 1024,          /* scalars that a channel can hold */
  MC_BROADCAST_RECEIVERS = 16         /* receivers of one broadcast */
};
#define MC_MAGIC          0x4c564d43u /* "LVMC" */
#define MC_LAYOUT_VERSION (LVD_ABI_VERSION << 16 | 12u)

/* ---- shared memory --------------------------------------------------------------------------- */

/* An eventcount: what a node's threads and fibers sleep on, in shared memory. */
typedef struct mc_eventcount {
  lvd_a32 sequence;       /* counts notifications that found a waiter; a futex */
  lvd_a32 thread_waiters; /* 1: a thread sleeps, or is about to */
  lvd_a32 fiber_waiters;  /* 1: a fiber does */
} mc_eventcount;

/* A bit per node. */
typedef struct mc_node_set {
  lvd_a32 word[MC_NODES / 32];
} mc_node_set;

typedef struct mc_process {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 serial; /* 0: free; no value is used twice */
  lvd_a32 pid;
} mc_process;

typedef struct mc_node {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 owner; /* 1 + process index; 0: free */
  lvd_a32 id;
  LVD_ALIGNED(LVD_CACHE_LINE) mc_eventcount eventcount;
} mc_node;

typedef struct mc_endpoint {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 handle; /* 0: free */
  lvd_a32 owner;                              /* 1 + process index */
  lvd_a32 node, port;                         /* the node's index in its table */
  lvd_a64 history; /* of the handles at this index: mc_generation, mc_died_with_process */
  lvd_a32 get_count, get_domain, get_node;
  lvd_a32 role;               /* MC_ROLE_...: of its channel, or as which it has been opened */
  lvd_a32 peer;               /* handle of the other end; 0: not connected */
  lvd_a32 state;              /* MC_END_... */
  lvd_a32 last_sender;        /* handle that was last connected to send into the channel here */
  lvd_a32 broadcast;          /* 1: an end of a broadcast (broadcast.c) */
  lvd_a32 receiver_index;     /* of a broadcast's receiver: its consumer in the channel */
  lvd_a32 membership_version; /* of a broadcast's sender: counts changes of its receivers */
  lvd_a32 attribute[MCAPI_ENDP_ATTR_END];
  /* Statistics of all that it has received, of any kind. Written by the owner, read by
   * observers. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a64 received;
  lvd_a64 received_bytes;
} mc_endpoint;

typedef struct mc_tables {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 magic; /* stored last */
  uint32_t layout_version, cache_line_bytes, processes, nodes, endpoints, slots;
  uint32_t transport; /* its number */
  uint64_t size;      /* of the file, in bytes */
  lvd_a32 next_serial;
  lvd_a32 joins;                              /* counts processes that began to join */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 deaths; /* counts processes that have left or died */
  lvd_a32 use_fences; /* 1: a member has no global membarrier, so each notification makes a fence */
  LVD_ALIGNED(LVD_CACHE_LINE) mc_node_set endpoint_waiters; /* wait for an endpoint to be created */
  mc_node_set room_waiters; /* wait for room in a queue that is not in shared memory */
  mc_process process[MC_PROCESSES];
  mc_node node[MC_NODES];
  mc_endpoint endpoint[MC_ENDPOINTS];
} mc_tables;

/* An endpoint's `history`: the generation of its handle, which counts up when the index is reused;
 * above it one bit for that handle and each of those before it: 1 if it ended because its process
 * died. It is one word, so a process that dies cannot leave half of it. */
enum { MC_GENERATION_BITS = 22, MC_DEATH_BITS = 64 - MC_GENERATION_BITS };
static inline uint32_t mc_generation(uint64_t history) {
  return (uint32_t)history & ((1u << MC_GENERATION_BITS) - 1);
}
static inline bool mc_died_with_process(uint64_t history, uint32_t age) {
  return history >> (MC_GENERATION_BITS + age) & 1;
}

/* All of a short message, and the part of a long one that is read first: two cache lines, which
 * most processors transfer together. */
typedef struct mc_message {
  LVD_ALIGNED(LVD_SLOT_STRIDE) lvd_slot slot;
  lvd_a64 sending_id;     /* the sender's number for this sending; 0: the slot was released */
  lvd_a32 to, from, size; /* handles of endpoints, bytes */
  lvd_a32 at;             /* of a long one: offset of its payload in the slot, in cache lines */
  unsigned char inline_data[MC_INLINE_BYTES];
} mc_message;

/* Equals the message's sending_id once it has been posted. So for a slot that is in no list, this
 * tells whether its sender has finished. On a line of its own, since the receiver reads the message
 * by then. */
typedef struct mc_posted {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a64 sending_id;
} mc_posted;

typedef struct mc_queue {
  lvd_inbox inbox;
  LVD_ALIGNED(LVD_CACHE_LINE) mc_node_set room_waiters; /* wait for a free slot */
  mc_message message[MC_SLOTS];
  mc_posted posted[MC_SLOTS];
} mc_queue;

/* With the endpoint's lock held. */
static inline void mc_count_received(mc_tables *t, uint32_t index, size_t bytes) {
  mc_endpoint *e = &t->endpoint[index];
  lvd_store_relaxed_u64(&e->received, lvd_load_relaxed_u64(&e->received) + 1);
  lvd_store_relaxed_u64(&e->received_bytes, lvd_load_relaxed_u64(&e->received_bytes) + bytes);
}

enum { MC_PACKET_LINE_BYTES = 64 }; /* a packet takes a multiple of this */
/* An end's role: what its channel carries, and MC_ROLE_SENDER for the end that sends. */
enum { MC_ROLE_PACKETS = 1, MC_ROLE_SCALARS = 2, MC_ROLE_SENDER = 4 };
/* An end's state; 0: not opened since it was connected, or not connected. */
enum {
  MC_END_OPENED = 1,
  MC_END_CLOSED = 2,
  MC_END_PEER_CLOSED = 4, /* the other end has been closed */
  MC_END_PEER_DIED = 8    /* the other end's process died before this receiving end was opened */
};

static inline size_t mc_round_to_pages(size_t size) {
  return (size + MC_PAGE_BYTES - 1) / MC_PAGE_BYTES * MC_PAGE_BYTES;
}
static inline size_t mc_round_to_granules(size_t size) {
  return (size + MC_MAP_GRANULE - 1) / MC_MAP_GRANULE * MC_MAP_GRANULE;
}
static inline size_t mc_queue_size(void) {
  return mc_round_to_granules(mc_round_to_pages(sizeof(mc_queue)) +
                              (size_t)MC_SLOTS * MC_SLOT_BYTES);
}
/* Offset in the file. A queue is followed by the channel in which its endpoint receives. */
static inline size_t mc_queue_at(uint32_t index) {
  return mc_round_to_granules(sizeof(mc_tables)) +
         index * (mc_queue_size() + MC_MAP_GRANULE + MC_RING_MAX_BYTES);
}
static inline size_t mc_channel_at(uint32_t index) { return mc_queue_at(index) + mc_queue_size(); }
static inline size_t mc_file_size(void) { return mc_queue_at(MC_ENDPOINTS); }
static inline lvd_slot *mc_slots(mc_queue *q) { return &q->message[0].slot; }
static inline unsigned char *mc_payload(mc_queue *q, uint32_t slot, uint32_t at) {
  return (unsigned char *)q + mc_round_to_pages(sizeof(mc_queue)) + (size_t)slot * MC_SLOT_BYTES +
         MC_PAYLOAD_OFFSET + (size_t)at * LVD_CACHE_LINE;
}

/* ---- private to a process -------------------------------------------------------------------- */

typedef struct mc_domain mc_domain;
typedef struct mc_local_endpoint mc_local_endpoint;
typedef struct mc_view mc_view;           /* shm_view.c */
typedef struct mc_transport mc_transport; /* transport.h */

/* A waiting fiber, or a descriptor, in the domain's list of listeners; the notifier thread wakes
 * it. */
typedef struct mc_listener {
  lvd_wait_source watch; /* first */
  struct mc_local_node *node;
  bool (*is_ready)(void *argument);
  void (*arm)(void *argument);
  void *argument;
  bool listed;
  struct mc_listener *next, *previous;
} mc_listener;

/* A node that this process has initialized. Kept when it is finalized, and reused. */
typedef struct mc_local_node {
  lvd_a32 active;     /* counts up at initialize and at finalize; odd: initialized */
  lvd_a32 long_calls; /* calls that are in progress (call_guard.h) */
  lvd_a32 ending;     /* 1: being finalized */
  mc_domain *domain;
  uint32_t index; /* in the domain's table */
  mcapi_node_t id;
  lvd_aptr fiber; /* that initialized it; null: a thread did */
  mcapi_port_t next_port;
  lvd_a32 last_released; /* endpoint index at which a packet was released last */
  lvd_aptr next;
} mc_local_node;

/* The queue and channel of any endpoint, as mapped by this process. */
typedef struct mc_mapped_endpoint {
  mc_queue *queue;
  lvd_a32 next_slot;            /* at which the search for a free slot begins */
  lvd_a32 laps;                 /* counts passes over all slots */
  lvd_aptr channel;             /* an lvd_channel; null: not mapped yet */
  uint8_t slot_pages[MC_SLOTS]; /* pages of each slot that this process has committed */
} mc_mapped_endpoint;

struct mc_domain {
  mcapi_domain_t number;
  int64_t group;       /* ID of the group that shares it; negative: the user's own */
  uint32_t node_count; /* nodes of this process */
  int directory, file, fifo;
  mc_tables *tables;
  const mc_transport *transport;
  void *transport_data;
  uint32_t process, serial;  /* this process's index and serial */
  lvd_os_mutex tables_mutex; /* of the tables lock, between threads of this process */
  lvd_os_mutex lock;         /* of listeners, views, `others`, and of mapping endpoints */
  lvd_os_thread *notifier;
  lvd_a32 stop;
  lvd_a32 notifier_priority; /* real-time: that of the workers of fibers that it wakes */
  uint32_t joins;            /* tables->joins, as the notifier has last read it */
  lvd_a64 next_sending_id;
  mc_listener *listeners;
  mc_view *views;               /* with the lock */
  lvd_aptr peer[MC_ENDPOINTS];  /* mc_mapped_endpoint; stays mapped */
  lvd_aptr local[MC_ENDPOINTS]; /* mc_local_endpoint of the endpoints that were created here */
  struct {
    uint32_t serial;
    int exit_fd, fifo;
  } others[MC_PROCESSES]; /* descriptors of the other members; of the notifier */
  mc_domain *next;
};

/* ---- domain.c -------------------------------------------------------------------------------- */

/* `transport`: 1 + its number, or one of the first two constants; `group`: an ID, or one of the
 * others. LVD_E_ABI: the domain is in use by another version. LVD_E_LIMIT: too many processes.
 * LVD_E_STATE: it has another transport than requested, or one that a group cannot share was
 * requested for a group. LVD_E_NOT_FOUND: no such transport, or group. */
enum { MC_TRANSPORT_FROM_ENVIRONMENT = 0, MC_ANY_TRANSPORT = 1000 };
enum { MC_NO_GROUP = -1, MC_GROUP_FROM_ENVIRONMENT = -2 };
lvd_status mc_domain_join(mcapi_domain_t number, uint32_t transport, int64_t group,
                          mc_domain **out);
/* Opens the directory of the domains of `group`. *group is then an ID or MC_NO_GROUP. */
lvd_status mc_domain_directory_open(int64_t *group, int *directory);
uint32_t mc_transport_number(const mc_domain *d);
void mc_domain_leave(mc_domain *d);
void mc_tables_lock(mc_domain *d);
void mc_tables_unlock(mc_domain *d);
/* Removes the records of process `i` if it is dead. With the tables lock. True: it does not exist
 * any more. */
bool mc_reap_process(mc_domain *d, uint32_t i);
bool mc_is_alive(const mc_domain *d, uint32_t serial);
void mc_notify_process(mc_domain *d, uint32_t process); /* wakes its notifier thread */
/* Of a domain that has not been joined: its file's name, whether the tables have this version's
 * layout, and whether a process of the table is alive. */
void mc_file_name(char *out, size_t size, mcapi_domain_t number);
bool mc_tables_fit(const mc_tables *t);
bool mc_file_process_is_alive(int file, uint32_t process);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* Wakes the sleeping threads and fibers of a node. */
void mc_notify_sleepers(mc_domain *d, uint32_t node);
static inline void mc_notify(mc_domain *d, uint32_t node) {
  lvd_membarrier_light(lvd_load_relaxed_u32(&d->tables->use_fences));
  if (node >= MC_NODES) return;
  const mc_eventcount *count = &d->tables->node[node].eventcount;
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&count->thread_waiters)) ||
      LVD_UNLIKELY(lvd_load_relaxed_u32(&count->fiber_waiters)))
    mc_notify_sleepers(d, node);
}
/* Prefetches a cache line that is about to be written. */
static inline void mc_prefetch_write(const void *at) {
  lvd_prefetch_write((const char *)at - LVD_PREFETCH_DISTANCE);
}
static inline void mc_prefetch_write_range(const void *at, size_t size) {
  for (size_t i = 0; i < size; i += LVD_CACHE_LINE) mc_prefetch_write((const char *)at + i);
}
/* Notifies the nodes in `set` and empties it; null: all nodes, whether or not they have a
 * waiter. */
void mc_notify_all(mc_domain *d, mc_node_set *set);
static inline void mc_notify_set(mc_domain *d, mc_node_set *set) {
  uint32_t any = 0;
  lvd_membarrier_light(lvd_load_relaxed_u32(&d->tables->use_fences));
  for (uint32_t i = 0; i < MC_NODES / 32; i++) any |= lvd_load_relaxed_u32(&set->word[i]);
  if (LVD_UNLIKELY(any)) mc_notify_all(d, set);
}
void mc_node_set_add(mc_node_set *set, uint32_t node);
/* Waits until is_ready(argument). `arm` (may be null) adds the node to the sets that will be
 * notified. LVD_OK, LVD_E_TIMEOUT, LVD_E_CANCELLED and whatever else ends the wait of a fiber. */
enum { MC_SPIN_US = 50 }; /* microseconds a thread polls before it sleeps, by default */
lvd_status mc_wait(mc_local_node *node, bool (*is_ready)(void *argument),
                   void (*arm)(void *argument), void *argument, uint32_t spin_us,
                   int64_t timeout_ns);
/* Arms `l` for one notification, or disarms it. The wait_point of `l` has a waiter of its own. */
void mc_listener_arm(mc_listener *l, bool listens);
void mc_wake_fibers(mc_domain *d);

/* ---- shm_queue.c ----------------------------------------------------------------------------- */

/* The endpoint at `index`, mapped; null: no memory. */
mc_mapped_endpoint *mc_mapped_endpoint_at(mc_domain *d, uint32_t index);

/* ---- node.c ---------------------------------------------------------------------------------- */

/* Of a thread: the node that it has initialized itself. Fibers that run on it have their own. */
typedef struct mc_thread_state {
  mc_local_node *node;    /* stays set after that node has ended */
  uint32_t active;        /* the node's `active` after it was initialized */
  bool never_runs_fibers; /* no fiber ever runs on this thread, and `call_slot` is set */
  bool fenced;            /* [light] must be a real fence */
  mc_call_slot *call_slot;
} mc_thread_state;
extern _Thread_local mc_thread_state mc_thread __attribute__((tls_model("initial-exec")));

bool mc_any_node(void); /* true: this process has an initialized node */
/* The caller's node, protected from its end during a call that may wait; null: it has none. */
mc_local_node *mc_long_call_begin(void);
void mc_long_call_end(mc_local_node *const *n);
#define MC_LONG_CALL(self)                                                                         \
  mc_local_node *self __attribute__((cleanup(mc_long_call_end))) = mc_long_call_begin()

/* The same for a call that never waits. */
typedef struct mc_short_call {
  mc_local_node *node;
  mc_call_slot *call_slot;
} mc_short_call;
mc_short_call mc_short_call_begin_slow(void);

static inline void mc_short_call_end(mc_short_call *v) {
  if (LVD_LIKELY(v->call_slot != NULL)) mc_short_call_leave(v->call_slot);
}
static inline mc_short_call mc_short_call_begin(void) {
  mc_local_node *own = mc_thread.node;
  if (LVD_UNLIKELY(!mc_thread.never_runs_fibers)) return mc_short_call_begin_slow();
  mc_short_call v = {.node = own, .call_slot = mc_thread.call_slot};
  if (!mc_short_call_enter(v.call_slot, own, &own->active, mc_thread.active, mc_thread.fenced))
    v.node = NULL;
  return v;
}
#define MC_SHORT_CALL(v)                                                                           \
  mc_short_call v __attribute__((cleanup(mc_short_call_end))) = mc_short_call_begin()

static inline void mc_set_status(mcapi_status_t *to, mcapi_status_t status) {
  if (to) *to = status;
}
static inline int64_t mc_timeout_ns(mcapi_timeout_t ms) {
  return ms == MCAPI_TIMEOUT_INFINITE ? -1 : (int64_t)ms * 1000000;
}

#endif
