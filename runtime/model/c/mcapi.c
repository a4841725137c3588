/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Three processes of an MCAPI domain for the checker, in one address space: each has a domain of
 * its own (by another number), and all have the same file. Of the operating system there is here
 * what they ask for: the file, locks that end with their holder, bells with names, and the news of
 * a death. A process has one node, with a place of its own in the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <levada/fiber.h>

#include "arena.h"
#include "mcapi/transport/mqueue/mqueue.h"
#include "platform/domain.h"
#include "src/sched/sched.h"
#include "src/stream/stream.h"

enum { PROCESSES = 3, LOCKS = 1 + PROCESSES, FIRST_FILE = 100, FIRST_WATCH = 200 };

void model_ring(uint32_t bell);
void model_sleep(uint32_t bell);

/* A process is known by 1 + its number: its file, its domain. */
typedef struct model_world {
  lvd_a32 lock[LOCKS]; /* 1 + the holder's number */
  lvd_a32 gone[PROCESSES];
  lvd_a32 told[PROCESSES]; /* of a death */
  mc_domain *domain[PROCESSES];
  mc_local_node node[PROCESSES];
  unsigned char *tables, *queue[MC_ENDPOINTS];
} model_world;

static model_world *world;
static bool fenced;

/* The calling process: each thread declares its own (model_am). */
static lvd_worker selves[PROCESSES];
static uint32_t caller(void) { return (uint32_t)((lvd_worker *)lvd_os_self() - selves); }
void model_am(uint32_t process) { lvd_os_set_self(&selves[process]); }

/* ---- the port: the file ---------------------------------------------------------------------- */

lvd_status lvd_os_directory_open(int64_t group, int *directory) {
  (void)group;
  *directory = 1;
  return LVD_OK;
}
lvd_status lvd_os_group_find(const char *name, int64_t *group) {
  (void)name, (void)group;
  return LVD_E_NOT_FOUND;
}
lvd_status lvd_os_file_open(int directory, const char *name, int *file) {
  unsigned number = 0;
  (void)directory;
  sscanf(name, "mcapi-%u", &number);
  *file = FIRST_FILE + (int)number;
  return LVD_OK;
}
bool lvd_os_file_is_removed(int file) { return (void)file, false; }
void lvd_os_directory_remove(int directory, const char *name) { (void)directory, (void)name; }
lvd_status lvd_os_file_clear(int file, size_t size) { return (void)file, (void)size, LVD_OK; }
lvd_status lvd_os_shared_size(int file, size_t *size) {
  (void)file;
  *size = mc_file_size();
  return LVD_OK;
}
lvd_status lvd_os_shared_commit(int file, size_t offset, size_t size) {
  (void)file, (void)offset, (void)size;
  return LVD_OK;
}
void *lvd_os_shared_map(int file, size_t offset, size_t head, size_t ring) {
  (void)file, (void)head, (void)ring;
  if (offset == 0) return world->tables;
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++)
    if (offset == mc_queue_at(i)) return world->queue[i];
  return NULL;
}
void *lvd_os_shared_map_at(void *p, int file, size_t offset, size_t head, size_t ring) {
  return (void)p, lvd_os_shared_map(file, offset, head, ring);
}
bool lvd_os_replace_mapping(void *p, void *own, size_t size) {
  return (void)p, (void)own, (void)size, false;
}
void lvd_os_shared_unmap(void *p, size_t head, size_t ring) { (void)p, (void)head, (void)ring; }
void lvd_os_close(int descriptor) { (void)descriptor; }
void lvd_os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  (void)before, (void)parent, (void)child;
}
int32_t lvd_os_process_self(void) { return (int32_t)caller() + 1; }

/* ---- locks: the system's, so what was done under one is seen by the next --------------------- */

static uint32_t holder(int file) { return (uint32_t)(file - FIRST_FILE); }

