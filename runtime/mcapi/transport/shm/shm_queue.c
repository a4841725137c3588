/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Message queue of an endpoint in shared memory: an inbox, and a message per slot. Any process that
 * has the endpoint's handle can send; its owner receives.
 *
 * Cache line transfers of a short message between two cores, if the receiver is polling:
 *   1  the inbox line of the message's level: from the receiver, which polls it, to the sender,
 *      which posts
 *   2  the same line, back; requested for writing (mc_prefetch_write), since the receiver detaches
 *      the list
 *   3  the message's two lines, requested together
 * The lines of its slot were prefetched when the previous message was sent; all others belong to
 * one side or are only read. A receiver that has fallen behind detaches all messages of a level at
 * once, and leaves that line to the senders until it has read them. A sender makes two
 * read-modify-writes, to claim a slot and to post. Each waits until earlier stores have reached the
 * cache, those of a long message's lines included, while the sender of a packet need not wait: so
 * long messages have a lower rate than packets.
 *
 * Guarantees
 *   Q1  A message is received completely or not at all, whatever process dies or misbehaves.
 *   Q2  Slots of dead senders and dead receivers are reclaimed.
 *
 * Pairs of orders
 *   send: link (cas_release), store_release posted -> open: load_acquire posted, take      Q2
 *   receive: owner, then sending_id = 0 (release)  a death between the two               Q2
 *   receive: sending_id = 0, free (store_release)  -> send: claim (cas_acquire)            Q2
 *   delete: store_release handle                   -> send: load_acquire handle
 * A sender that found the endpoint just before it was deleted may post a message into the queue of
 * the next endpoint at its index. That one sees that the message is for another endpoint, and drops
 * it. */
#include "../../api/fast_path.h"

#include <stdlib.h>
#include <string.h>

enum {
  RECENT_SLOTS = 16,
  LINE = 64,
  PREFETCH_BYTES = 2048,
  READ_PREFETCH_BYTES = 1024,
  SENDING_ID_BLOCK = 1024,
  /* Long messages, and those that queue up, are spread over this number of bytes of each slot: more than a
   * core's private caches hold, for the reason in packet_ring.h. */
  LONG_MESSAGE_BYTES = 2048,
  SPREAD_BYTES = 32 * 1024
};

/* ---- mapping --------------------------------------------------------------------------------- */

mc_mapped_endpoint *mc_mapped_endpoint_at(mc_domain *d, uint32_t index) {
  mc_mapped_endpoint *p = lvd_load_acquire_ptr(&d->peer[index]);
  if (LVD_LIKELY(p != NULL)) return p;
  lvd_os_lock(&d->lock);
  p = lvd_load_relaxed_ptr(&d->peer[index]);
  if (!p && (p = calloc(1, sizeof *p))) {
    size_t at = mc_queue_at(index), head = mc_round_to_pages(sizeof(mc_queue));
    if (lvd_os_shared_commit(d->file, at, head) == LVD_OK)
      p->queue = lvd_os_shared_map(d->file, at, mc_queue_size(), 0);
    if (p->queue) {
      lvd_store_release_ptr(&d->peer[index], p);
    } else {
      free(p);
      p = NULL;
    }
  }
  lvd_os_unlock(&d->lock);
  return p;
}

