/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The queue of an endpoint in shared memory: an inbox, and for each slot a message. Whoever has an
 * endpoint's number sends to it; its owner receives.
 *
 * The lines' way of a short message, of cache lines between two cores of which the receiver is waiting:
 *   1  the inbox, of the message's level: from the receiver, who looks at it, to the sender, who posts
 *   2  the same line: back, to be written at once (mc_fetch), since what has come is taken off
 *   3  the message's two lines, asked for together
 * Its slot's lines were asked for when the last message had been sent; all others are one side's, or only
 * read. A receiver that has fallen behind takes all of a level at once, and leaves that line to the senders
 * until it has read them. A sender makes two read-modify-writes that others see, to claim its slot and to post. Each waits
 * until all that was written before has reached the cache, the long message's lines, too, where a packet's
 * sender goes on: that is why long messages are sent at a lower rate.
 *
 * Guarantees
 *   Q1  A message is received whole, or not at all, whoever dies or runs wild.
 *   Q2  The slots of senders and of receivers that have died come back.
 *
 * Pairs of orders
 *   send: link (cas_release), store_release posted -> open: load_acquire posted, take      Q2
 *   receive: owner, then claim = 0 (release)       a death between the two               Q2
 *   receive: claim = 0, free (store_release)       -> send: claim (cas_acquire)            Q2
 *   delete: store_release handle                   -> send: load_acquire handle
 * A sender that found the endpoint just before it was deleted may post a message into the queue of the
 * next endpoint at its place; that one sees for whom it was, and drops it. */
#include "../../api/fast_path.h"

#include <stdlib.h>
#include <string.h>

enum {
  IN_TURN = 16,
  LINE = 64,
  AHEAD = 2048,
  READ_MOST = 1024,
  NUMBERS = 1024,
  /* Long messages, and those that wait, are laid all over so much of each slot: more than the caches next
     to a core hold, for the reason that packet_ring.h has. */
  LONG = 2048,
  SPREAD = 32 * 1024
};

/* ---- mapping -------------------------------------------------------------------------------- */