bool lvd_os_file_lock_acquire(int file, uint32_t number, bool wait) {
  lvd_a32 *lock = &world->lock[number];
  for (;;) {
    uint32_t seen = 0;
    if (lvd_cas_acquire_u32(lock, &seen, holder(file)) || seen == holder(file)) return true;
    if (!wait) return false;
    lvd_os_wait(lock, seen, -1);
  }
}
void lvd_os_file_lock_release(int file, uint32_t number) {
  uint32_t mine = holder(file);
  if (lvd_load_relaxed_u32(&world->lock[number]) != mine) return;
  lvd_exchange_release_u32(&world->lock[number], 0);
  lvd_os_wake(&world->lock[number]);
}
bool lvd_os_file_lock_is_held(int file, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    uint32_t seen = lvd_load_acquire_u32(&world->lock[i]);
    if (seen && seen != holder(file)) return true;
  }
  return false;
}

int32_t lvd_os_file_lock_holder(int file, uint32_t number) {
  uint32_t seen = lvd_load_acquire_u32(&world->lock[number]);
  return seen == holder(file) ? 0 : (int32_t)seen;
}

/* ---- bells, which order nothing; and deaths, which the system orders ------------------------- */

static int bell_of(const char *name) {
  unsigned number, process = 0;
  sscanf(name, "mcapi-%u.%u", &number, &process);
  return (int)process;
}
lvd_status lvd_os_fifo_create(int directory, const char *name, int *bell) {
  (void)directory;
  *bell = bell_of(name);
  return LVD_OK;
}
int lvd_os_fifo_open(int directory, const char *name) { return (void)directory, bell_of(name); }
void lvd_os_fifo_signal(int bell) { model_ring((uint32_t)bell); }
int lvd_os_process_exit_fd(int32_t id) { return id ? FIRST_WATCH + id - 1 : -1; }
void lvd_os_poll_many(const int *descriptor, bool *ready, uint32_t count, int64_t timeout_ns) {
  (void)timeout_ns;
  model_sleep((uint32_t)descriptor[0]);
  lvd_exchange_acquire_u32(&world->told[descriptor[0]], 0);
  for (uint32_t i = 0; i < count; i++)
    ready[i] = descriptor[i] >= FIRST_WATCH &&
               lvd_load_acquire_u32(&world->gone[descriptor[i] - FIRST_WATCH]);
}
void lvd_os_block_signals(void) {}
bool lvd_os_barrier_prepare(void) { return !fenced; }
bool lvd_os_global_barrier_prepare(void) { return !fenced; }
void lvd_os_global_barrier(void) { lvd_os_barrier(); }
void lvd_os_wait_shared(lvd_a32 *word, uint32_t expected, int64_t timeout_ns) {
  lvd_os_wait(word, expected, timeout_ns);
}
void lvd_os_wake_shared(lvd_a32 *word) { lvd_os_wake(word); }

/* The process ends, with all its threads: the system drops its locks, then tells of it. One that it
 * had dropped when it died was dropped whole, with the news of it. */
void model_dies(uint32_t process) {
  for (uint32_t i = 0; i < LOCKS; i++) {
    if (!lvd_load_relaxed_u32(&world->lock[i])) lvd_os_wake(&world->lock[i]);
    lvd_os_file_lock_release(FIRST_FILE + (int)process + 1, i);
  }
  lvd_exchange_release_u32(&world->gone[process], 1);
  for (uint32_t i = 0; i < PROCESSES; i++) {
    lvd_exchange_release_u32(&world->told[i], 1);
    model_ring(i);
  }
}

/* ---- what is not checked here ---------------------------------------------------------------- */

const mc_transport mc_pmq = {.name = "pmq"};
void mc_descriptor_close(mc_local_endpoint *local) { (void)local; }
_Thread_local mc_thread_state mc_thread;
static mc_local_node *mc_self(void) { return &world->node[caller()]; }
mc_local_node *mc_long_call_begin(void) { return mc_self(); }
void mc_long_call_end(mc_local_node *const *n) { (void)n; }
mc_short_call mc_short_call_begin_slow(void) { return (mc_short_call){0}; }
lvd_fiber *lvd_fiber_self(void) { return NULL; }
lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_wait_item *want, uint32_t count,
                          int64_t timeout_ns, uint32_t *which) {
  (void)f, (void)want, (void)count, (void)timeout_ns, (void)which;
  abort();
}
void lvd_stream_thread_flush(void) {}
uint32_t lvd_service_priority(void) { return 0; }
bool lvd_os_thread_set_realtime(uint32_t priority) { return (void)priority, true; }

