/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Joining and leaving a domain; the tables lock; removal of dead processes; and the notifier, a
 * thread of each process that sleeps until another process joins, dies, or signals it to wake a
 * fiber. */
#include "../transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Byte-range locks of the file: the tables lock, then one per process index. */
enum { TABLES_LOCK = 0, FIRST_PROCESS_LOCK = 1, JOIN_ATTEMPTS = 100, POLL_MS = 50 };

/* Indexed by transport number. */
static const mc_transport *const transports[] = {&mc_shm, &mc_pmq};
enum { TRANSPORTS = sizeof transports / sizeof *transports };

static lvd_os_mutex domains_lock;
static mc_domain *domains;

void mc_file_name(char *out, size_t size, mcapi_domain_t number) {
  snprintf(out, size, "mcapi-%u", (unsigned)number);
}
static void fifo_name(char *out, size_t size, mcapi_domain_t number, uint32_t process) {
  snprintf(out, size, "mcapi-%u.%u", (unsigned)number, (unsigned)process);
}

/* ---- the tables lock ------------------------------------------------------------------------- */

void mc_tables_lock(mc_domain *d) {
  lvd_os_lock(&d->tables_mutex);
  lvd_os_file_lock_acquire(d->file, TABLES_LOCK, true);
}

void mc_tables_unlock(mc_domain *d) {
  lvd_os_file_lock_release(d->file, TABLES_LOCK);
  lvd_os_unlock(&d->tables_mutex);
}

/* ---- dead processes -------------------------------------------------------------------------- */

bool mc_is_alive(const mc_domain *d, uint32_t serial) {
  for (uint32_t i = 0; i < MC_PROCESSES; i++)
    if (lvd_load_acquire_u32(&d->tables->process[i].serial) == serial) return true;
  return false;
}

bool mc_file_process_is_alive(int file, uint32_t i) {
  return lvd_os_file_lock_is_held(file, FIRST_PROCESS_LOCK + i, 1);
}

/* Removes the records of process `i`. With the tables lock. All its endpoints become invisible
 * first, since a transport's cleanup takes time. The process's own record is cleared last: if this
 * process dies meanwhile, the next one repeats the work. */
static void clear_records(mc_domain *d, uint32_t i) {
  mc_tables *t = d->tables;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    uint32_t handle = lvd_load_relaxed_u32(&t->endpoint[k].handle);
    if (!handle || lvd_load_relaxed_u32(&t->endpoint[k].owner) != 1 + i) continue;
    lvd_a64 *past = &t->endpoint[k].history;
    lvd_store_relaxed_u64(past, lvd_load_relaxed_u64(past) | (uint64_t)1 << MC_GENERATION_BITS);
    lvd_store_release_u32(&t->endpoint[k].handle, 0);
  }
  /* Resets the ends that it was connected to, or had begun to connect. */
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    mcapi_endpoint_t handle = lvd_load_relaxed_u32(&t->endpoint[k].handle);
    if (handle && mc_index(handle) == k) mc_channel_reset_half_connected(d, handle);
  }
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (lvd_load_relaxed_u32(&t->endpoint[k].owner) == 1 + i) {
      mc_broadcast_changed(d, k);
      if (d->transport->reap) d->transport->reap(d, k);
      lvd_store_relaxed_u32(&t->endpoint[k].owner, 0);
    }
  for (uint32_t k = 0; k < MC_NODES; k++)
    if (lvd_load_relaxed_u32(&t->node[k].owner) == 1 + i)
      lvd_store_relaxed_u32(&t->node[k].owner, 0);
  lvd_store_release_u32(&t->process[i].serial, 0);
  lvd_add_release_u32(&t->deaths, 1);
}

/* Acquires the file lock of process `i` if it is free, and removes the records that are left. With
 * the tables lock. True: process `i` was dead, or the index was free; the caller holds its file
 * lock now. */
static bool lock_if_dead(mc_domain *d, uint32_t i) {
  if (!lvd_os_file_lock_acquire(d->file, FIRST_PROCESS_LOCK + i, false)) return false;
  if (lvd_load_relaxed_u32(&d->tables->process[i].serial)) {
    char name[64];
    fifo_name(name, sizeof name, d->number, i);
    lvd_os_directory_remove(d->directory, name);
    clear_records(d, i);
  }
  return true;
}

