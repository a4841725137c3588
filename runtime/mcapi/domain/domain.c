/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Joining a domain and leaving it; the gate; the dead; and the notifier, a thread of each process that
 * sleeps until somebody has come, has died, or rings for a fiber. */
#include "../transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Locks of the file: the gate, then one for each process of the table. */
enum { GATE = 0, ALIVE = 1, TRIES = 100, LOOK_MS = 50 };

/* By number. */
static const mc_transport *const transports[] = {&mc_shm, &mc_pmq};
enum { TRANSPORTS = sizeof transports / sizeof *transports };

static lvd_os_mutex domains_lock;
static mc_domain *domains;

void mc_file_name(char *out, size_t size, mcapi_domain_t number) {
  snprintf(out, size, "mcapi-%u", (unsigned)number);
}
static void name_bell(char *out, size_t size, mcapi_domain_t number, uint32_t process) {
  snprintf(out, size, "mcapi-%u.%u", (unsigned)number, (unsigned)process);
}

/* ---- the gate ------------------------------------------------------------------------------- */

void mc_gate_enter(mc_domain *d) {
  lvd_os_lock(&d->gate);
  lvd_os_file_lock_acquire(d->file, GATE, true);
}

void mc_gate_leave(mc_domain *d) {
  lvd_os_file_lock_release(d->file, GATE);
  lvd_os_unlock(&d->gate);
}

/* ---- the dead ------------------------------------------------------------------------------- */

bool mc_is_alive(const mc_domain *d, uint32_t serial) {
  for (uint32_t i = 0; i < MC_PROCESSES; i++)
    if (lvd_load_acquire_u32(&d->tables->process[i].serial) == serial) return true;
  return false;
}

bool mc_file_alive(int file, uint32_t i) { return lvd_os_file_lock_is_held(file, ALIVE + i, 1); }

/* What process `i` had goes back to the tables. Behind the gate. First all of its endpoints are seen to be
 * gone, since what a transport has to take away takes its time. Its record goes last, so that whoever dies
 * here leaves the rest to the next one. */
static void clear_process(mc_domain *d, uint32_t i) {
  mc_tables *t = d->tables;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    uint32_t handle = lvd_load_relaxed_u32(&t->endpoint[k].handle);
    if (!handle || lvd_load_relaxed_u32(&t->endpoint[k].owner) != 1 + i) continue;
    lvd_a64 *past = &t->endpoint[k].past;
    lvd_store_relaxed_u64(past, lvd_load_relaxed_u64(past) | (uint64_t)1 << MC_GENERATION_BITS);
    lvd_store_release_u32(&t->endpoint[k].handle, 0);
  }
  /* Whom they were connected to, or it had begun to connect, is free. */
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    mcapi_endpoint_t handle = lvd_load_relaxed_u32(&t->endpoint[k].handle);
    if (handle && mc_index(handle) == k) mc_channel_settle(d, handle);
  }
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (lvd_load_relaxed_u32(&t->endpoint[k].owner) == 1 + i) {
      mc_broadcast_call(d, k);
      if (d->transport->bury) d->transport->bury(d, k);
      lvd_store_relaxed_u32(&t->endpoint[k].owner, 0);
    }
  for (uint32_t k = 0; k < MC_NODES; k++)
    if (lvd_load_relaxed_u32(&t->node[k].owner) == 1 + i)
      lvd_store_relaxed_u32(&t->node[k].owner, 0);
  lvd_store_release_u32(&t->process[i].serial, 0);
  lvd_add_release_u32(&t->deaths, 1);
}

/* Behind the gate. True: process `i` was dead, or is no process; its lock is ours now. */
static bool bury(mc_domain *d, uint32_t i) {
  if (!lvd_os_file_lock_acquire(d->file, ALIVE + i, false)) return false;
  if (lvd_load_relaxed_u32(&d->tables->process[i].serial)) {
    char name[64];
    name_bell(name, sizeof name, d->number, i);
    lvd_os_directory_remove(d->directory, name);
    clear_process(d, i);
  }
  return true;
}

bool mc_bury(mc_domain *d, uint32_t i) {
  if (i == d->process || !bury(d, i)) return false;
  lvd_os_file_lock_release(d->file, ALIVE + i);
  return true;
}

static void look_after(mc_domain *d, uint32_t i) {
  if (i == d->process || lvd_os_file_lock_is_held(d->file, ALIVE + i, 1)) return;
  mc_gate_enter(d);
  mc_bury(d, i);
  mc_gate_leave(d);
  mc_ring_all(d, NULL);
}

/* ---- the notifier ---------------------------------------------------------------------------- */

static void forget(mc_domain *d, uint32_t i) {
  lvd_os_close(d->other[i].watch);
  lvd_os_close(d->other[i].bell);
  d->other[i].watch = d->other[i].bell = -1;
  d->other[i].serial = 0;
}

