/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Core leases, process side: when this process takes part, and how its threads acquire and
 * release the lease of a core.
 *
 * The shared part is a file, made by the host, in the user's directory of names (domain.h). A
 * file lock shows that a host runs; one lock per participating process shows that this process
 * lives. The kernel drops the locks when a process ends, however it ends.
 *
 * An awake thread has a timer on its CPU time (as coarse as the kernel's tick) and, while another
 * process waits for its lease, a timer for the end of its time slice. At a tick the thread hands
 * the lease over if another process waits and the slice is used up, and then waits for the lease
 * again. It does so in the signal handler, wherever it was interrupted, as if the kernel had
 * preempted it; so this does not depend on what the thread executes. A waiting thread
 * periodically checks that the holder still lives.
 *
 * A thread of the program (one that is no worker) is not pinned: the kernel may run it on another
 * core than the one of its lease, at the same time as that core's holder. While the lease
 * is contended, the thread migrates to its core.
 *
 * Two threads of a process that share a core (a worker, and a thread of the program that has the
 * worker's place) share one lease, which is released when neither is awake. The threads count
 * themselves; a wrong count lasts until their next tick.
 *
 * A thread with a real-time priority preempts a holder of the normal class, which keeps the
 * lease, does not notice, and continues afterwards. So a real-time thread does not wait for the
 * lease when it wakes: otherwise its elements would be late by the time slices of other
 * processes, and by whatever else delays those. It waits like any other thread once it has been
 * awake for a full slice.
 *
 * Pairs of orders
 *   attach: the table and `slot`, store_release table -> every use: load_acquire table */
#include "lease_client.h"

#include <levada/lease.h>

#include <stdlib.h>
#include <string.h>

#include "../../platform/domain.h"
#include "../../platform/platform.h"
#include "../../platform/process.h"
#include "core_lease.h"

enum {
  TICK_NS = 2000000, /* of CPU time; the kernel may round it up to its own tick */
  TURN_NS = 4000000, /* time slice: a holder keeps the core for this long even if others wait */
  POLL_NS = 2000000, /* how often a waiting thread checks the holder */
  /* A lease not handed over after this time is taken by force; just below 10 ms. */
  LATE_NS = 9500000,
  LOOK_NS = 1000000000, /* how often to check whether a host has been started */
  LAYOUT = 1,
  CORES_MAX = 4096,
  HOST = 0, /* byte ranges of the file that are locked */
  SLOT = 1
};

typedef struct lvd_lease_table {
  char magic[8];
  uint32_t layout, cores;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_lease lease[];
} lvd_lease_table;

static const char magic[8] = "levleas";

static struct {
  lvd_os_mutex lock;
  lvd_aptr table; /* null: this process does not take part */
  lvd_a64 looked; /* ticks: when a host was last looked for */
  uint32_t slot;  /* of this process in the leases */
  uint32_t cores;
  int file;
  bool host;
  lvd_lease_table *mapped;
  lvd_a32 awake[CORES_MAX]; /* number of awake threads, by core */
} client = {.file = -1};

static size_t size_of(uint32_t cores) {
  return sizeof(lvd_lease_table) + cores * sizeof(lvd_lease);
}

/* The name of the shared file; null: leases are off. */
static const char *name_of(void) {
  const char *name = getenv("LEVADA_LEASES");
  if (!name || !*name) return "leases";
  return strcmp(name, "off") == 0 || strchr(name, '/') || *name == '.' ? NULL : name;
}

/* ---- taking part; all under the lock --------------------------------------------------------- */

static bool has_host(void) { return client.host || lvd_os_file_lock_is_held(client.file, HOST, 1); }

/* The mapping stays: a thread may be reading it. */
static void stop_taking_part(void) {
  lvd_store_relaxed_ptr(&client.table, NULL);
  if (client.file >= 0) lvd_os_close(client.file); /* this also drops the locks */
  client.file = -1;
  client.host = false;
}

/* Takes the first slot that no living process has, and releases the leases that a dead process
 * left there. */
static bool take_slot(void) {
  for (client.slot = 0; client.slot < LVD_LEASE_SLOTS; client.slot++) {
    if (!lvd_os_file_lock_acquire(client.file, SLOT + client.slot, false)) continue;
    for (uint32_t i = 0; i < client.cores; i++)
      lvd_lease_give_back(&client.mapped->lease[i], client.slot, lvd_os_now_ns());
    return true;
  }
  return false;
}

static bool is_good(const lvd_lease_table *head, size_t size) {
  return memcmp(head->magic, magic, sizeof magic) == 0 && head->layout == LAYOUT &&
         head->cores > 0 && head->cores <= CORES_MAX && size >= size_of(head->cores);
}

/* Maps the open file. False: it is no valid table. */
static bool map(void) {
  size_t size;
  lvd_lease_table head;
  if (lvd_os_shared_size(client.file, &size) != LVD_OK ||
      !lvd_os_file_read(client.file, 0, &head, sizeof head) || !is_good(&head, size))
    return false;
  client.cores = head.cores;
  client.mapped = lvd_os_shared_map(client.file, 0, size_of(client.cores), 0);
  for (uint32_t i = 0; client.mapped && i < client.cores; i++)
    if (client.mapped->lease[i].slots != LVD_LEASE_SLOTS) return false;
  return client.mapped != NULL;
}

static lvd_status take_part(void) {
  if (!map() || !take_slot()) return LVD_E_MEMORY;
  lvd_store_release_ptr(&client.table, client.mapped);
  return LVD_OK;
}

/* Takes part if a host runs by now. Callable in a signal handler. */
static void look_for_host(void) {
  int directory;
  const char *name = name_of();
  if (!name || lvd_os_directory_find(-1, &directory) != LVD_OK) return;
  if (lvd_os_file_find(directory, name, &client.file) != LVD_OK ||
      !lvd_os_file_lock_is_held(client.file, HOST, 1) || take_part() != LVD_OK)
    stop_taking_part();
  lvd_os_close(directory);
}

static bool is_due(void) {
  uint64_t now = lvd_os_ticks(), last = lvd_load_relaxed_u64(&client.looked);
  return (!last || lvd_os_ticks_to_ns(now - last) >= LOOK_NS) &&
         lvd_cas_relaxed_u64(&client.looked, &last, now);
}

/* The shared table; null: no host runs. */
static lvd_lease_table *table(void) {
  lvd_lease_table *t = lvd_load_acquire_ptr(&client.table);
  if (t || !is_due() || !lvd_os_try_lock(&client.lock)) return t;
  if (!lvd_load_relaxed_ptr(&client.table)) look_for_host();
  lvd_os_unlock(&client.lock);
  return lvd_load_acquire_ptr(&client.table);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* False: the host has ended, and all processes continue without leases. */
static bool is_hosted(const lvd_lease_table *t) {
  if (lvd_load_acquire_ptr(&client.table) != t) return false;
  if (!lvd_os_try_lock(&client.lock)) return true;
  bool hosted = lvd_load_relaxed_ptr(&client.table) == t && has_host();
  if (!hosted && lvd_load_relaxed_ptr(&client.table) == t) stop_taking_part();
  lvd_os_unlock(&client.lock);
  return hosted;
}

/* Takes the lease of `l` from a holder that will not release it: the process has ended, or it is
 * late and either blocked elsewhere or not responding. */
static void look_at_holder(lvd_lease *l, uint64_t began) {
  uint32_t holder = lvd_load_relaxed_u32(&l->holder);
  if (holder == 0 || holder == client.slot + 1) return;
  uint64_t now = lvd_os_now_ns(), since = lvd_load_relaxed_u64(&l->since);
  bool lives =
      holder <= LVD_LEASE_SLOTS && lvd_os_file_lock_is_held(client.file, SLOT + holder - 1, 1);
  bool late = now > since && now - since >= LATE_NS && now - began >= LATE_NS;
  if (lives && !late) return;
  bool answers = lives && lvd_os_any_thread_is_blocked(lvd_load_relaxed_u32(&l->thread));
  if (lvd_lease_seize(l, client.slot, holder - 1, now))
    lvd_add_relaxed_u64(lives && !answers ? &l->preempted : &l->reclaimed_idle, 1);
}

/* Waits for the lease; returns the duration in ns. */
static uint64_t wait_for(lvd_lease_table *t, lvd_lease *l) {
  uint64_t began = lvd_os_now_ns(), now = began;
  while (!lvd_lease_request(l, client.slot, now)) {
    uint64_t waited = now - began, left = waited < LATE_NS ? LATE_NS - waited : POLL_NS;
    lvd_os_wait_shared(&l->want[client.slot], 1, left < POLL_NS ? left : POLL_NS);
    now = lvd_os_now_ns();
    if (lvd_lease_is_held_by(l, client.slot) || !is_hosted(t)) break;
    look_at_holder(l, began);
  }
  uint64_t took = lvd_os_now_ns() - began, longest = lvd_load_relaxed_u64(&l->longest);
  lvd_add_relaxed_u64(&l->waits, 1);
  lvd_add_relaxed_u64(&l->waited, took);
  while (took > longest && !lvd_cas_relaxed_u64(&l->longest, &longest, took)) {
  }
  return took;
}

/* The lease of the thread's core; null: the core has none. */
static lvd_lease *lease_of(lvd_lease_table *t, const lvd_leased *thread) {
  return t && thread->cpu >= 0 && (uint32_t)thread->cpu < client.cores ? &t->lease[thread->cpu]
                                                                       : NULL;
}

static void hold(lvd_lease_table *t, lvd_lease *l, lvd_leased *thread) {
  if (!lvd_lease_take(l, client.slot, lvd_os_now_ns())) {
    lvd_store_relaxed_u32(&thread->waits, 1);
    uint64_t waited = wait_for(t, l);
    lvd_store_relaxed_u64(&thread->waited_ns, lvd_load_relaxed_u64(&thread->waited_ns) + waited);
    lvd_os_thread_migrate(thread->cpu);
    lvd_os_tick_timer_once(TURN_NS);
    lvd_store_relaxed_u32(&thread->waits, 0);
  }
  lvd_store_relaxed_u32(&l->thread, lvd_os_thread_id());
}

/* ---- threads --------------------------------------------------------------------------------- */

static void tick(void *argument) { lvd_lease_tick(argument); }

/* Counts the thread as awake and starts its timer, once a host runs. */
static void begin(lvd_leased *thread) {
  if (!thread->counted) {
    thread->counted = true;
    lvd_add_relaxed_u32(&client.awake[thread->cpu], 1);
  }
  if (!thread->clocked) thread->clocked = lvd_os_tick_timer_start(tick, thread, TICK_NS);
}

void lvd_lease_enter(lvd_leased *thread, int32_t cpu) {
  lvd_lease_table *t = table();
  thread->cpu = cpu;
  lvd_lease *l = lease_of(t, thread);
  if (l) begin(thread);
  if (l && thread->first) thread->woke_ns = lvd_os_now_ns();
  lvd_fence_compiler();
  thread->in = true;
  if (!l) return;
  if (!thread->first || lvd_lease_take(l, client.slot, thread->woke_ns)) hold(t, l, thread);
}

void lvd_lease_leave(lvd_leased *thread) {
  thread->in = false;
  lvd_fence_compiler();
  if (!thread->counted) return;
  thread->counted = false;
  if (lvd_add_relaxed_u32(&client.awake[thread->cpu], UINT32_MAX) != 1) return;
  lvd_lease *l = lease_of(lvd_load_acquire_ptr(&client.table), thread);
  if (l) lvd_lease_give_back(l, client.slot, lvd_os_now_ns());
}

void lvd_lease_end(lvd_leased *thread) {
  lvd_lease_leave(thread);
  if (thread->clocked) lvd_os_tick_timer_stop();
  thread->clocked = false;
}

bool lvd_lease_is_contended(const lvd_leased *thread) {
  const lvd_lease *l = thread->in ? lease_of(lvd_load_acquire_ptr(&client.table), thread) : NULL;
  return l && lvd_lease_has_waiters(l);
}

void lvd_lease_tick(lvd_leased *thread) {
  if (!thread->in) return;
  lvd_lease_table *t = table();
  lvd_lease *l = lease_of(t, thread);
  if (!l) return;
  begin(thread);
  uint64_t now = lvd_os_now_ns();
  if (lvd_lease_is_held_by(l, client.slot)) {
    if (!lvd_lease_has_waiters(l)) return;
    uint64_t had = now - lvd_load_relaxed_u64(&l->since);
    if (had < TURN_NS) {
      lvd_os_thread_migrate(thread->cpu);
      lvd_os_tick_timer_once((int64_t)(TURN_NS - had));
      return;
    }
    if (!lvd_lease_hand_over(l, client.slot, now)) return;
  } else if (thread->first && now - thread->woke_ns < TURN_NS &&
             !lvd_lease_take(l, client.slot, now)) {
    lvd_os_tick_timer_once((int64_t)(TURN_NS - (now - thread->woke_ns)));
    return;
  }
  hold(t, l, thread);
}

void lvd_leases_child_begins(void) {
  if (client.file >= 0) lvd_os_close(client.file); /* the locks belong to the parent and stay */
  memset(&client, 0, sizeof client);
  client.file = -1;
}

/* ---- the host -------------------------------------------------------------------------------- */

/* The header is written last: until then the file is not valid. */
static lvd_status fill_table(void) {
  lvd_lease_table head = {.layout = LAYOUT, .cores = lvd_os_core_limit()};
  lvd_lease lease = {.slots = LVD_LEASE_SLOTS};
  memcpy(head.magic, magic, sizeof magic);
  if (head.cores > CORES_MAX) head.cores = CORES_MAX;
  lvd_status status = lvd_os_file_clear(client.file, size_of(head.cores));
  bool written = status == LVD_OK;
  for (uint32_t i = 0; written && i < head.cores; i++)
    written = lvd_os_file_write(client.file, size_of(i), &lease, sizeof lease);
  written = written && lvd_os_file_write(client.file, 0, &head, sizeof head);
  return written ? LVD_OK : status == LVD_OK ? LVD_E_SYSTEM : status;
}

/* Opens or creates the file `name`, fills it with leases, and takes the host's lock on it. */
static lvd_status make_table(int directory, const char *name) {
  enum { ATTEMPTS_MAX = 16 };
  for (int i = 0; i < ATTEMPTS_MAX; i++) {
    lvd_status status = lvd_os_file_open(directory, name, &client.file);
    if (status != LVD_OK) return status;
    if (!lvd_os_file_lock_acquire(client.file, HOST, false)) return LVD_E_STATE;
    /* An earlier host may just have removed it, or may have been killed. */
    if (!lvd_os_file_is_removed(client.file)) return map() ? LVD_OK : fill_table();
    lvd_os_close(client.file);
    client.file = -1;
  }
  return LVD_E_SYSTEM;
}

lvd_status lvd_leases_begin(void) {
  int directory;
  const char *name = name_of();
  if (!name) return LVD_E_NOT_FOUND;
  lvd_os_lock(&client.lock);
  stop_taking_part();
  lvd_status status = lvd_os_directory_open(-1, &directory);
  if (status == LVD_OK) {
    status = make_table(directory, name);
    if (status == LVD_OK) status = take_part();
    client.host = status == LVD_OK;
    if (status != LVD_OK) stop_taking_part();
    lvd_os_close(directory);
  }
  lvd_os_unlock(&client.lock);
  return status;
}

void lvd_leases_end(void) {
  int directory;
  lvd_os_lock(&client.lock);
  if (client.host) {
    if (lvd_os_directory_open(-1, &directory) == LVD_OK) {
      lvd_os_directory_remove(directory, name_of());
      lvd_os_close(directory);
    }
    stop_taking_part();
  }
  lvd_os_unlock(&client.lock);
}

lvd_status lvd_leases_read(lvd_lease_core *core, uint32_t *count) {
  const lvd_lease_table *t = lvd_load_acquire_ptr(&client.table);
  uint32_t found = 0;
  for (uint32_t i = 0; t && i < client.cores; i++) {
    const lvd_lease *l = &t->lease[i];
    if (!lvd_load_relaxed_u64(&l->since)) continue;
    if (found < *count)
      core[found] = (lvd_lease_core){
          .cpu = i,
          .waiting = lvd_load_relaxed_u32(&l->waiting),
          .thread = lvd_load_relaxed_u32(&l->holder) ? lvd_load_relaxed_u32(&l->thread) : 0,
          .transfers = lvd_load_relaxed_u64(&l->transfers),
          .preempted = lvd_load_relaxed_u64(&l->preempted),
          .reclaimed_idle = lvd_load_relaxed_u64(&l->reclaimed_idle),
          .waits = lvd_load_relaxed_u64(&l->waits),
          .waited_ns = lvd_load_relaxed_u64(&l->waited),
          .longest_ns = lvd_load_relaxed_u64(&l->longest)};
    found++;
  }
  *count = found;
  return t ? LVD_OK : LVD_E_STATE;
}