bool mc_reap_process(mc_domain *d, uint32_t i) {
  if (i == d->process || !lock_if_dead(d, i)) return false;
  lvd_os_file_lock_release(d->file, FIRST_PROCESS_LOCK + i);
  return true;
}

static void reap_if_dead(mc_domain *d, uint32_t i) {
  if (i == d->process || lvd_os_file_lock_is_held(d->file, FIRST_PROCESS_LOCK + i, 1)) return;
  mc_tables_lock(d);
  mc_reap_process(d, i);
  mc_tables_unlock(d);
  mc_notify_all(d, NULL);
}

/* ---- the notifier ---------------------------------------------------------------------------- */

static void close_descriptors(mc_domain *d, uint32_t i) {
  lvd_os_close(d->others[i].exit_fd);
  lvd_os_close(d->others[i].fifo);
  d->others[i].exit_fd = d->others[i].fifo = -1;
  d->others[i].serial = 0;
}

/* The notifier may not have seen process `i` yet, or hold descriptors of an earlier process at that
 * index. Then its FIFO is opened here. */
void mc_notify_process(mc_domain *d, uint32_t i) {
  uint32_t serial = lvd_load_relaxed_u32(&d->tables->process[i].serial);
  char name[64];
  lvd_os_lock(&d->lock);
  bool known = d->others[i].fifo >= 0 && d->others[i].serial == serial;
  fifo_name(name, sizeof name, d->number, i);
  int fifo = known ? d->others[i].fifo : lvd_os_fifo_open(d->directory, name);
  if (fifo >= 0) lvd_os_fifo_signal(fifo);
  if (!known) lvd_os_close(fifo);
  lvd_os_unlock(&d->lock);
}

/* Opens descriptors of new members and closes those of former ones. True: some member has no exit
 * descriptor and must be polled. */
static bool update_others(mc_domain *d) {
  bool must_poll = false;
  uint32_t joins = lvd_load_relaxed_u32(&d->tables->joins);
  /* the process that signalled this enters the table itself, or died doing so */
  if (joins != d->joins) {
    mc_tables_lock(d);
    mc_tables_unlock(d);
    d->joins = joins;
  }
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    uint32_t serial = lvd_load_relaxed_u32(&d->tables->process[i].serial);
    if (i == d->process) continue;
    if (serial != d->others[i].serial) {
      char name[64];
      fifo_name(name, sizeof name, d->number, i);
      lvd_os_lock(&d->lock);
      close_descriptors(d, i);
      if (serial) {
        /* Of the process that holds the lock, whatever pid the table names. */
        d->others[i].exit_fd =
            lvd_os_process_exit_fd(lvd_os_file_lock_holder(d->file, FIRST_PROCESS_LOCK + i));
        d->others[i].fifo = lvd_os_fifo_open(d->directory, name);
        d->others[i].serial = serial;
      }
      lvd_os_unlock(&d->lock);
      /* It is alive after its descriptor was opened: so the descriptor is of that process. */
      if (serial) reap_if_dead(d, i);
    }
    must_poll |= d->others[i].serial && d->others[i].exit_fd < 0;
  }
  return must_poll;
}

static void notifier_main(void *argument) {
  mc_domain *d = argument;
  static const uint32_t all = 1 + MC_PROCESSES;
  uint32_t priority = 0;
  lvd_os_block_signals();
  while (!lvd_load_relaxed_u32(&d->stop)) {
    uint32_t wanted = lvd_load_relaxed_u32(&d->notifier_priority);
    if (wanted != priority) lvd_os_thread_set_realtime(priority = wanted);
    bool must_poll = update_others(d), ready[1 + MC_PROCESSES];
    int fd[1 + MC_PROCESSES];
    fd[0] = d->fifo;
    for (uint32_t i = 0; i < MC_PROCESSES; i++) fd[1 + i] = d->others[i].exit_fd;
    mc_wake_fibers(d);
    lvd_os_poll_many(fd, ready, all, must_poll ? POLL_MS * (int64_t)1000000 : -1);
    for (uint32_t i = 0; i < MC_PROCESSES; i++)
      if (ready[1 + i] || (d->others[i].serial && d->others[i].exit_fd < 0)) {
        reap_if_dead(d, i);
        if (ready[1 + i]) {
          lvd_os_lock(&d->lock);
          close_descriptors(d, i);
          lvd_os_unlock(&d->lock);
        }
      }
  }
}

