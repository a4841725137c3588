/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Leases: when this process takes part, how its threads get a core's lease, and give it up.
 *
 * What is shared is a file in the user's directory of names (domain.h), which the host has made. A lock of
 * that file says that there is a host; one for each process that takes part says that it lives: they end
 * with their process, however that ends.
 *
 * A thread that is awake has a clock of its CPU time, which is as coarse as the system's own, and while
 * others wait for its lease one that says when its turn ends. At a tick it hands the lease over, if another
 * process waits and it has had its turn, and waits for it again: in the handler of the signal, wherever it
 * just was, as if the system had taken its core away. So it depends on nothing that the thread does. Who
 * waits looks now and then whether the holder is there still.
 *
 * A thread of the program is not pinned: the system may have it on another core than the one whose lease it
 * has, beside that core's holder. Where leases are waited for it comes to its own.
 *
 * Two threads of a process that share a core (a worker, and a thread of the program that has its place)
 * have one lease: it is given back when neither is awake. The threads count themselves, and a wrong count
 * lasts until their next tick.
 *
 * Who has a real-time priority is let in by the system before any holder of the usual class, who keeps the lease, notices
 * nothing, and goes on after it. So it does not wait when it wakes: elements would be late by the turns of others, and by
 * what else of the machine keeps these from the core. Only when it has been awake for a whole turn it waits, as all do.
 *
 * Pairs of orders
 *   attach: the table and `me`, store_release table -> every use: load_acquire table */
#include "lease_client.h"

#include <levada/lease.h>

#include <stdlib.h>
#include <string.h>

#include "../../platform/domain.h"
#include "../../platform/platform.h"
#include "../../platform/process.h"
#include "core_lease.h"

enum {
  TICK_NS = 2000000,    /* of CPU time, which the system may round up to its own tick */
  TURN_NS = 4000000,    /* so long a core is one's own, whoever waits */
  POLL_NS = 2000000,    /* who waits looks at the holder */
  LATE_NS = 9500000,    /* and takes the core from one that has not given it, before it is 10 ms */
  LOOK_NS = 1000000000, /* whether there is a host now */
  LAYOUT = 1,
  MOST_CORES = 4096,
  HOST = 0, /* locks of the file */
  SLOT = 1
};

typedef struct lvd_lease_table {
  char magic[8];
  uint32_t layout, cores;
  LVD_ALIGNED(LVD_LINE) lvd_lease lease[];
} lvd_lease_table;

static const char magic[8] = "levleas";

static struct {
  lvd_os_mutex lock;
  lvd_aptr table; /* null: no part is taken */
  lvd_a64 looked; /* ticks */
  uint32_t me;
  uint32_t cores;
  int file;
  bool host;
  lvd_lease_table *mapped;
  lvd_a32 awake[MOST_CORES]; /* threads, by core */
} all = {.file = -1};

static size_t size_of(uint32_t cores) {
  return sizeof(lvd_lease_table) + cores * sizeof(lvd_lease);
}

/* Null: they are off. */
static const char *name_of(void) {
  const char *name = getenv("LEVADA_LEASES");
  if (!name || !*name) return "leases";
  return strcmp(name, "off") == 0 || strchr(name, '/') || *name == '.' ? NULL : name;
}

/* ---- taking part; all under the lock --------------------------------------------------------- */

static bool has_host(void) { return all.host || lvd_os_file_lock_is_held(all.file, HOST, 1); }

/* What is mapped stays: a thread may be looking at it. */
static void stop_taking_part(void) {
  lvd_store_relaxed_ptr(&all.table, NULL);
  if (all.file >= 0) lvd_os_close(all.file); /* and with it go the locks */
  all.file = -1;
  all.host = false;
}

/* The first slot that is no living process's, without what a dead one has left there. */
static bool take_slot(void) {
  for (all.me = 0; all.me < LVD_LEASE_SLOTS; all.me++) {
    if (!lvd_os_file_lock_acquire(all.file, SLOT + all.me, false)) continue;
    for (uint32_t i = 0; i < all.cores; i++)
      lvd_lease_give_back(&all.mapped->lease[i], all.me, lvd_os_now_ns());
    return true;
  }
  return false;
}