/* ---- what a check does ----------------------------------------------------------------------- */

static void join(uint32_t process) {
  mc_domain **d = &world->domain[process];
  if (mc_domain_join(process + 1, MC_ANY_TRANSPORT, MC_NO_GROUP, d) != LVD_OK) abort();
  mc_local_node *n = &world->node[process];
  n->domain = *d;
  n->index = n->id = process;
  lvd_store_relaxed_u32(&n->active, 1);
  mc_node *shared = &(*d)->tables->node[process];
  lvd_store_relaxed_u32(&shared->id, process);
  lvd_store_release_u32(&shared->owner, 1 + (*d)->process);
}

/* The first `joined` of them are in it. */
void model_make(uint32_t all_cores, uint32_t joined) {
  model_arena_reset();
  world = lvd_os_alloc(sizeof *world);
  world->tables = model_pages(sizeof(mc_tables));
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) world->queue[i] = model_pages(sizeof(mc_queue));
  fenced = !all_cores;
  for (uint32_t i = 0; i < joined; i++) {
    model_am(i);
    join(i);
  }
  model_am(0);
}
void model_join(void) { join(caller()); }

uint32_t model_create(uint32_t port) {
  mcapi_status_t status;
  mcapi_endpoint_t e = mcapi_endpoint_create(port, &status);
  return status == MCAPI_SUCCESS ? e : 0;
}
void model_delete(uint32_t endpoint) {
  mcapi_status_t status;
  mcapi_endpoint_delete(endpoint, &status);
  if (status != MCAPI_SUCCESS) abort();
}

/* Without waiting: 0 when it is sent, else an lvd_status. */
uint32_t model_try_send(uint32_t to, uint32_t v) {
  mc_local_endpoint from = {
      0}; /* each is sent from an endpoint of its own: the first number of a block */
  return mc_shm_send(mc_self()->domain, &from, to, &v, sizeof v, 0);
}
typedef struct sending {
  uint32_t to, v;
  lvd_status status;
} sending;
static bool look_sent(void *what) {
  sending *s = what;
  return (s->status = (lvd_status)model_try_send(s->to, s->v)) != LVD_E_TIMEOUT;
}
static void arm_sent(void *what) {
  mc_shm_await_room(mc_self()->domain, mc_index(((sending *)what)->to), mc_self()->index);
}
uint32_t model_send(uint32_t to, uint32_t v) {
  sending s = {.to = to, .v = v};
  mc_wait(mc_self(), look_sent, arm_sent, &s, 0, -1);
  return s.status;
}

/* What has come, and is not what was sent: UINT32_MAX; nothing: 0. */
uint32_t model_try_receive(uint32_t at) {
  mc_domain *d = mc_self()->domain;
  mc_local_endpoint *local = lvd_load_acquire_ptr(&d->local[mc_index(at)]);
  uint32_t v = 0;
  size_t size = 0;
  mc_lock_acquire(&local->lock);
  lvd_status status = mc_shm_receive(d, local, &v, sizeof v, &size);
  mc_lock_release(&local->lock);
  return status == LVD_E_TIMEOUT ? 0 : status == LVD_OK && size == sizeof v ? v : UINT32_MAX;
}
typedef struct receiving {
  uint32_t at, v;
} receiving;
static bool look_received(void *what) {
  receiving *r = what;
  return (r->v = model_try_receive(r->at)) != 0;
}
uint32_t model_receive(uint32_t at) {
  receiving r = {.at = at};
  mc_wait(mc_self(), look_received, NULL, &r, 0, -1);
  return r.v;
}