/* Commits the pages of slot `n` up to `size` bytes, once: without them a copy could trap. */
static bool commit_pages(mc_domain *d, mc_mapped_endpoint *p, uint32_t index, uint32_t n,
                         size_t size) {
  size_t pages = mc_round_to_pages(MC_PAYLOAD_OFFSET + size) / MC_PAGE_BYTES;
  if (LVD_LIKELY(p->slot_pages[n] >= pages)) return true;
  size_t at = mc_queue_at(index) + mc_round_to_pages(sizeof(mc_queue)) + (size_t)n * MC_SLOT_BYTES;
  if (lvd_os_shared_commit(d->file, at, pages * MC_PAGE_BYTES) != LVD_OK) return false;
  p->slot_pages[n] = (uint8_t)pages;
  return true;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Offset of a message's payload in its slot, in cache lines. */
static uint32_t spread_offset(const mc_mapped_endpoint *p, size_t size) {
  uint32_t lines = (uint32_t)((size + LINE - 1) / LINE), places = SPREAD_BYTES / LINE / lines;
  return places > 1 ? lvd_load_relaxed_u32(&p->laps) % places * lines : 0;
}

/* Chooses the slot at which the next search begins, and prefetches its lines, which the receiver
 * has read. The search stays within a few slots unless those are occupied: their lines are in near
 * caches. */
static void prefetch_next_slot(mc_mapped_endpoint *p, uint32_t n, uint32_t slots, size_t size) {
  mc_queue *q = p->queue;
  uint32_t next = n + 1;
  if (next >= slots) {
    next = 0;
    lvd_store_relaxed_u32(&p->laps, lvd_load_relaxed_u32(&p->laps) + 1);
  } else if (next >= RECENT_SLOTS && size < LONG_MESSAGE_BYTES &&
             !lvd_load_relaxed_u32(&q->message[0].slot.owner)) {
    next = 0;
    lvd_store_relaxed_u32(&p->laps, 0);
  }
  lvd_store_relaxed_u32(&p->next_slot, next);
  mc_prefetch_write(&q->message[next]);
  mc_prefetch_write((const char *)&q->message[next] + LINE);
  /* Also prefetches its payload, assumed as long, if no receiver is reading there. */
  if (size > MC_INLINE_BYTES && !lvd_load_relaxed_u32(&q->message[next].slot.owner))
    mc_prefetch_write_range(mc_payload(q, next, spread_offset(p, size)),
                            size < PREFETCH_BYTES ? size : PREFETCH_BYTES);
}

/* A number that this process has never used. Taken in blocks, to save an atomic operation per
 * message. */
static uint64_t new_sending_id(mc_domain *d, mc_local_endpoint *local) {
  if (LVD_UNLIKELY(!local->sending_ids_left)) {
    local->next_sending_id = (uint32_t)lvd_add_relaxed_u64(&d->next_sending_id, SENDING_ID_BLOCK);
    local->sending_ids_left = SENDING_ID_BLOCK;
  }
  local->sending_ids_left--;
  return (uint64_t)d->serial << 32 | local->next_sending_id++;
}

MC_INLINE lvd_status send(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t to,
                          const void *buffer, size_t size, uint32_t level) {
  uint32_t index = mc_index(to);
  mc_endpoint *e = &d->tables->endpoint[index];
  if (lvd_load_acquire_u32(&e->handle) != to || !to) return LVD_E_PEER_GONE;
  mc_mapped_endpoint *p = lvd_load_acquire_ptr(&d->peer[index]);
  if (LVD_UNLIKELY(!p) && !(p = mc_mapped_endpoint_at(d, index))) return LVD_E_MEMORY;
  mc_queue *q = p->queue;
  if (size >= 512) mc_prefetch_write(&q->inbox.head[level]); /* transferred during the copy */
  uint32_t slots = mc_attribute(d, index, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS);
  if (slots == 0 || slots > MC_SLOTS) slots = MC_SLOTS;
  uint32_t n = lvd_slot_claim(mc_slots(q), slots, lvd_load_relaxed_u32(&p->next_slot), d->serial);
  if (n == slots) return LVD_E_TIMEOUT;
  mc_message *m = &q->message[n];
  uint64_t claim = new_sending_id(d, local);
  lvd_store_relaxed_u64(&m->sending_id, claim);
  bool small = size <= MC_INLINE_BYTES;
  uint32_t at = small ? 0 : spread_offset(p, size);
  if (!small && !commit_pages(d, p, index, n, at ? SPREAD_BYTES : size)) {
    at = 0; /* fewer pages may suffice */
    if (!commit_pages(d, p, index, n, size)) {
      lvd_slot_free(mc_slots(q), n);
      return LVD_E_MEMORY;
    }
  }
  lvd_store_relaxed_u32(&m->to, to);
  lvd_store_relaxed_u32(&m->from, lvd_load_relaxed_u32(&local->handle));
  lvd_store_relaxed_u32(&m->size, (uint32_t)size);
  lvd_store_relaxed_u32(&m->at, at);
  if (size) mc_copy(small ? m->inline_data : mc_payload(q, n, at), buffer, size);
  uint32_t node = lvd_load_relaxed_u32(&e->node);
  lvd_inbox_link_behind(&q->inbox, mc_slots(q), n, level, 0);
  lvd_store_release_u64(&q->posted[n].sending_id, claim);
  prefetch_next_slot(p, n, slots, size);
  mc_notify(d, node);
  return LVD_OK;
}

lvd_status mc_shm_send(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t to,
                       const void *buffer, size_t size, uint32_t level) {
  return send(d, local, to, buffer, size, level);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Before a slot is freed: makes this process its owner, so that it is reclaimed if this process
 * dies meanwhile (reap_dead_senders), and clears its sending_id, by which the next sender could be
 * taken to have posted (settle_slots). */
static void take_slot(const mc_domain *d, mc_queue *q, uint32_t n) {
  lvd_store_relaxed_u32(&q->message[n].slot.owner, d->serial);
  lvd_store_release_u64(&q->message[n].sending_id, 0);
}

static void free_slot(mc_domain *d, mc_local_endpoint *local, uint32_t n) {
  take_slot(d, local->queue, n);
  lvd_receiver_give_back(&local->receiver, n);
  mc_notify_set(d, &local->queue->room_waiters);
}

/* Frees slots that dead senders had claimed. */
static void reap_dead_senders(mc_domain *d, mc_local_endpoint *local) {
  uint32_t deaths = lvd_load_acquire_u32(&d->tables->deaths);
  if (LVD_LIKELY(deaths == local->deaths)) return;
  local->deaths = deaths;
  uint32_t freed = 0;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    uint32_t owner = lvd_load_relaxed_u32(&local->queue->message[n].slot.owner);
    if (owner && local->list[n] == LVD_SLOT_NOT_HELD && !mc_is_alive(d, owner))
      freed += lvd_receiver_reap(&local->receiver, owner);
  }
  if (freed) mc_notify_all(d, &local->queue->room_waiters);
}

/* Decides about slots that were claimed when this process opened the queue and have not arrived
 * since. If its sender has posted and it is in no list, a dead receiver had taken it, and it is
 * freed. Otherwise its sender is still writing (it will arrive), or that receiver had it. */
static void settle_slots(mc_domain *d, mc_local_endpoint *local) {
  mc_queue *q = local->queue;
  uint64_t done = 0;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    if (!(local->unsettled_slots >> n & 1)) continue;
    uint64_t posted = lvd_load_acquire_u64(&q->posted[n].sending_id);
    if (posted && posted == lvd_load_relaxed_u64(&q->message[n].sending_id))
      done |= (uint64_t)1 << n;
  }
  lvd_receiver_take(&local->receiver);
  if (local->receiver.corrupt) return;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    bool held = local->list[n] != LVD_SLOT_NOT_HELD, mine = done >> n & 1;
    if (!(local->unsettled_slots >> n & 1)) continue;
    if (mine && !held) {
      take_slot(d, q, n);
      lvd_slot_free(mc_slots(q), n);
    }
    if (mine || held || !lvd_load_relaxed_u32(&q->message[n].slot.owner))
      local->unsettled_slots &= ~((uint64_t)1 << n);
    if (mine && !held) mc_notify_all(d, &q->room_waiters);
  }
}