/* The notifier may not have met it yet, or know its place by who was there before. */
void mc_ring_process(mc_domain *d, uint32_t i) {
  uint32_t serial = lvd_load_relaxed_u32(&d->tables->process[i].serial);
  char name[64];
  lvd_os_lock(&d->lock);
  bool known = d->other[i].bell >= 0 && d->other[i].serial == serial;
  name_bell(name, sizeof name, d->number, i);
  int bell = known ? d->other[i].bell : lvd_os_fifo_open(d->directory, name);
  if (bell >= 0) lvd_os_fifo_signal(bell);
  if (!known) lvd_os_close(bell);
  lvd_os_unlock(&d->lock);
}

/* Who is new, and who has gone. True: somebody has to be looked after from time to time. */
static bool meet(mc_domain *d) {
  bool now_and_then = false;
  uint32_t joins = lvd_load_relaxed_u32(&d->tables->joins);
  if (joins != d->joins) { /* who has rung enters himself, or has died over it */
    mc_gate_enter(d);
    mc_gate_leave(d);
    d->joins = joins;
  }
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    uint32_t serial = lvd_load_relaxed_u32(&d->tables->process[i].serial);
    if (i == d->process) continue;
    if (serial != d->other[i].serial) {
      char name[64];
      name_bell(name, sizeof name, d->number, i);
      lvd_os_lock(&d->lock);
      forget(d, i);
      if (serial) {
        /* The one that holds the lock, whatever the table says. */
        d->other[i].watch = lvd_os_process_exit_fd(lvd_os_file_lock_holder(d->file, ALIVE + i));
        d->other[i].bell = lvd_os_fifo_open(d->directory, name);
        d->other[i].serial = serial;
      }
      lvd_os_unlock(&d->lock);
      /* Still alive with the descriptor in hand: then it is the right one's. */
      if (serial) look_after(d, i);
    }
    now_and_then |= d->other[i].serial && d->other[i].watch < 0;
  }
  return now_and_then;
}

static void notifier(void *argument) {
  mc_domain *d = argument;
  static const uint32_t all = 1 + MC_PROCESSES;
  uint32_t has = 0;
  lvd_os_block_signals();
  while (!lvd_load_relaxed_u32(&d->stop)) {
    uint32_t serves = lvd_load_relaxed_u32(&d->serves);
    if (serves != has) lvd_os_thread_set_realtime(has = serves);
    bool now_and_then = meet(d), ready[1 + MC_PROCESSES];
    int fd[1 + MC_PROCESSES];
    fd[0] = d->bell;
    for (uint32_t i = 0; i < MC_PROCESSES; i++) fd[1 + i] = d->other[i].watch;
    mc_wake_fibers(d);
    lvd_os_poll_many(fd, ready, all, now_and_then ? LOOK_MS * (int64_t)1000000 : -1);
    for (uint32_t i = 0; i < MC_PROCESSES; i++)
      if (ready[1 + i] || (d->other[i].serial && d->other[i].watch < 0)) {
        look_after(d, i);
        if (ready[1 + i]) {
          lvd_os_lock(&d->lock);
          forget(d, i);
          lvd_os_unlock(&d->lock);
        }
      }
  }
}

/* ---- joining -------------------------------------------------------------------------------- */

/* Nobody else is in it: nor does anybody listen. */
static void remove_bells(mc_domain *d) {
  char name[64];
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    name_bell(name, sizeof name, d->number, i);
    lvd_os_directory_remove(d->directory, name);
  }
}

/* MC_WHATEVER: nobody has said which. */
static lvd_status look_up_wish(uint32_t *wish) {
  const char *name = *wish == MC_AS_SAID ? getenv("LEVADA_MCAPI_TRANSPORT") : NULL;
  if (*wish == MC_AS_SAID) *wish = name && *name ? 0 : MC_WHATEVER;
  for (uint32_t i = 0; i < TRANSPORTS && !*wish; i++)
    if (strcmp(transports[i]->name, name) == 0) *wish = 1 + i;
  return *wish == MC_WHATEVER || (*wish && *wish <= TRANSPORTS) ? LVD_OK : LVD_E_UNKNOWN;
}

/* Then it is a number, or MC_ALONE. */
lvd_status mc_names_open(int64_t *group, int *directory) {
  const char *name = *group == MC_GROUP_AS_SAID ? getenv("LEVADA_MCAPI_GROUP") : NULL;
  if (*group == MC_GROUP_AS_SAID) *group = MC_ALONE;
  lvd_status status = name && *name ? lvd_os_group_find(name, group) : LVD_OK;
  return status == LVD_OK ? lvd_os_directory_open(*group, directory) : status;
}