static bool is_good(const lvd_lease_table *head, size_t size) {
  return memcmp(head->magic, magic, sizeof magic) == 0 && head->layout == LAYOUT &&
         head->cores > 0 && head->cores <= MOST_CORES && size >= size_of(head->cores);
}

/* The file is open, and is one. */
static bool map(void) {
  size_t size;
  lvd_lease_table head;
  if (lvd_os_shared_size(all.file, &size) != LVD_OK ||
      !lvd_os_file_read(all.file, 0, &head, sizeof head) || !is_good(&head, size))
    return false;
  all.cores = head.cores;
  all.mapped = lvd_os_shared_map(all.file, 0, size_of(all.cores), 0);
  for (uint32_t i = 0; all.mapped && i < all.cores; i++)
    if (all.mapped->lease[i].slots != LVD_LEASE_SLOTS) return false;
  return all.mapped != NULL;
}

static lvd_status take_part(void) {
  if (!map() || !take_slot()) return LVD_E_MEMORY;
  lvd_store_release_ptr(&all.table, all.mapped);
  return LVD_OK;
}

/* Is there a host now? May be called in a signal's handler. */
static void look_for_host(void) {
  int directory;
  const char *name = name_of();
  if (!name || lvd_os_directory_find(-1, &directory) != LVD_OK) return;
  if (lvd_os_file_find(directory, name, &all.file) != LVD_OK ||
      !lvd_os_file_lock_is_held(all.file, HOST, 1) || take_part() != LVD_OK)
    stop_taking_part();
  lvd_os_close(directory);
}

static bool is_due(void) {
  uint64_t now = lvd_os_ticks(), last = lvd_load_relaxed_u64(&all.looked);
  return (!last || lvd_os_ticks_to_ns(now - last) >= LOOK_NS) &&
         lvd_cas_relaxed_u64(&all.looked, &last, now);
}