mc_peer *mc_peer_at(mc_domain *d, uint32_t index) {
  mc_peer *p = lvd_load_acquire_ptr(&d->peer[index]);
  if (LVD_LIKELY(p != NULL)) return p;
  lvd_os_lock(&d->lock);
  p = lvd_load_relaxed_ptr(&d->peer[index]);
  if (!p && (p = calloc(1, sizeof *p))) {
    size_t at = mc_queue_at(index), head = mc_pages(sizeof(mc_queue));
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

/* Asks for the pages of slot `n` up to `size` bytes, once: without them a copy could trap. */
static bool pages_for(mc_domain *d, mc_peer *p, uint32_t index, uint32_t n, size_t size) {
  size_t pages = mc_pages(MC_INDENT + size) / MC_PAGE;
  if (LVD_LIKELY(p->pages[n] >= pages)) return true;
  size_t at = mc_queue_at(index) + mc_pages(sizeof(mc_queue)) + (size_t)n * MC_STRIDE;
  if (lvd_os_shared_commit(d->file, at, pages * MC_PAGE) != LVD_OK) return false;
  p->pages[n] = (uint8_t)pages;
  return true;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Where in its slot a message lies, in lines. */
static uint32_t place(const mc_peer *p, size_t size) {
  uint32_t lines = (uint32_t)((size + LINE - 1) / LINE), places = SPREAD / LINE / lines;
  return places > 1 ? lvd_load_relaxed_u32(&p->lap) % places * lines : 0;
}

/* The slot to look at first next time, with its lines on their way here: the receiver has read them.
 * A few in turn, since what was used of late is the nearest; more where those are not free. */
static void expect(mc_peer *p, uint32_t n, uint32_t slots, size_t size) {
  mc_queue *q = p->queue;
  uint32_t next = n + 1;
  if (next >= slots) {
    next = 0;
    lvd_store_relaxed_u32(&p->lap, lvd_load_relaxed_u32(&p->lap) + 1);
  } else if (next >= IN_TURN && size < LONG && !lvd_load_relaxed_u32(&q->message[0].slot.owner)) {
    next = 0;
    lvd_store_relaxed_u32(&p->lap, 0);
  }
  lvd_store_relaxed_u32(&p->rotor, next);
  mc_fetch(&q->message[next]);
  mc_fetch((const char *)&q->message[next] + LINE);
  /* And the next one's data, if it is as long, and nobody is reading there. */
  if (size > MC_SMALL && !lvd_load_relaxed_u32(&q->message[next].slot.owner))
    mc_fetch_all(mc_payload(q, next, place(p, size)), size < AHEAD ? size : AHEAD);
}

/* A number that this process has never used: they are taken in blocks, since one by one is an
 * atomic operation each. */
static uint64_t number_of(mc_domain *d, mc_local *local) {
  if (LVD_UNLIKELY(!local->sendings)) {
    local->sending = (uint32_t)lvd_add_relaxed_u64(&d->sendings, NUMBERS);
    local->sendings = NUMBERS;
  }
  local->sendings--;
  return (uint64_t)d->serial << 32 | local->sending++;
}

MC_INLINE lvd_status send(mc_domain *d, mc_local *local, mcapi_endpoint_t to, const void *buffer,
                          size_t size, uint32_t level) {
  uint32_t index = mc_index(to);
  mc_endpoint *e = &d->tables->endpoint[index];
  if (lvd_load_acquire_u32(&e->handle) != to || !to) return LVD_E_PEER;
  mc_peer *p = lvd_load_acquire_ptr(&d->peer[index]);
  if (LVD_UNLIKELY(!p) && !(p = mc_peer_at(d, index))) return LVD_E_MEMORY;
  mc_queue *q = p->queue;
  if (size >= 512) mc_fetch(&q->inbox.head[level]); /* comes while we copy */
  uint32_t slots = mc_attribute(d, index, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS);
  if (slots == 0 || slots > MC_SLOTS) slots = MC_SLOTS;
  uint32_t n = lvd_slot_claim(mc_slots(q), slots, lvd_load_relaxed_u32(&p->rotor), d->serial);
  if (n == slots) return LVD_E_TIME;
  mc_message *m = &q->message[n];
  uint64_t claim = number_of(d, local);
  lvd_store_relaxed_u64(&m->claim, claim);
  bool small = size <= MC_SMALL;
  uint32_t at = small ? 0 : place(p, size);
  if (!small && !pages_for(d, p, index, n, at ? SPREAD : size)) {
    at = 0; /* there may be pages for this */
    if (!pages_for(d, p, index, n, size)) {
      lvd_slot_free(mc_slots(q), n);
      return LVD_E_MEMORY;
    }
  }
  lvd_store_relaxed_u32(&m->to, to);
  lvd_store_relaxed_u32(&m->from, lvd_load_relaxed_u32(&local->handle));
  lvd_store_relaxed_u32(&m->size, (uint32_t)size);
  lvd_store_relaxed_u32(&m->at, at);
  if (size) mc_copy(small ? m->small : mc_payload(q, n, at), buffer, size);
  uint32_t node = lvd_load_relaxed_u32(&e->node);
  lvd_inbox_link_behind(&q->inbox, mc_slots(q), n, level, 0);
  lvd_store_release_u64(&q->posted[n].claim, claim);
  expect(p, n, slots, size);
  mc_ring(d, node);
  return LVD_OK;
}

lvd_status mc_shm_send(mc_domain *d, mc_local *local, mcapi_endpoint_t to, const void *buffer,
                       size_t size, uint32_t level) {
  return send(d, local, to, buffer, size, level);
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* Before a slot is freed: it is ours, so that it comes back if we die meanwhile (reap), and its number no
 * more that of a message that was posted, which the next sender would be taken to be done with (settle). */
static void take_from_sender(const mc_domain *d, mc_queue *q, uint32_t n) {
  lvd_store_relaxed_u32(&q->message[n].slot.owner, d->serial);
  lvd_store_release_u64(&q->message[n].claim, 0);
}

static void give_back(mc_domain *d, mc_local *local, uint32_t n) {
  take_from_sender(d, local->queue, n);
  lvd_receiver_give_back(&local->receiver, n);
  mc_ring_set(d, &local->queue->room);
}

/* What dead senders had claimed. */
static void reap(mc_domain *d, mc_local *local) {
  uint32_t deaths = lvd_load_acquire_u32(&d->tables->deaths);
  if (LVD_LIKELY(deaths == local->deaths)) return;
  local->deaths = deaths;
  uint32_t freed = 0;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    uint32_t owner = lvd_load_relaxed_u32(&local->queue->message[n].slot.owner);
    if (owner && local->list[n] == LVD_SLOT_NOT_HELD && !mc_is_alive(d, owner))
      freed += lvd_receiver_reap(&local->receiver, owner);
  }
  if (freed) mc_ring_all(d, &local->queue->room);
}

/* Slots that were claimed when we opened the queue, and have not come since. Its sender is done with one,
 * and then it is in no list: a receiver that has died had it. Else its sender is still at it: it will come,
 * or had come to that receiver. */
static void settle(mc_domain *d, mc_local *local) {
  mc_queue *q = local->queue;
  uint64_t done = 0;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    if (!(local->unsure >> n & 1)) continue;
    uint64_t posted = lvd_load_acquire_u64(&q->posted[n].claim);
    if (posted && posted == lvd_load_relaxed_u64(&q->message[n].claim)) done |= (uint64_t)1 << n;
  }
  lvd_receiver_take(&local->receiver);
  if (local->receiver.corrupt) return;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    bool held = local->list[n] != LVD_SLOT_NOT_HELD, mine = done >> n & 1;
    if (!(local->unsure >> n & 1)) continue;
    if (mine && !held) {
      take_from_sender(d, q, n);
      lvd_slot_free(mc_slots(q), n);
    }
    if (mine || held || !lvd_load_relaxed_u32(&q->message[n].slot.owner))
      local->unsure &= ~((uint64_t)1 << n);
    if (mine && !held) mc_ring_all(d, &q->room);
  }
}

lvd_status mc_shm_open(mc_domain *d, mc_local *local) {
  mc_peer *p = mc_peer_at(d, local->index);
  if (!p) return LVD_E_MEMORY;
  mc_queue *q = local->queue = p->queue;
  for (int round = 0; round < 2; round++) {
    lvd_receiver_init(&local->receiver, &q->inbox, mc_slots(q), MC_SLOTS, local->list);
    local->unsure = UINT64_MAX;
    settle(d, local);
    if (!local->receiver.corrupt) break;
    lvd_inbox_init(&q->inbox); /* of a predecessor that was led astray: none of it is ours */
  }
  for (uint32_t n; (n = lvd_receiver_get(&local->receiver)) < MC_SLOTS;) give_back(d, local, n);
  local->deaths = lvd_load_acquire_u32(&d->tables->deaths) - 1;
  reap(d, local);
  return LVD_OK;
}

void mc_shm_close(mc_domain *d, mc_local *local) {
  for (uint32_t n; (n = lvd_receiver_get(&local->receiver)) < MC_SLOTS;) give_back(d, local, n);
  mc_ring_all(d, &local->queue->room);
}

/* Takes over what has come, down to the level of what has been: of that one there is a next already, and
 * its line is left to those who post. The newest message's lines are asked for first: with one on its way
 * it is also the next. Its slot will be given back, and whatever we send after that waits for its line. */
MC_INLINE void take_over(mc_local *local) {
  lvd_receiver *r = &local->receiver;
  const mc_queue *q = local->queue;
  for (uint32_t level = LVD_INBOX_LEVELS; level-- > 0 && !r->oldest[level] && !r->corrupt;) {
    uint32_t n = lvd_load_relaxed_u32(&q->inbox.head[level].newest);
    if (!n) continue;
    lvd_store_relaxed_u32(&local->level, level);
    if (n <= MC_SLOTS) {
      mc_fetch(&q->message[n - 1]);
      __builtin_prefetch((const char *)&q->message[n - 1] + LINE);
    }
    lvd_receiver_take_level(r, level);
  }
}

/* Of what has been taken over, the next one's lines, if it is as long and lies at the same place of its slot:
 * they come while this one is copied. */
MC_INLINE void ask_for_next(const mc_local *local, size_t size, uint32_t at) {
  const lvd_receiver *r = &local->receiver;
  if (!r->ready) return;
  uint32_t level = LVD_INBOX_LEVELS - 1;
  while (!r->oldest[level]) level--;
  const char *head = (const char *)&local->queue->message[r->oldest[level] - 1];
  __builtin_prefetch(head);
  __builtin_prefetch(head + LINE);
  if (size <= MC_SMALL) return;
  const unsigned char *data = mc_payload(local->queue, r->oldest[level] - 1, at);
  for (size_t i = 0; i < size && i < READ_MOST; i += LINE) __builtin_prefetch(data + i);
}

/* A guess, for who has no lock. */
MC_INLINE bool has_come(const mc_local *local) {
  /* What has come is taken at once. */
  mc_fetch(&local->queue->inbox.head[lvd_load_relaxed_u32(&local->level) % LVD_INBOX_LEVELS]);
  return lvd_inbox_pending(&local->queue->inbox);
}

bool mc_shm_ready(const mc_local *local, enum mc_kind kind) {
  if (kind == MC_RECEIVE) return has_come(local);
  const lvd_a32 *tail = lvd_load_acquire_ptr(&local->tail);
  if ((kind != MC_PACKET_IN && kind != MC_SCALAR_IN) || !tail) return true;
  return lvd_load_relaxed_u32(tail) != lvd_load_relaxed_u32(&local->got);
}

MC_INLINE lvd_status receive(mc_domain *d, mc_local *local, void *buffer, size_t room,
                             size_t *size) {
  reap(d, local);
  if (LVD_UNLIKELY(local->unsure)) settle(d, local);
  for (;;) {
    take_over(local);
    uint32_t n = lvd_receiver_next(&local->receiver);
    if (n == MC_SLOTS) return local->receiver.corrupt ? LVD_E_CORRUPT : LVD_E_TIME;
    const mc_message *m = &local->queue->message[n];
    size_t all = lvd_load_relaxed_u32(&m->size); /* once, and this: */
    uint32_t at = lvd_load_relaxed_u32(&m->at);
    if (lvd_load_relaxed_u32(&m->to) != lvd_load_relaxed_u32(&local->handle) ||
        all > MCAPI_MAX_MESSAGE_SIZE || at > (MCAPI_MAX_MESSAGE_SIZE - all) / LINE) {
      give_back(d, local, n);
      continue;
    }
    *size = all < room ? all : room;
    ask_for_next(local, *size, at);
    if (*size) mc_copy(buffer, all <= MC_SMALL ? m->small : mc_payload(local->queue, n, at), *size);
    mc_count(d->tables, local->index, *size);
    give_back(d, local, n);
    return all > room ? LVD_E_LIMIT : LVD_OK;
  }
}

lvd_status mc_shm_receive(mc_domain *d, mc_local *local, void *buffer, size_t room, size_t *size) {
  return receive(d, local, buffer, room, size);
}

uint32_t mc_shm_count(mc_domain *d, mc_local *local) {
  reap(d, local);
  return lvd_receiver_take(&local->receiver);
}

uint32_t mc_shm_buffers(mc_domain *d, uint32_t index) {
  mc_peer *p = mc_peer_at(d, index);
  uint32_t most = mc_attribute(d, index, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS), count = 0;
  for (uint32_t i = 0; p && i < MC_SLOTS && i < most; i++)
    count += lvd_load_relaxed_u32(&p->queue->message[i].slot.owner) == 0;
  return count;
}

void mc_shm_await_room(mc_domain *d, uint32_t index, uint32_t node) {
  mc_peer *p = mc_peer_at(d, index);
  if (p) mc_set_add(&p->queue->room, node);
}

/* ---- the short way -------------------------------------------------------------------------- */

MC_ALL_IN bool mc_message_out_at_once(uint32_t from, uint32_t to, const void *buffer, size_t size,
                                      uint32_t priority) {
  MC_VISIT(visit);
  mc_local *local = mc_at_once(&visit, from);
  if (!local || (!buffer && size) || size > MCAPI_MAX_MESSAGE_SIZE) return false;
  mc_domain *d = local->node->domain;
  if (priority > MCAPI_MIN_PRORITY ||
      priority >= mc_attribute(d, local->index, MCAPI_ENDP_ATTR_NUM_PRIORITIES) ||
      size > mc_attribute(d, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE))
    return false;
  if (!mc_enter(local, MC_SEND, from)) return false;
  bool done = send(d, local, to, buffer, size, LVD_INBOX_LEVELS - 1 - priority) == LVD_OK;
  mc_lock_drop(&local->lock);
  return done;
}

static mcapi_status_t message_in(mc_local *local, uint32_t handle, void *buffer, size_t room,
                                 size_t *size) {
  if (!mc_enter(local, MC_RECEIVE, handle)) return MCAPI_PENDING;
  lvd_status status = receive(local->node->domain, local, buffer, room, size);
  mc_lock_drop(&local->lock);
  return status == LVD_OK        ? MCAPI_SUCCESS
         : status == LVD_E_LIMIT ? MCAPI_ERR_MSG_TRUNCATED
                                 : MCAPI_PENDING;
}

/* What has come is not all in the inbox: so it is asked first. */
MC_ALL_IN mcapi_status_t mc_message_in_at_once(uint32_t handle, void *buffer, size_t room,
                                               size_t *size) {
  MC_VISIT(visit);
  mc_local *local = mc_at_once(&visit, handle);
  if (!local || (!buffer && room) || !size) return MCAPI_PENDING;
  mcapi_status_t status = message_in(local, handle, buffer, room, size);
  if (LVD_LIKELY(status != MCAPI_PENDING) || !mc_may_come(local, has_come)) return status;
  return message_in(local, handle, buffer, room, size);
}

/* ---- the table ------------------------------------------------------------------------------ */

void mc_shm_leave(mc_domain *d) {
  mc_views_leave(d);
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    mc_peer *p = lvd_load_relaxed_ptr(&d->peer[i]);
    if (!p) continue;
    lvd_os_shared_unmap(p->queue, mc_queue_size(), 0);
    lvd_os_shared_unmap(lvd_load_relaxed_ptr(&p->channel), MC_UNIT, MC_RING);
    free(p);
  }
}

const mc_transport mc_shm = {MC_TRANSPORT(MC_SHM_ENTRY).name = "shm", .leave = mc_shm_leave,
                             .lay_broadcast = mc_shm_lay_broadcast};