lvd_status mc_shm_open(mc_domain *d, mc_local_endpoint *local) {
  mc_mapped_endpoint *p = mc_mapped_endpoint_at(d, local->index);
  if (!p) return LVD_E_MEMORY;
  mc_queue *q = local->queue = p->queue;
  for (int round = 0; round < 2; round++) {
    lvd_receiver_init(&local->receiver, &q->inbox, mc_slots(q), MC_SLOTS, local->list);
    local->unsettled_slots = UINT64_MAX;
    settle_slots(d, local);
    if (!local->receiver.corrupt) break;
    lvd_inbox_init(&q->inbox); /* a previous owner has misbehaved; its list is dropped */
  }
  for (uint32_t n; (n = lvd_receiver_get(&local->receiver)) < MC_SLOTS;) free_slot(d, local, n);
  local->deaths = lvd_load_acquire_u32(&d->tables->deaths) - 1;
  reap_dead_senders(d, local);
  return LVD_OK;
}

void mc_shm_close(mc_domain *d, mc_local_endpoint *local) {
  for (uint32_t n; (n = lvd_receiver_get(&local->receiver)) < MC_SLOTS;) free_slot(d, local, n);
  mc_notify_all(d, &local->queue->room_waiters);
}

/* Detaches the lists of arrived messages, down to the level of those already detached: of that
 * level there is a message, and its line is left to the senders. The lines of the newest message
 * are prefetched first; if there is only one message, it is also the next. Its slot will be freed,
 * and the next message that this process sends waits for that line. */
