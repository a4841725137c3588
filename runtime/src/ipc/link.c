/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A link: its memory, its records, its doorbells, and the notifier thread. */
#include "link.h"
#include "../channel/channel_ring.h"

#include <stdlib.h>

enum { UNSENT_RECORDS_MAX = 1 << 16, ARENA_BYTES_MIN = 256 << 10 };

static lvd_link *link_of(lvd_waiter *bell) { return (lvd_link *)(void *)bell; }

/* ---- doorbells ------------------------------------------------------------------------------- */

static bool ring(lvd_waiter *bell) {
  lvd_link *link = link_of(bell);
  enum lvd_side other = link->side == LVD_PARENT ? LVD_CHILD : LVD_PARENT;
  if (lvd_exchange_release_u32(&link->segment->bell[other].rung, 1) == 1) return false;
  lvd_os_socket_signal(link->bell_end);
  return true;
}

void lvd_link_kill(lvd_link *link) {
  lvd_os_lock(&link->lock);
  if (!link->reaped && !link->peer.parent && link->peer.id > 0) lvd_os_process_kill(&link->peer);
  lvd_os_unlock(&link->lock);
}

/* A child that violates the protocol is killed. A parent cannot be: the child's callers get the
 * error. */
static void give_up(lvd_link *link, lvd_status why) {
  uint32_t open = 0;
  if (!lvd_cas_relaxed_u32(&link->gone, &open, 1 + (uint32_t)why)) return;
  if (!link->reaped && !link->peer.parent) lvd_os_process_kill(&link->peer);
  lvd_os_eventfd_signal(link->own_bell);
}

static void report_corrupt(lvd_link *link) { give_up(link, LVD_E_CORRUPT); }

void lvd_link_give_up(lvd_link *link, lvd_status why) {
  lvd_os_lock(&link->lock);
  give_up(link, why);
  lvd_os_unlock(&link->lock);
}

void lvd_link_report_corrupt(lvd_link *link) { lvd_link_give_up(link, LVD_E_CORRUPT); }

/* ---- parts of the memory --------------------------------------------------------------------- */

static uint64_t whole_units(const lvd_link *link, uint64_t size) {
  return (size + link->unit - 1) / link->unit * link->unit;
}

static uint64_t arena_of(const lvd_link *link) {
  return link->unit + 2 * (link->unit + link->records_ring);
}

void *lvd_link_map(const lvd_link *link, size_t offset, size_t head, size_t ring) {
  if (link->device) return link->device->map(link->device, link->base + offset, head, ring);
  return lvd_os_shared_map(link->memory, link->base + offset, head, ring);
}

/* Word by word: memory of a device may not support wider or unaligned access. */
void lvd_link_clear(void *at, size_t size) {
  volatile uint64_t *word = at;
  for (size_t i = 0; i < size / sizeof *word; i++) word[i] = 0;
}

uint64_t lvd_link_claim(lvd_link *link, uint64_t size) {
  if (size == 0 || size > link->size) return 0;
  size = whole_units(link, size);
  uint64_t at = arena_of(link);
  lvd_range **before = &link->ranges;
  for (; *before && (*before)->offset - at < size; before = &(*before)->next)
    at = (*before)->offset + (*before)->size;
  if (!*before && (at > link->size || link->size - at < size)) return 0;
  lvd_range *r = malloc(sizeof *r);
  if (!r) return 0;
  if (link->device) {
    lvd_link_clear((unsigned char *)link->segment + at, size);
  } else if (lvd_os_shared_commit(link->memory, link->base + at, size) != LVD_OK) {
    free(r);
    return 0;
  }
  *r = (lvd_range){at, size, *before};
  *before = r;
  return at;
}

void lvd_link_release(lvd_link *link, uint64_t offset) {
  for (lvd_range **at = &link->ranges, *r; (r = *at); at = &r->next) {
    if (r->offset != offset) continue;
    *at = r->next;
    if (!link->device) lvd_os_shared_decommit(link->memory, link->base + r->offset, r->size);
    free(r);
    return;
  }
}

/* ---- creating and joining -------------------------------------------------------------------- */

static uint32_t record_slots(void) {
  return lvd_ring_slots(LVD_RECORDS_PER_RING, sizeof(lvd_record));
}

static size_t slot_offset(const lvd_link *link, enum lvd_side to) {
  return link->unit + (to == LVD_CHILD ? 0 : link->unit + link->records_ring);
}