uint32_t mc_transport_number(const mc_domain *d) {
  uint32_t i = 0;
  while (transports[i] != d->transport) i++;
  return i;
}

/* Nobody else is in it: whatever was left is taken away, by whichever transport; in a file that has just been
 * made nobody has been. */
static lvd_status lay_out(mc_domain *d, uint32_t wish) {
  uint32_t transport = wish == MC_WHATEVER ? 0 : wish - 1;
  size_t size;
  bool is_new = lvd_os_shared_size(d->file, &size) == LVD_OK && size == 0;
  if (d->group >= 0 && transports[transport] != &mc_shm) return LVD_E_STATE;
  remove_bells(d);
  for (uint32_t i = 0; i < TRANSPORTS; i++)
    if (transports[i]->clear && d->group < 0 && (i == transport || !is_new))
      transports[i]->clear(d);
  lvd_status status = lvd_os_file_clear(d->file, mc_size());
  if (status == LVD_OK) status = lvd_os_shared_commit(d->file, 0, mc_units(sizeof(mc_tables)));
  if (status != LVD_OK) return status;
  mc_tables *t = lvd_os_shared_map(d->file, 0, mc_units(sizeof *t), 0);
  if (!t) return LVD_E_MEMORY;
  t->layout = MC_LAYOUT;
  t->line = LVD_LINE;
  t->processes = MC_PROCESSES;
  t->nodes = MC_NODES;
  t->endpoints = MC_ENDPOINTS;
  t->slots = MC_SLOTS;
  t->transport = transport;
  t->size = mc_size();
  d->transport = transports[transport];
  lvd_store_relaxed_u32(&t->magic, MC_MAGIC);
  d->tables = t;
  return LVD_OK;
}

bool mc_tables_fit(const mc_tables *t) {
  return lvd_load_relaxed_u32(&t->magic) == MC_MAGIC && t->layout == MC_LAYOUT &&
         t->line == LVD_LINE && t->processes == MC_PROCESSES && t->nodes == MC_NODES &&
         t->endpoints == MC_ENDPOINTS && t->slots == MC_SLOTS && t->size == mc_size();
}

static lvd_status take_part(mc_domain *d, uint32_t wish) {
  size_t size;
  lvd_status status = lvd_os_shared_size(d->file, &size);
  if (status != LVD_OK) return status;
  if (size != mc_size()) return LVD_E_LAYOUT;
  mc_tables *t = lvd_os_shared_map(d->file, 0, mc_units(sizeof *t), 0);
  if (!t) return LVD_E_MEMORY;
  d->tables = t;
  uint32_t transport = *(const volatile uint32_t *)&t->transport;
  if (!mc_tables_fit(t) || transport >= TRANSPORTS) return LVD_E_LAYOUT;
  if (d->group >= 0 && transports[transport] != &mc_shm) return LVD_E_LAYOUT;
  d->transport = transports[transport];
  return wish == MC_WHATEVER || wish == 1 + transport ? LVD_OK : LVD_E_STATE;
}

/* Behind the gate: everybody is to look at the table when we have left the gate, or have died there. So
 * nobody is in the table whom nobody watches. False: somebody cannot be told (we have no descriptor left). */
static bool announce(mc_domain *d) {
  lvd_add_relaxed_u32(&d->tables->joins, 1);
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (i == d->process || !lvd_load_relaxed_u32(&d->tables->process[i].serial)) continue;
    char name[64];
    name_bell(name, sizeof name, d->number, i);
    int bell = lvd_os_fifo_open(d->directory, name);
    if (bell < 0 && mc_file_alive(d->file, i)) return false;
    if (bell >= 0) lvd_os_fifo_signal(bell);
    lvd_os_close(bell);
  }
  return true;
}

/* A place in the table of processes, and its lock. Behind the gate. `fences`: we have no barrier for all. */
static lvd_status enter(mc_domain *d, bool fences) {
  char name[64];
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (!bury(d, i)) continue;
    name_bell(name, sizeof name, d->number, i);
    lvd_status status = lvd_os_fifo_create(d->directory, name, &d->bell);
    if (status != LVD_OK) return status;
    mc_process *p = &d->tables->process[i];
    d->process = i;
    do d->serial = lvd_add_relaxed_u32(&d->tables->next_serial, 1) + 1;
    while (d->serial == 0 || mc_is_alive(d, d->serial));
    if (!announce(d)) return LVD_E_SYSTEM;
    if (fences) lvd_store_relaxed_u32(&d->tables->fences, 1);
    lvd_store_relaxed_u32(&p->id, (uint32_t)lvd_os_process_self());
    lvd_store_relaxed_u32(&p->serial, d->serial);
    return d->transport->join ? d->transport->join(d) : LVD_OK;
  }
  return LVD_E_LIMIT;
}