MC_INLINE void take_arrived(mc_local_endpoint *local) {
  lvd_receiver *r = &local->receiver;
  const mc_queue *q = local->queue;
  for (uint32_t level = LVD_INBOX_LEVELS; level-- > 0 && !r->oldest[level] && !r->corrupt;) {
    uint32_t n = lvd_load_relaxed_u32(&q->inbox.head[level].newest);
    if (!n) continue;
    lvd_store_relaxed_u32(&local->last_level, level);
    if (n <= MC_SLOTS) {
      mc_prefetch_write(&q->message[n - 1]);
      __builtin_prefetch((const char *)&q->message[n - 1] + LINE);
    }
    lvd_receiver_take_level(r, level);
  }
}

/* Prefetches the next detached message, assumed as long and at the same offset in its slot: its
 * lines arrive during the copy of this one. */
MC_INLINE void prefetch_next_message(const mc_local_endpoint *local, size_t size, uint32_t at) {
  const lvd_receiver *r = &local->receiver;
  if (!r->ready) return;
  uint32_t level = LVD_INBOX_LEVELS - 1;
  while (!r->oldest[level]) level--;
  const char *head = (const char *)&local->queue->message[r->oldest[level] - 1];
  __builtin_prefetch(head);
  __builtin_prefetch(head + LINE);
  if (size <= MC_INLINE_BYTES) return;
  const unsigned char *data = mc_payload(local->queue, r->oldest[level] - 1, at);
  for (size_t i = 0; i < size && i < READ_PREFETCH_BYTES; i += LINE) __builtin_prefetch(data + i);
}

/* A hint, without the lock. */
MC_INLINE bool has_arrived(const mc_local_endpoint *local) {
  /* An arrived message is detached at once, so the line is requested for writing. */
  mc_prefetch_write(
      &local->queue->inbox.head[lvd_load_relaxed_u32(&local->last_level) % LVD_INBOX_LEVELS]);
  return lvd_inbox_pending(&local->queue->inbox);
}

bool mc_shm_ready(const mc_local_endpoint *local, enum mc_kind kind) {
  if (kind == MC_MESSAGE_RECEIVE) return has_arrived(local);
  const lvd_a32 *tail = lvd_load_acquire_ptr(&local->tail);
  if ((kind != MC_PACKET_RECEIVE && kind != MC_SCALAR_RECEIVE) || !tail) return true;
  return lvd_load_relaxed_u32(tail) != lvd_load_relaxed_u32(&local->got);
}

MC_INLINE lvd_status receive(mc_domain *d, mc_local_endpoint *local, void *buffer, size_t room,
                             size_t *size) {
  reap_dead_senders(d, local);
  if (LVD_UNLIKELY(local->unsettled_slots)) settle_slots(d, local);
  for (;;) {
    take_arrived(local);
    uint32_t n = lvd_receiver_next(&local->receiver);
    if (n == MC_SLOTS) return local->receiver.corrupt ? LVD_E_CORRUPT : LVD_E_TIMEOUT;
    const mc_message *m = &local->queue->message[n];
    /* read once, like `at`, since the sender could change them */
    size_t all = lvd_load_relaxed_u32(&m->size);
    uint32_t at = lvd_load_relaxed_u32(&m->at);
    if (lvd_load_relaxed_u32(&m->to) != lvd_load_relaxed_u32(&local->handle) ||
        all > MCAPI_MAX_MESSAGE_SIZE || at > (MCAPI_MAX_MESSAGE_SIZE - all) / LINE) {
      free_slot(d, local, n);
      continue;
    }
    *size = all < room ? all : room;
    prefetch_next_message(local, *size, at);
    if (*size)
      mc_copy(buffer, all <= MC_INLINE_BYTES ? m->inline_data : mc_payload(local->queue, n, at),
              *size);
    mc_count_received(d->tables, local->index, *size);
    free_slot(d, local, n);
    return all > room ? LVD_E_LIMIT : LVD_OK;
  }
}