/* Maps the whole segment and the rings of records. */
static lvd_status map(lvd_link *link) {
  link->records_ring = (size_t)record_slots() * sizeof(lvd_record);
  link->segment = lvd_link_map(link, 0, link->size, 0);
  if (!link->segment) return LVD_E_MEMORY;
  for (int to = 0; to < 2; to++) {
    link->slot[to] =
        lvd_link_map(link, slot_offset(link, (enum lvd_side)to), link->unit, link->records_ring);
    if (!link->slot[to]) return LVD_E_MEMORY;
  }
  return LVD_OK;
}

static lvd_status attach(lvd_link *link) {
  enum lvd_side other = link->side == LVD_PARENT ? LVD_CHILD : LVD_PARENT;
  size_t size = link->unit + 2 * link->records_ring;
  link->out_peer = &link->bell;
  lvd_status status = lvd_producer_attach_shared(&link->out, &link->slot[other]->channel, size,
                                                 sizeof(lvd_record), &link->out_peer);
  if (status != LVD_OK) return status;
  return lvd_consumer_attach_shared(&link->in, &link->slot[link->side]->channel, size,
                                    sizeof(lvd_record), 0, &link->bell);
}

static void prepare(lvd_link *link, lvd_app *app, enum lvd_side side) {
  link->bell.wake = ring;
  link->side = side;
  link->app = app;
  link->look_ns = -1;
  link->memory = link->bell_end = link->own_bell = link->peer.pidfd = -1;
  link->unit = lvd_os_ring_granularity();
}

void lvd_link_prepare(lvd_link *link, lvd_app *app) { prepare(link, app, LVD_PARENT); }

lvd_status lvd_link_make(lvd_link *link, lvd_app *app, size_t base, size_t memory, bool wire,
                         int *child_bell) {
  int bell[2];
  prepare(link, app, LVD_PARENT);
  if (memory > SIZE_MAX / 8 || base > SIZE_MAX / 8) return LVD_E_ARGUMENT;
  link->base = base;
  link->records_ring = (size_t)record_slots() * sizeof(lvd_record);
  link->size = (size_t)(arena_of(link) + whole_units(link, memory));
  /* The memory of boards is mapped in units of 1 MiB. */
  if (wire) link->size = ((base + link->size + (1 << 20) - 1) & ~(((size_t)1 << 20) - 1)) - base;
  lvd_status status = lvd_os_eventfd_create(&link->own_bell);
  if (link->device)
    link->size = (link->device->size - base) / link->unit * link->unit;
  else if (status == LVD_OK)
    status = lvd_os_shared_create(base + link->size, &link->memory);
  if (status == LVD_OK && !link->device)
    status = lvd_os_shared_commit(link->memory, base, arena_of(link));
  if (status == LVD_OK) status = map(link);
  if (status != LVD_OK || (status = lvd_os_socketpair(bell, wire)) != LVD_OK) return status;
  link->bell_end = bell[0];
  *child_bell = bell[1];
  return link->device ? LVD_OK : lvd_link_fill(link);
}

size_t lvd_link_least(const lvd_link *link) {
  return 2 * (link->unit + (size_t)record_slots() * sizeof(lvd_record)) + ARENA_BYTES_MIN;
}

lvd_status lvd_link_fill(lvd_link *link) {
  lvd_segment *s = link->segment;
  if (link->device) lvd_link_clear(s, arena_of(link));
  s->magic = LVD_SEGMENT_MAGIC;
  s->abi_version = LVD_ABI_VERSION;
  s->line = LVD_CACHE_LINE;
  s->unit = (uint32_t)link->unit;
  s->size = link->size;
  s->parent = lvd_os_process_self();
  for (int to = 0; to < 2; to++) {
    lvd_channel *ch = &link->slot[to]->channel;
    lvd_channel_init(ch, (unsigned char *)ch + link->unit, sizeof(lvd_record), record_slots(),
                     LVD_RECORDS_PER_RING, 1, LVD_CHANNEL_MIRRORED);
  }
  return attach(link);
}