/* Null: there is no host. */
static lvd_lease_table *table(void) {
  lvd_lease_table *t = lvd_load_acquire_ptr(&all.table);
  if (t || !is_due() || !lvd_os_try_lock(&all.lock)) return t;
  if (!lvd_load_relaxed_ptr(&all.table)) look_for_host();
  lvd_os_unlock(&all.lock);
  return lvd_load_acquire_ptr(&all.table);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* False: there is none any more, and all go on without. */
static bool is_hosted(const lvd_lease_table *t) {
  if (lvd_load_acquire_ptr(&all.table) != t) return false;
  if (!lvd_os_try_lock(&all.lock)) return true;
  bool hosted = lvd_load_relaxed_ptr(&all.table) == t && has_host();
  if (!hosted && lvd_load_relaxed_ptr(&all.table) == t) stop_taking_part();
  lvd_os_unlock(&all.lock);
  return hosted;
}

/* Takes the lease of `l` from who will not give it: he has ended; or, when he is late, sleeps in something
 * else, or does not answer. */
static void look_at_holder(lvd_lease *l, uint64_t began) {
  uint32_t holder = lvd_load_relaxed_u32(&l->holder);
  if (holder == 0 || holder == all.me + 1) return;
  uint64_t now = lvd_os_now_ns(), since = lvd_load_relaxed_u64(&l->since);
  bool lives =
      holder <= LVD_LEASE_SLOTS && lvd_os_file_lock_is_held(all.file, SLOT + holder - 1, 1);
  bool late = now > since && now - since >= LATE_NS && now - began >= LATE_NS;
  if (lives && !late) return;
  bool answers = lives && lvd_os_any_thread_is_blocked(lvd_load_relaxed_u32(&l->thread));
  if (lvd_lease_seize(l, all.me, holder - 1, now))
    lvd_add_relaxed_u64(lives && !answers ? &l->seized : &l->left, 1);
}

/* How long it took. */
static uint64_t wait_for(lvd_lease_table *t, lvd_lease *l) {
  uint64_t began = lvd_os_now_ns(), now = began;
  while (!lvd_lease_ask(l, all.me, now)) {
    uint64_t waited = now - began, left = waited < LATE_NS ? LATE_NS - waited : POLL_NS;
    lvd_os_wait_shared(&l->want[all.me], 1, left < POLL_NS ? left : POLL_NS);
    now = lvd_os_now_ns();
    if (lvd_lease_is(l, all.me) || !is_hosted(t)) break;
    look_at_holder(l, began);
  }
  uint64_t took = lvd_os_now_ns() - began, longest = lvd_load_relaxed_u64(&l->longest);
  lvd_add_relaxed_u64(&l->waits, 1);
  lvd_add_relaxed_u64(&l->waited, took);
  while (took > longest && !lvd_cas_relaxed_u64(&l->longest, &longest, took)) {
  }
  return took;
}

/* The core's, as the shared file has it; null: it has none. */
static lvd_lease *lease_of(lvd_lease_table *t, const lvd_leased *who) {
  return t && who->cpu >= 0 && (uint32_t)who->cpu < all.cores ? &t->lease[who->cpu] : NULL;
}

static void hold(lvd_lease_table *t, lvd_lease *l, lvd_leased *who) {
  if (!lvd_lease_take(l, all.me, lvd_os_now_ns())) {
    lvd_store_relaxed_u32(&who->waits, 1);
    uint64_t waited = wait_for(t, l);
    lvd_store_relaxed_u64(&who->waited_ns, lvd_load_relaxed_u64(&who->waited_ns) + waited);
    lvd_os_thread_migrate(who->cpu);
    lvd_os_tick_timer_once(TURN_NS);
    lvd_store_relaxed_u32(&who->waits, 0);
  }
  lvd_store_relaxed_u32(&l->thread, lvd_os_thread_id());
}

/* ---- threads --------------------------------------------------------------------------------- */

static void tick(void *argument) { lvd_lease_tick(argument); }

/* The thread is counted, and has a clock, from when there is a host on. */
static void begin(lvd_leased *who) {
  if (!who->counted) {
    who->counted = true;
    lvd_add_relaxed_u32(&all.awake[who->cpu], 1);
  }
  if (!who->clocked) who->clocked = lvd_os_tick_timer_start(tick, who, TICK_NS);
}

void lvd_lease_enter(lvd_leased *who, int32_t cpu) {
  lvd_lease_table *t = table();
  who->cpu = cpu;
  lvd_lease *l = lease_of(t, who);
  if (l) begin(who);
  if (l && who->first) who->woke_ns = lvd_os_now_ns();
  lvd_fence_compiler();
  who->in = true;
  if (!l) return;
  if (!who->first || lvd_lease_take(l, all.me, who->woke_ns)) hold(t, l, who);
}

void lvd_lease_leave(lvd_leased *who) {
  who->in = false;
  lvd_fence_compiler();
  if (!who->counted) return;
  who->counted = false;
  if (lvd_add_relaxed_u32(&all.awake[who->cpu], UINT32_MAX) != 1) return;
  lvd_lease *l = lease_of(lvd_load_acquire_ptr(&all.table), who);
  if (l) lvd_lease_give_back(l, all.me, lvd_os_now_ns());
}

void lvd_lease_end(lvd_leased *who) {
  lvd_lease_leave(who);
  if (who->clocked) lvd_os_tick_timer_stop();
  who->clocked = false;
}

bool lvd_lease_sought(const lvd_leased *who) {
  const lvd_lease *l = who->in ? lease_of(lvd_load_acquire_ptr(&all.table), who) : NULL;
  return l && lvd_lease_wanted(l);
}

void lvd_lease_tick(lvd_leased *who) {
  if (!who->in) return;
  lvd_lease_table *t = table();
  lvd_lease *l = lease_of(t, who);
  if (!l) return;
  begin(who);
  uint64_t now = lvd_os_now_ns();
  if (lvd_lease_is(l, all.me)) {
    if (!lvd_lease_wanted(l)) return;
    uint64_t had = now - lvd_load_relaxed_u64(&l->since);
    if (had < TURN_NS) {
      lvd_os_thread_migrate(who->cpu);
      lvd_os_tick_timer_once((int64_t)(TURN_NS - had));
      return;
    }
    if (!lvd_lease_hand_over(l, all.me, now)) return;
  } else if (who->first && now - who->woke_ns < TURN_NS && !lvd_lease_take(l, all.me, now)) {
    lvd_os_tick_timer_once((int64_t)(TURN_NS - (now - who->woke_ns)));
    return;
  }
  hold(t, l, who);
}

void lvd_leases_child_begins(void) {
  if (all.file >= 0) lvd_os_close(all.file); /* the locks are the other's, and stay */
  memset(&all, 0, sizeof all);
  all.file = -1;
}

/* ---- the host -------------------------------------------------------------------------------- */

/* With its head last: until then it is not one. */
static lvd_status fill_table(void) {
  lvd_lease_table head = {.layout = LAYOUT, .cores = lvd_os_core_limit()};
  lvd_lease lease = {.slots = LVD_LEASE_SLOTS};
  memcpy(head.magic, magic, sizeof magic);
  if (head.cores > MOST_CORES) head.cores = MOST_CORES;
  lvd_status status = lvd_os_file_clear(all.file, size_of(head.cores));
  bool written = status == LVD_OK;
  for (uint32_t i = 0; written && i < head.cores; i++)
    written = lvd_os_file_write(all.file, size_of(i), &lease, sizeof lease);
  written = written && lvd_os_file_write(all.file, 0, &head, sizeof head);
  return written ? LVD_OK : status == LVD_OK ? LVD_E_SYSTEM : status;
}

/* The file `name`, with leases in it, and the host's lock on it. */
static lvd_status make_table(int directory, const char *name) {
  enum { AGAIN = 16 };
  for (int i = 0; i < AGAIN; i++) {
    lvd_status status = lvd_os_file_open(directory, name, &all.file);
    if (status != LVD_OK) return status;
    if (!lvd_os_file_lock_acquire(all.file, HOST, false)) return LVD_E_STATE;
    /* An earlier host may just have taken it away, or have been killed. */
    if (!lvd_os_file_is_removed(all.file)) return map() ? LVD_OK : fill_table();
    lvd_os_close(all.file);
    all.file = -1;
  }
  return LVD_E_SYSTEM;
}

lvd_status lvd_leases_begin(void) {
  int directory;
  const char *name = name_of();
  if (!name) return LVD_E_UNKNOWN;
  lvd_os_lock(&all.lock);
  stop_taking_part();
  lvd_status status = lvd_os_directory_open(-1, &directory);
  if (status == LVD_OK) {
    status = make_table(directory, name);
    if (status == LVD_OK) status = take_part();
    all.host = status == LVD_OK;
    if (status != LVD_OK) stop_taking_part();
    lvd_os_close(directory);
  }
  lvd_os_unlock(&all.lock);
  return status;
}

void lvd_leases_end(void) {
  int directory;
  lvd_os_lock(&all.lock);
  if (all.host) {
    if (lvd_os_directory_open(-1, &directory) == LVD_OK) {
      lvd_os_directory_remove(directory, name_of());
      lvd_os_close(directory);
    }
    stop_taking_part();
  }
  lvd_os_unlock(&all.lock);
}

lvd_status lvd_leases_read(lvd_lease_core *core, uint32_t *count) {
  const lvd_lease_table *t = lvd_load_acquire_ptr(&all.table);
  uint32_t found = 0;
  for (uint32_t i = 0; t && i < all.cores; i++) {
    const lvd_lease *l = &t->lease[i];
    if (!lvd_load_relaxed_u64(&l->since)) continue;
    if (found < *count)
      core[found] = (lvd_lease_core){
          .cpu = i,
          .waiting = lvd_load_relaxed_u32(&l->waiting),
          .thread = lvd_load_relaxed_u32(&l->holder) ? lvd_load_relaxed_u32(&l->thread) : 0,
          .given = lvd_load_relaxed_u64(&l->given),
          .seized = lvd_load_relaxed_u64(&l->seized),
          .left = lvd_load_relaxed_u64(&l->left),
          .waits = lvd_load_relaxed_u64(&l->waits),
          .waited_ns = lvd_load_relaxed_u64(&l->waited),
          .longest_ns = lvd_load_relaxed_u64(&l->longest)};
    found++;
  }
  *count = found;
  return t ? LVD_OK : LVD_E_STATE;
}