lvd_status mc_shm_receive(mc_domain *d, mc_local_endpoint *local, void *buffer, size_t room,
                          size_t *size) {
  return receive(d, local, buffer, room, size);
}

uint32_t mc_shm_count(mc_domain *d, mc_local_endpoint *local) {
  reap_dead_senders(d, local);
  return lvd_receiver_take(&local->receiver);
}

uint32_t mc_shm_free_buffers(mc_domain *d, uint32_t index) {
  mc_mapped_endpoint *p = mc_mapped_endpoint_at(d, index);
  uint32_t most = mc_attribute(d, index, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS), count = 0;
  for (uint32_t i = 0; p && i < MC_SLOTS && i < most; i++)
    count += lvd_load_relaxed_u32(&p->queue->message[i].slot.owner) == 0;
  return count;
}

void mc_shm_await_room(mc_domain *d, uint32_t index, uint32_t node) {
  mc_mapped_endpoint *p = mc_mapped_endpoint_at(d, index);
  if (p) mc_node_set_add(&p->queue->room_waiters, node);
}

/* ---- fast path ------------------------------------------------------------------------------- */

MC_FLATTEN bool mc_message_send_fast(uint32_t from, uint32_t to, const void *buffer, size_t size,
                                     uint32_t priority) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, from);
  if (!local || (!buffer && size) || size > MCAPI_MAX_MESSAGE_SIZE) return false;
  mc_domain *d = mc_owner(local)->domain;
  if (priority > MCAPI_MIN_PRORITY ||
      priority >= mc_attribute(d, local->index, MCAPI_ENDP_ATTR_NUM_PRIORITIES) ||
      size > mc_attribute(d, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE))
    return false;
  if (!mc_fast_lock(local, MC_MESSAGE_SEND, from)) return false;
  bool done = send(d, local, to, buffer, size, LVD_INBOX_LEVELS - 1 - priority) == LVD_OK;
  mc_lock_release(&local->lock);
  return done;
}

static mcapi_status_t receive_message(mc_local_endpoint *local, uint32_t handle, void *buffer,
                                      size_t room, size_t *size) {
  if (!mc_fast_lock(local, MC_MESSAGE_RECEIVE, handle)) return MCAPI_PENDING;
  lvd_status status = receive(mc_owner(local)->domain, local, buffer, room, size);
  mc_lock_release(&local->lock);
  return status == LVD_OK        ? MCAPI_SUCCESS
         : status == LVD_E_LIMIT ? MCAPI_ERR_MSG_TRUNCATED
                                 : MCAPI_PENDING;
}

/* Arrived messages may already be detached from the inbox, so it receives before it polls. */
MC_FLATTEN mcapi_status_t mc_message_receive_fast(uint32_t handle, void *buffer, size_t room,
                                                  size_t *size) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, handle);
  if (!local || (!buffer && room) || !size) return MCAPI_PENDING;
  mcapi_status_t status = receive_message(local, handle, buffer, room, size);
  if (LVD_LIKELY(status != MCAPI_PENDING) || !mc_poll_briefly(local, has_arrived)) return status;
  return receive_message(local, handle, buffer, room, size);
}

/* ---- the table ------------------------------------------------------------------------------- */

void mc_shm_leave(mc_domain *d) {
  mc_views_leave(d);
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    mc_mapped_endpoint *p = lvd_load_relaxed_ptr(&d->peer[i]);
    if (!p) continue;
    lvd_os_shared_unmap(p->queue, mc_queue_size(), 0);
    lvd_os_shared_unmap(lvd_load_relaxed_ptr(&p->channel), MC_MAP_GRANULE, MC_RING_MAX_BYTES);
    free(p);
  }
}

const mc_transport mc_shm = {MC_TRANSPORT_FUNCTIONS(MC_SHM_ENTRY).name = "shm",
                             .leave = mc_shm_leave, .broadcast_create = mc_shm_broadcast_create};