/* ---- joining --------------------------------------------------------------------------------- */

/* There is no other member, so no FIFO has a reader. */
static void remove_fifos(mc_domain *d) {
  char name[64];
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    fifo_name(name, sizeof name, d->number, i);
    lvd_os_directory_remove(d->directory, name);
  }
}

/* *requested is then 1 + a transport number, or MC_ANY_TRANSPORT if none was named. */
static lvd_status resolve_transport(uint32_t *requested) {
  const char *name =
      *requested == MC_TRANSPORT_FROM_ENVIRONMENT ? getenv("LEVADA_MCAPI_TRANSPORT") : NULL;
  if (*requested == MC_TRANSPORT_FROM_ENVIRONMENT)
    *requested = name && *name ? 0 : MC_ANY_TRANSPORT;
  for (uint32_t i = 0; i < TRANSPORTS && !*requested; i++)
    if (strcmp(transports[i]->name, name) == 0) *requested = 1 + i;
  return *requested == MC_ANY_TRANSPORT || (*requested && *requested <= TRANSPORTS)
             ? LVD_OK
             : LVD_E_NOT_FOUND;
}

lvd_status mc_domain_directory_open(int64_t *group, int *directory) {
  const char *name = *group == MC_GROUP_FROM_ENVIRONMENT ? getenv("LEVADA_MCAPI_GROUP") : NULL;
  if (*group == MC_GROUP_FROM_ENVIRONMENT) *group = MC_NO_GROUP;
  lvd_status status = name && *name ? lvd_os_group_find(name, group) : LVD_OK;
  return status == LVD_OK ? lvd_os_directory_open(*group, directory) : status;
}

uint32_t mc_transport_number(const mc_domain *d) {
  uint32_t i = 0;
  while (transports[i] != d->transport) i++;
  return i;
}

/* There is no other member: removes what any transport left behind, and initializes the file. A
 * file that was just created had no members. */
static lvd_status format_file(mc_domain *d, uint32_t requested) {
  uint32_t transport = requested == MC_ANY_TRANSPORT ? 0 : requested - 1;
  size_t size;
  bool is_new = lvd_os_shared_size(d->file, &size) == LVD_OK && size == 0;
  if (d->group >= 0 && transports[transport] != &mc_shm) return LVD_E_STATE;
  remove_fifos(d);
  for (uint32_t i = 0; i < TRANSPORTS; i++)
    if (transports[i]->remove_all && d->group < 0 && (i == transport || !is_new))
      transports[i]->remove_all(d);
  lvd_status status = lvd_os_file_clear(d->file, mc_file_size());
  if (status == LVD_OK)
    status = lvd_os_shared_commit(d->file, 0, mc_round_to_granules(sizeof(mc_tables)));
  if (status != LVD_OK) return status;
  mc_tables *t = lvd_os_shared_map(d->file, 0, mc_round_to_granules(sizeof *t), 0);
  if (!t) return LVD_E_MEMORY;
  t->layout_version = MC_LAYOUT_VERSION;
  t->cache_line_bytes = LVD_CACHE_LINE;
  t->processes = MC_PROCESSES;
  t->nodes = MC_NODES;
  t->endpoints = MC_ENDPOINTS;
  t->slots = MC_SLOTS;
  t->transport = transport;
  t->size = mc_file_size();
  d->transport = transports[transport];
  lvd_store_relaxed_u32(&t->magic, MC_MAGIC);
  d->tables = t;
  return LVD_OK;
}