/* Nobody is in a call any more that could look at it. */
static void put_away(mc_domain *d) {
  for (uint32_t i = 0; i < MC_PROCESSES; i++) forget(d, i);
  lvd_os_close(d->file); /* drops every lock */
  lvd_os_close(d->bell);
  lvd_os_close(d->directory);
  if (d->transport && d->transport->leave) d->transport->leave(d);
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) free(lvd_load_relaxed_ptr(&d->local[i]));
  lvd_os_shared_unmap(d->tables, mc_units(sizeof *d->tables), 0);
  free(d);
}

/* In a child that a process forks nothing of this is the child's. */
static void forget_all(void) {
  domains_lock = (lvd_os_mutex){{0}};
  domains = NULL;
}

static lvd_status join(mc_domain *d, uint32_t wish) {
  char name[64];
  mc_file_name(name, sizeof name, d->number);
  lvd_status status = LVD_OK;
  /* Takes tens of milliseconds where we have threads: not behind the gate, where others wait. */
  bool fences = !lvd_os_global_barrier_prepare();
  for (int i = 0; i < TRIES && status == LVD_OK; i++) {
    status = lvd_os_file_open(d->directory, name, &d->file);
    if (status != LVD_OK) break;
    lvd_os_file_lock_acquire(d->file, GATE, true);
    /* Who left last has taken the name away, and ours with it. */
    if (!lvd_os_file_is_removed(d->file)) {
      bool alone = !lvd_os_file_lock_is_held(d->file, ALIVE, MC_PROCESSES);
      status = alone ? lay_out(d, wish) : take_part(d, wish);
      if (status == LVD_OK) status = enter(d, fences);
      lvd_os_file_lock_release(d->file, GATE);
      return status;
    }
    lvd_os_close(d->file);
    d->file = -1;
  }
  return status == LVD_OK ? LVD_E_SYSTEM : status;
}

/* Out of the table; who is the last takes the names away. */
static void withdraw(mc_domain *d) {
  char name[64];
  mc_gate_enter(d);
  clear_process(d, d->process);
  name_bell(name, sizeof name, d->number, d->process);
  lvd_os_directory_remove(d->directory, name);
  /* Still behind the gate: of two that leave, the second finds that the first has left. */
  lvd_os_file_lock_release(d->file, ALIVE + d->process);
  if (!lvd_os_file_lock_is_held(d->file, ALIVE, MC_PROCESSES)) {
    remove_bells(d);
    if (d->transport->clear) d->transport->clear(d);
    mc_file_name(name, sizeof name, d->number);
    lvd_os_directory_remove(d->directory, name);
  }
  mc_gate_leave(d);
  mc_ring_all(d, NULL);
}

lvd_status mc_domain_join(mcapi_domain_t number, uint32_t wish, int64_t group, mc_domain **out) {
  static bool at_fork;
  int directory = -1;
  lvd_status status = look_up_wish(&wish);
  if (status == LVD_OK) status = mc_names_open(&group, &directory);
  if (status != LVD_OK) return status;
  lvd_os_lock(&domains_lock);
  if (!at_fork) lvd_os_at_fork(NULL, NULL, forget_all);
  at_fork = true;
  mc_domain *d = domains;
  while (d && (d->number != number || d->group != group)) d = d->next;
  if (!d && !(d = calloc(1, sizeof *d))) status = LVD_E_MEMORY;
  if (d && d->tables && wish != MC_WHATEVER && wish != 1 + mc_transport_number(d))
    status = LVD_E_STATE;
  if (d && !d->tables) {
    d->number = number;
    d->group = group;
    d->directory = directory;
    d->file = d->bell = directory = -1;
    for (uint32_t i = 0; i < MC_PROCESSES; i++) d->other[i].watch = d->other[i].bell = -1;
    status = join(d, wish);
    if (status == LVD_OK) {
      status = lvd_os_thread_start(&d->notifier, -1, "levada/mcapi", notifier, d);
      if (status != LVD_OK) withdraw(d);
    }
    if (status == LVD_OK) {
      d->next = domains;
      domains = d;
    } else {
      put_away(d);
    }
  }
  if (status == LVD_OK) {
    d->users++;
    *out = d;
  }
  lvd_os_unlock(&domains_lock);
  lvd_os_close(directory);
  return status;
}

void mc_domain_leave(mc_domain *d) {
  lvd_os_lock(&domains_lock);
  if (--d->users == 0) {
    mc_domain **at = &domains;
    while (*at != d) at = &(*at)->next;
    *at = d->next;
    lvd_store_relaxed_u32(&d->stop, 1);
    lvd_os_fifo_signal(d->bell);
    lvd_os_thread_join(d->notifier);
    withdraw(d);
    put_away(d);
  }
  lvd_os_unlock(&domains_lock);
}