lvd_status lvd_link_join(lvd_link *link, lvd_app *app, int memory, int bell) {
  prepare(link, app, LVD_CHILD);
  link->memory = memory;
  link->bell_end = bell;
  lvd_status status = lvd_os_shared_size(memory, &link->size);
  if (status == LVD_OK) status = lvd_os_eventfd_create(&link->own_bell);
  if (status != LVD_OK) return status;
  if (link->size < sizeof(lvd_segment)) return LVD_E_CORRUPT;
  lvd_segment *s = lvd_os_shared_map(memory, 0, link->unit, 0);
  if (!s) return LVD_E_MEMORY;
  if (s->magic != LVD_SEGMENT_MAGIC)
    status = LVD_E_CORRUPT;
  else if (s->abi_version != LVD_ABI_VERSION || s->line != LVD_CACHE_LINE || s->unit != link->unit)
    status = LVD_E_ABI;
  else if (s->size != link->size)
    status = LVD_E_CORRUPT;
  /* Set also if this process refuses, so that the parent learns why. */
  lvd_store_relaxed_u32(&s->serves, 1 + LVD_ABI_VERSION);
  lvd_os_socket_signal(bell);
  int32_t parent = s->parent;
  lvd_os_shared_unmap(s, link->unit, 0);
  if (status == LVD_OK) status = lvd_os_process_parent(&link->peer, parent);
  if (status == LVD_OK) status = map(link);
  return status == LVD_OK ? attach(link) : status;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool put(lvd_link *link, const lvd_record *record) {
  if (lvd_room(&link->out, 1) < 1) return false;
  memcpy(lvd_put_span(&link->out), record, sizeof *record);
  lvd_put_done(&link->out, 1);
  lvd_push(&link->out);
  return true;
}

lvd_status lvd_link_send(lvd_link *link, const lvd_record *record) {
  lvd_os_lock(&link->lock);
  lvd_status status = lvd_link_state(link);
  if (status == LVD_OK && (link->unsents || !put(link, record))) {
    lvd_unsent *u = link->unsents < UNSENT_RECORDS_MAX ? malloc(sizeof *u) : NULL;
    if (u) {
      *u = (lvd_unsent){*record, NULL};
      if (link->last_unsent)
        link->last_unsent->next = u;
      else
        link->unsent = u;
      link->last_unsent = u;
      /* The first record without room: the notifier must wait for room, too. */
      if (link->unsents++ == 0) lvd_os_eventfd_signal(link->own_bell);
    } else {
      status = LVD_E_MEMORY;
    }
    if (link->out.corrupt || link->unsents == UNSENT_RECORDS_MAX) report_corrupt(link);
  }
  lvd_os_unlock(&link->lock);
  return status;
}

/* Under the lock: the waiter keeps its event until it has taken the lock. */
static void signal_sent(lvd_link *link) {
  if (link->all_sent) lvd_event_set(link->all_sent, 1);
  link->all_sent = NULL;
}

static void send_unsent(lvd_link *link) {
  for (lvd_unsent *u; (u = link->unsent) && put(link, &u->record);) {
    link->unsent = u->next;
    if (!u->next) link->last_unsent = NULL;
    link->unsents--;
    free(u);
  }
  if (!link->unsents) signal_sent(link);
  if (link->out.corrupt) report_corrupt(link);
}

void lvd_link_await_sent(lvd_link *link, int64_t timeout_ns) {
  lvd_event sent;
  lvd_event_init(&sent);
  lvd_os_lock(&link->lock);
  bool waits = link->unsents && lvd_link_state(link) == LVD_OK;
  if (waits) link->all_sent = &sent;
  lvd_os_unlock(&link->lock);
  if (!waits) return;
  lvd_event_wait(&sent, NULL, timeout_ns);
  lvd_os_lock(&link->lock);
  link->all_sent = NULL;
  lvd_os_unlock(&link->lock);
}

/* Takes the records that have come, at most LVD_RECORDS_PER_RING. Returns false if none are left.
 */
static bool take_records(lvd_link *link) {
  for (uint32_t i = 0; i < LVD_RECORDS_PER_RING; i++) {
    if (lvd_elements(&link->in, 1) < 1) {
      if (link->in.corrupt) lvd_link_report_corrupt(link);
      return false;
    }
    lvd_record record; /* a private copy: the other side can change the original */
    memcpy(&record, lvd_get_span(&link->in), sizeof record);
    lvd_get_done(&link->in, 1);
    lvd_pop(&link->in);
    record.name[sizeof record.name - 1] = 0;
    if (!lvd_shared_take(link, &record)) link->take(link, &record);
  }
  return true;
}

/* ---- the notifier ---------------------------------------------------------------------------- */

/* True if the child's process crashed, false if it was killed. Relaxed: only the flag is read here;
 * unit_process.c reads the text, after an acquire of its own. */
static bool has_failed(const lvd_link *link) {
  return link->side == LVD_PARENT &&
         (lvd_load_relaxed_u32(&link->segment->crash) == LVD_CRASH_WRITTEN ||
          (!link->behind && lvd_os_process_crashed(&link->peer)));
}

/* The other side has stopped using the memory. */
static void finish(lvd_link *link) {
  while (lvd_link_state(link) == LVD_OK && take_records(link)) {
  }
  uint32_t open = 0;
  lvd_cas_relaxed_u32(&link->gone, &open, 1 + (uint32_t)LVD_E_PEER_GONE);
  lvd_status why = lvd_link_state(link);
  if (why == LVD_E_PEER_GONE && has_failed(link)) why = LVD_E_FAULT;
  lvd_os_lock(&link->lock);
  lvd_shared_end(link, why);
  signal_sent(link);
  lvd_os_unlock(&link->lock);
  link->ended(link, why);
}

static bool is_gone(lvd_link *link) {
  lvd_os_lock(&link->lock);
  if (!link->reaped) link->reaped = lvd_os_process_has_exited(&link->peer);
  bool gone = link->reaped;
  lvd_os_unlock(&link->lock);
  return gone;
}

/* Arms what the notifier waits for. Returns true if it has come already. */
static bool arm(lvd_link *link) {
  lvd_os_lock(&link->lock);
  bool unsent = link->unsents != 0 && !link->out.corrupt;
  lvd_consumer_arm(&link->in, 1);
  if (unsent) lvd_producer_arm(&link->out, 1);
  lvd_fence_seq_cst();
  bool ready = lvd_elements_refresh(&link->in) || (unsent && lvd_room_refresh(&link->out));
  lvd_os_unlock(&link->lock);
  return ready;
}

static void notifier(void *argument) {
  lvd_link *link = argument;
  lvd_a32 *rung = &link->segment->bell[link->side].rung;
  lvd_take_priority(link->app->rt, LVD_PRIO_SERVICE); /* it only wakes and starts fibers */
  while (!lvd_load_relaxed_u32(&link->stop)) {
    lvd_exchange_acquire_u32(rung, 0);
    bool corrupt = lvd_link_state(link) != LVD_OK;
    bool more = !corrupt && take_records(link);
    lvd_os_lock(&link->lock);
    send_unsent(link);
    lvd_shared_wake(link);
    lvd_os_unlock(&link->lock);
    if (link->look) link->look(link);
    if (link->side == LVD_CHILD && !link->let_go && lvd_load_relaxed_u32(&link->segment->closing)) {
      link->let_go = true;
      link->ended(link, LVD_OK);
    }
    if (is_gone(link) || (corrupt && link->side == LVD_CHILD)) {
      finish(link);
      return;
    }
    if (!more && (corrupt || !arm(link)))
      lvd_os_signal_wait(link->bell_end, link->own_bell, &link->peer, link->look_ns);
  }
}

lvd_status lvd_link_begin(lvd_link *link, const char *name) {
  lvd_status status = lvd_os_thread_start(&link->notifier, -1, name, notifier, link);
  if (status == LVD_OK) lvd_add_relaxed_u32(&link->app->rt->links, 1);
  return status;
}

void lvd_link_end(lvd_link *link) {
  lvd_store_relaxed_u32(&link->stop, 1);
  lvd_os_eventfd_signal(link->own_bell);
  if (!link->notifier) return;
  lvd_os_thread_join(link->notifier);
  link->notifier = NULL;
  lvd_add_relaxed_u32(&link->app->rt->links, UINT32_MAX);
}

void lvd_link_free(lvd_link *link) {
  for (lvd_unsent *u = link->unsent, *next; u; u = next) {
    next = u->next;
    free(u);
  }
  lvd_shared_forget(link);
  for (lvd_range *r = link->ranges, *next; r; r = next) {
    next = r->next;
    free(r);
  }
  for (int to = 0; to < 2; to++)
    lvd_os_shared_unmap(link->slot[to], link->unit, link->records_ring);
  lvd_os_shared_unmap(link->segment, link->size, 0);
  lvd_os_process_close(&link->peer);
  lvd_os_close(link->memory);
  lvd_os_close(link->bell_end);
  lvd_os_close(link->own_bell);
}