bool mc_tables_fit(const mc_tables *t) {
  return lvd_load_relaxed_u32(&t->magic) == MC_MAGIC && t->layout_version == MC_LAYOUT_VERSION &&
         t->cache_line_bytes == LVD_CACHE_LINE && t->processes == MC_PROCESSES &&
         t->nodes == MC_NODES && t->endpoints == MC_ENDPOINTS && t->slots == MC_SLOTS &&
         t->size == mc_file_size();
}

static lvd_status map_existing(mc_domain *d, uint32_t requested) {
  size_t size;
  lvd_status status = lvd_os_shared_size(d->file, &size);
  if (status != LVD_OK) return status;
  if (size != mc_file_size()) return LVD_E_ABI;
  mc_tables *t = lvd_os_shared_map(d->file, 0, mc_round_to_granules(sizeof *t), 0);
  if (!t) return LVD_E_MEMORY;
  d->tables = t;
  uint32_t transport = *(const volatile uint32_t *)&t->transport;
  if (!mc_tables_fit(t) || transport >= TRANSPORTS) return LVD_E_ABI;
  if (d->group >= 0 && transports[transport] != &mc_shm) return LVD_E_ABI;
  d->transport = transports[transport];
  return requested == MC_ANY_TRANSPORT || requested == 1 + transport ? LVD_OK : LVD_E_STATE;
}

/* Makes every member read the process table again once this process has released the tables lock,
 * or has died with it. So no process is in the table without being watched. With the tables lock.
 * False: a member cannot be signalled (no descriptor is left). */
static bool announce(mc_domain *d) {
  lvd_add_relaxed_u32(&d->tables->joins, 1);
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (i == d->process || !lvd_load_relaxed_u32(&d->tables->process[i].serial)) continue;
    char name[64];
    fifo_name(name, sizeof name, d->number, i);
    int fifo = lvd_os_fifo_open(d->directory, name);
    if (fifo < 0 && mc_file_process_is_alive(d->file, i)) return false;
    if (fifo >= 0) lvd_os_fifo_signal(fifo);
    lvd_os_close(fifo);
  }
  return true;
}

/* Takes an index in the process table, and its file lock. With the tables lock. `use_fences`: this
 * process has no global membarrier. */
static lvd_status enter_table(mc_domain *d, bool fences) {
  char name[64];
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (!lock_if_dead(d, i)) continue;
    fifo_name(name, sizeof name, d->number, i);
    lvd_status status = lvd_os_fifo_create(d->directory, name, &d->fifo);
    if (status != LVD_OK) return status;
    mc_process *p = &d->tables->process[i];
    d->process = i;
    do d->serial = lvd_add_relaxed_u32(&d->tables->next_serial, 1) + 1;
    while (d->serial == 0 || mc_is_alive(d, d->serial));
    if (!announce(d)) return LVD_E_SYSTEM;
    if (fences) lvd_store_relaxed_u32(&d->tables->use_fences, 1);
    lvd_store_relaxed_u32(&p->pid, (uint32_t)lvd_os_process_self());
    lvd_store_relaxed_u32(&p->serial, d->serial);
    return d->transport->join ? d->transport->join(d) : LVD_OK;
  }
  return LVD_E_LIMIT;
}

/* Called when no call can access the domain any more. */
static void free_domain(mc_domain *d) {
  for (uint32_t i = 0; i < MC_PROCESSES; i++) close_descriptors(d, i);
  lvd_os_close(d->file); /* releases all file locks */
  lvd_os_close(d->fifo);
  lvd_os_close(d->directory);
  if (d->transport && d->transport->leave) d->transport->leave(d);
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) free(lvd_load_relaxed_ptr(&d->local[i]));
  lvd_os_shared_unmap(d->tables, mc_round_to_granules(sizeof *d->tables), 0);
  free(d);
}

/* A forked child is no member of its parent's domains. */
static void forget_domains(void) {
  domains_lock = (lvd_os_mutex){{0}};
  domains = NULL;
}