/* Waits until all slots are free; what comes meanwhile is added to the sum that is returned. */
typedef struct emptying {
  uint32_t at, sum;
} emptying;
static bool look_empty(void *what) {
  emptying *m = what;
  for (uint32_t v; (v = model_try_receive(m->at));) m->sum += v;
  return mc_shm_free_buffers(mc_self()->domain, mc_index(m->at)) == MC_SLOTS;
}
uint32_t model_wait_empty(uint32_t at) {
  emptying m = {.at = at};
  mc_wait(mc_self(), look_empty, NULL, &m, 0, -1);
  return m.sum;
}

/* Free slots. */
uint32_t model_free(uint32_t endpoint) {
  return mc_shm_free_buffers(mc_self()->domain, mc_index(endpoint));
}

/* 0: there is none; 1: one that is not whole. */
static uint32_t found(uint32_t node, uint32_t port) {
  mc_domain *d = mc_self()->domain;
  mcapi_endpoint_t e = mc_endpoint_find(d, node, port);
  if (!e) return 0;
  bool whole = mc_attribute(d, mc_index(e), MCAPI_ENDP_ATTR_TIMEOUT) == MCAPI_TIMEOUT_INFINITE &&
               lvd_load_relaxed_u32(&d->tables->endpoint[mc_index(e)].node) == node &&
               e / MC_ENDPOINTS ==
                   mc_generation(lvd_load_relaxed_u64(&d->tables->endpoint[mc_index(e)].history));
  return whole ? e : 1;
}
uint32_t model_find(uint32_t node, uint32_t port) { return found(node, port); }
/* It is there; or it has been deleted, as far as the caller sees: not if its process has died. */
uint32_t model_is(uint32_t endpoint) { return mc_endpoint_exists(mc_self()->domain, endpoint); }
uint32_t model_was(uint32_t endpoint) {
  return mc_endpoint_was_deleted(mc_self()->domain, endpoint);
}
typedef struct finding {
  uint32_t node, port, e;
} finding;
static bool look_found(void *what) {
  finding *f = what;
  return (f->e = found(f->node, f->port)) != 0;
}
static void arm_found(void *what) {
  (void)what;
  mc_node_set_add(&mc_self()->domain->tables->endpoint_waiters, mc_self()->index);
}
uint32_t model_wait_found(uint32_t node, uint32_t port) {
  finding f = {.node = node, .port = port};
  mc_wait(mc_self(), look_found, arm_found, &f, 0, -1);
  return f.e;
}

/* Frees what `process` had, if it is dead, and notifies all processes. */
void model_bury(uint32_t process) {
  mc_domain *d = mc_self()->domain;
  mc_tables_lock(d);
  mc_reap_process(d, process);
  mc_tables_unlock(d);
  mc_notify_all(d, NULL);
}
/* Of a dead process something is in the tables. */
uint32_t model_left(uint32_t process) {
  const mc_tables *t = mc_self()->domain->tables;
  uint32_t count = lvd_load_acquire_u32(&t->process[process].serial) != 0;
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++)
    count += lvd_load_relaxed_u32(&t->endpoint[i].owner) == 1 + process;
  for (uint32_t i = 0; i < MC_NODES; i++)
    count += lvd_load_relaxed_u32(&t->node[i].owner) == 1 + process;
  return count;
}
static bool look_gone(void *what) { return !model_left(*(const uint32_t *)what); }
/* Waits until nothing is. */
void model_wait_gone(uint32_t process) { mc_wait(mc_self(), look_gone, NULL, &process, 0, -1); }
/* Ends the notifier of the caller's process. */
void model_stop(void) {
  mc_domain *d = mc_self()->domain;
  lvd_exchange_release_u32(&d->stop, 1);
  lvd_exchange_release_u32(&world->told[d->process], 1); /* the bell of its own process orders */
  model_ring(d->process);
}
uint32_t model_status_peer(void) { return LVD_E_PEER_GONE; }
uint32_t model_status_time(void) { return LVD_E_TIMEOUT; }