static lvd_status join(mc_domain *d, uint32_t requested) {
  char name[64];
  mc_file_name(name, sizeof name, d->number);
  lvd_status status = LVD_OK;
  /* Takes tens of milliseconds in a process with threads, so it is done without the tables lock. */
  bool fences = !lvd_os_global_barrier_prepare();
  for (int i = 0; i < JOIN_ATTEMPTS && status == LVD_OK; i++) {
    status = lvd_os_file_open(d->directory, name, &d->file);
    if (status != LVD_OK) break;
    lvd_os_file_lock_acquire(d->file, TABLES_LOCK, true);
    /* The last member removes the name of the file, even if this process has just opened it. */
    if (!lvd_os_file_is_removed(d->file)) {
      bool alone = !lvd_os_file_lock_is_held(d->file, FIRST_PROCESS_LOCK, MC_PROCESSES);
      status = alone ? format_file(d, requested) : map_existing(d, requested);
      if (status == LVD_OK) status = enter_table(d, fences);
      lvd_os_file_lock_release(d->file, TABLES_LOCK);
      return status;
    }
    lvd_os_close(d->file);
    d->file = -1;
  }
  return status == LVD_OK ? LVD_E_SYSTEM : status;
}

/* Leaves the table; the last member removes the names. */
static void leave_table(mc_domain *d) {
  char name[64];
  mc_tables_lock(d);
  clear_records(d, d->process);
  fifo_name(name, sizeof name, d->number, d->process);
  lvd_os_directory_remove(d->directory, name);
  /* With the tables lock still held: of two processes that leave, the second sees that the first
   * has left. */
  lvd_os_file_lock_release(d->file, FIRST_PROCESS_LOCK + d->process);
  if (!lvd_os_file_lock_is_held(d->file, FIRST_PROCESS_LOCK, MC_PROCESSES)) {
    remove_fifos(d);
    if (d->transport->remove_all) d->transport->remove_all(d);
    mc_file_name(name, sizeof name, d->number);
    lvd_os_directory_remove(d->directory, name);
  }
  mc_tables_unlock(d);
  mc_notify_all(d, NULL);
}

lvd_status mc_domain_join(mcapi_domain_t number, uint32_t requested, int64_t group,
                          mc_domain **out) {
  static bool at_fork;
  int directory = -1;
  lvd_status status = resolve_transport(&requested);
  if (status == LVD_OK) status = mc_domain_directory_open(&group, &directory);
  if (status != LVD_OK) return status;
  lvd_os_lock(&domains_lock);
  if (!at_fork) lvd_os_at_fork(NULL, NULL, forget_domains);
  at_fork = true;
  mc_domain *d = domains;
  while (d && (d->number != number || d->group != group)) d = d->next;
  if (!d && !(d = calloc(1, sizeof *d))) status = LVD_E_MEMORY;
  if (d && d->tables && requested != MC_ANY_TRANSPORT && requested != 1 + mc_transport_number(d))
    status = LVD_E_STATE;
  if (d && !d->tables) {
    d->number = number;
    d->group = group;
    d->directory = directory;
    d->file = d->fifo = directory = -1;
    for (uint32_t i = 0; i < MC_PROCESSES; i++) d->others[i].exit_fd = d->others[i].fifo = -1;
    status = join(d, requested);
    if (status == LVD_OK) {
      status = lvd_os_thread_start(&d->notifier, -1, "levada/mcapi", notifier_main, d);
      if (status != LVD_OK) leave_table(d);
    }
    if (status == LVD_OK) {
      d->next = domains;
      domains = d;
    } else {
      free_domain(d);
    }
  }
  if (status == LVD_OK) {
    d->node_count++;
    *out = d;
  }
  lvd_os_unlock(&domains_lock);
  lvd_os_close(directory);
  return status;
}

void mc_domain_leave(mc_domain *d) {
  lvd_os_lock(&domains_lock);
  if (--d->node_count == 0) {
    mc_domain **at = &domains;
    while (*at != d) at = &(*at)->next;
    *at = d->next;
    lvd_store_relaxed_u32(&d->stop, 1);
    lvd_os_fifo_signal(d->fifo);
    lvd_os_thread_join(d->notifier);
    leave_table(d);
    free_domain(d);
  }
  lvd_os_unlock(&domains_lock);
}
