/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels in shared memory: each an lvd_channel that lies behind the queue of the end that receives.
 *
 * A packet takes whole lines of the ring: one that says how long it is, then what was sent. So the
 * receiver reads it where it lies. It gets with one handle and pops with another, which follows when
 * the oldest packets have been released.
 *
 * The lines' way, of cache lines between two cores of which the receiver is waiting: a bare ring's.
 *   1  the cursor `tail`: from the receiver, who looks at it, to the sender, who writes it
 *   2  `tail`, back
 *   3  the packet's head and its first lines, or the scalar's line, asked for together, and by who waits
 *      again and again while nothing has come (has_come)
 * What else is touched stays where it is: the data's lines were asked for when the last packet had been
 * sent (mc_sent), `head` is read once a round (packet_ring.h), and the tables and bells are only read. So what lies
 * between a bare ring and a packet are the head's line and instructions, of three calls with the release.
 */
#include "../../api/fast_path.h"
#include "packet_ring.h"

#include <string.h>

enum { LINE = MC_PACKET_LINE, READ_MOST = 16 };

typedef struct packet_head {
  uint32_t size;
} packet_head;

typedef struct scalar {
  uint64_t value;
  uint32_t size, pad;
} scalar;

lvd_channel *mc_shm_channel_at(mc_domain *d, uint32_t index) {
  mc_peer *p = mc_peer_at(d, index);
  if (!p) return NULL;
  lvd_channel *ch = lvd_load_acquire_ptr(&p->channel);
  if (ch) return ch;
  lvd_os_lock(&d->lock);
  ch = lvd_load_relaxed_ptr(&p->channel);
  if (!ch) {
    ch = lvd_os_shared_map(d->file, mc_channel_at(index), MC_UNIT, MC_RING);
    lvd_store_release_ptr(&p->channel, ch);
  }
  lvd_os_unlock(&d->lock);
  return ch;
}

static uint32_t element_size(uint32_t role) { return role & MC_PACKETS ? LINE : sizeof(scalar); }

/* ---- laid out, attached ------------------------------------------------------------------------- */

lvd_status mc_shm_lay(mc_domain *d, uint32_t index, uint32_t kind) {
  size_t at = mc_channel_at(index);
  if (lvd_os_shared_commit(d->file, at, MC_AT_FIRST) != LVD_OK) return LVD_E_MEMORY;
  lvd_channel *ch = mc_shm_channel_at(d, index);
  if (!ch) return LVD_E_MEMORY;
  uint32_t element = element_size(kind), slots = MC_RING / element;
  lvd_channel_init(ch, (unsigned char *)ch + MC_UNIT, element, slots,
                   kind & MC_PACKETS ? slots : MC_SCALARS, 1, LVD_CHANNEL_MIRRORED);
  lvd_store_relaxed_u64(mc_lie(ch), 0);
  return LVD_OK;
}

static bool attach(mc_domain *d, mc_local *local) {
  mc_channel *c = &local->channel;
  bool sends = (c->role & MC_SENDS) != 0;
  lvd_channel *ch = mc_view_channel(c->view);
  size_t size = MC_UNIT + 2 * (size_t)MC_RING;
  if (c->many && !sends) { /* attached when it has been let in */
    c->in = (lvd_consumer){0};
    lvd_store_release_ptr(&local->tail, NULL);
    return !(c->seated = false);
  }
  uint32_t element = element_size(c->role);
  lvd_status status = sends ? lvd_producer_attach_shared(&c->out, ch, size, element, NULL)
                            : lvd_consumer_attach_shared(&c->in, ch, size, element, 0, NULL);
  if (status != LVD_OK) return false;
  /* As we lay them out, and not some other that would also be a channel: no span ends early. */
  bool mirrored = sends ? c->out.mirrored : c->in.mirrored;
  if (!mirrored || (sends ? c->out.mask : c->in.mask) != MC_RING / element - 1) return false;
  if (sends && c->out.consumers != (c->many ? MC_SEATS : 1)) return false;
  /* Nobody is armed: mc_ring is what wakes, and makes the fence. */
  c->out.fenced = c->in.fenced = false;
  if (sends) {
    c->calls = lvd_load_relaxed_u32(&d->tables->endpoint[local->index].calls) - 1;
    mc_put_begins(c);
  } else {
    c->back = c->in;
    lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
    lvd_store_release_ptr(&local->tail, &ch->tail);
  }
  return true;
}

bool mc_shm_attach(mc_domain *d, mc_local *local, mcapi_endpoint_t peer) {
  mc_channel *c = &local->channel;
  bool others = c->role & MC_SENDS || c->many;
  c->first = c->count = c->out_there = 0;
  c->view = mc_view_open(d, others ? mc_index(peer) : local->index);
  if (!c->view) return false;
  if (attach(d, local)) return true;
  mc_view_close(local);
  return false;
}

void mc_shm_detach(mc_domain *d, mc_local *local) {
  mc_channel *c = &local->channel;
  (void)d;
  mc_view_close(local);
  c->count = c->out_there = 0;
  c->loan = NULL;
}

/* ---- sending ------------------------------------------------------------------------------------ */

/* Room for `n` elements; null: there is none. */
MC_INLINE void *room_for(const mc_domain *d, mc_channel *c, uint32_t n) {
  return mc_has_room(d, c, n) ? mc_put_at(c) : NULL;
}

MC_INLINE lvd_status put_packet(mc_domain *d, mc_local *local, const void *data, size_t size) {
  mc_channel *c = &local->channel;
  uint32_t n = 1 + (uint32_t)((size + LINE - 1) / LINE);
  if (LVD_UNLIKELY(c->many)) mc_shm_audience(d, local);
  unsigned char *to = room_for(d, c, n);
  if (!to) return c->out.corrupt ? LVD_E_CORRUPT : LVD_E_TIME;
  *(packet_head *)(void *)to = (packet_head){(uint32_t)size};
  if (size) mc_copy(to + LINE, data, size);
  mc_sent(d, c, n);
  return LVD_OK;
}

lvd_status mc_shm_put_packet(mc_domain *d, mc_local *local, const void *data, size_t size) {
  return put_packet(d, local, data, size);
}

MC_INLINE lvd_status put_scalar(mc_domain *d, mc_local *local, uint64_t value, uint32_t size) {
  mc_channel *c = &local->channel;
  scalar *to = room_for(d, c, 1);
  if (!to) return c->out.corrupt ? LVD_E_CORRUPT : LVD_E_TIME;
  *to = (scalar){.value = value, .size = size};
  mc_sent(d, c, 1);
  return LVD_OK;
}

lvd_status mc_shm_put_scalar(mc_domain *d, mc_local *local, uint64_t value, uint32_t size) {
  return put_scalar(d, local, value, size);
}

/* ---- receiving ---------------------------------------------------------------------------------- */

/* As lvd_elements, of a handle that lives in memory. */
static uint32_t elements(lvd_consumer *c, uint32_t want) {
  int64_t n = (int64_t)(c->limit - c->got);
  return n >= (int64_t)want ? (uint32_t)n : lvd_elements_refresh(c);
}

/* A guess, for who has no lock: is there more than has been got? Who looks asks for the lines of what is
 * expected, too: so they are here when the cursor is, and not only asked for. */
MC_INLINE bool has_come(const mc_local *local, uint32_t element) {
  lvd_a32 *tail = lvd_load_acquire_ptr(&local->tail);
  if (!tail) return true;
  lvd_channel *ch = (lvd_channel *)(void *)((char *)tail - offsetof(lvd_channel, tail));
  uint32_t got = lvd_load_relaxed_u32(&local->got);
  bool come = lvd_load_relaxed_u32(tail) != got;
  size_t line = mc_offset(lvd_load_relaxed_u64(mc_lie(ch)), got, element);
  __builtin_prefetch((const char *)ch + MC_UNIT + line);
  __builtin_prefetch((const char *)ch + MC_UNIT + line + LINE);
  return come;
}
static bool packet_has_come(const mc_local *local) { return has_come(local, LINE); }
static bool scalar_has_come(const mc_local *local) { return has_come(local, sizeof(scalar)); }

/* The packet that begins after `skip` elements: where its data lie, its size and lines. Null: there is
 * none, or what is there cannot have been sent. The size is read once. */
MC_INLINE const unsigned char *packet_at(lvd_consumer *c, uint32_t skip, uint32_t *size,
                                         uint32_t *lines) {
  uint32_t there = elements(c, skip + 1);
  if (there <= skip) return NULL;
  const unsigned char *head = mc_get_at(c, skip);
  __builtin_prefetch(head + LINE); /* and not only when the size is here */
  *size = *(const volatile uint32_t *)(const void *)head;
  *lines = 1 + (*size + LINE - 1) / LINE;
  if (*size <= MCAPI_MAX_PACKET_SIZE && *lines <= there - skip) return head + LINE;
  c->corrupt = true;
  return NULL;
}

/* What has been released behind packets that are held longer is made one, as far as it lies together. */
LVD_APART void merge_released(mc_channel *c) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    mc_held *last = n ? &c->held[(c->first + n - 1) % MC_HELD] : NULL;
    const mc_held h = c->held[(c->first + i) % MC_HELD];
    if (last && last->released && h.released)
      last->lines += h.lines;
    else
      c->held[(c->first + n++) % MC_HELD] = h;
  }
  c->count = n;
}

MC_INLINE lvd_status take_packet(mc_domain *d, mc_local *local, void **out, size_t *out_size) {
  mc_channel *c = &local->channel;
  uint32_t size, lines;
  if (LVD_UNLIKELY(c->many) && !mc_shm_seated(d, local))
    return c->in.corrupt ? LVD_E_CORRUPT : LVD_E_TIME;
  if (c->out_there == MC_SLOTS) return LVD_E_LIMIT;
  const unsigned char *at = packet_at(&c->in, 0, &size, &lines);
  if (!at) return c->in.corrupt ? LVD_E_CORRUPT : LVD_E_TIME;
  if (LVD_UNLIKELY(c->count == MC_HELD)) merge_released(c);
  c->held[(c->first + c->count++) % MC_HELD] = (mc_held){.at = at, .lines = lines};
  c->out_there++;
  lvd_get_done(&c->in, lines);
  lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
  for (uint32_t i = 1; i < lines - 1 && i < READ_MOST; i++) __builtin_prefetch(at + i * LINE);
  *out = (void *)(uintptr_t)at;
  *out_size = size;
  return LVD_OK;
}

lvd_status mc_shm_take_packet(mc_domain *d, mc_local *local, void **out, size_t *out_size) {
  return take_packet(d, local, out, out_size);
}

MC_INLINE lvd_status take_scalar(mc_domain *d, mc_local *local, uint32_t size, uint64_t *value) {
  mc_channel *c = &local->channel;
  if (!elements(&c->in, 1)) return c->in.corrupt ? LVD_E_CORRUPT : LVD_E_TIME;
  scalar s = *(const scalar *)(const void *)mc_get_at(&c->in, 0);
  if (s.size != size) return LVD_E_ARGUMENT; /* it stays */
  *value = s.value;
  lvd_get_done(&c->in, 1);
  lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
  lvd_pop(&c->in);
  mc_ring(d, c->peer_node);
  return LVD_OK;
}

lvd_status mc_shm_take_scalar(mc_domain *d, mc_local *local, uint32_t size, uint64_t *value) {
  return take_scalar(d, local, size, value);
}

uint32_t mc_shm_available(mc_domain *d, mc_local *local) {
  lvd_consumer *c = &local->channel.in;
  uint32_t count = 0, size, lines;
  if (local->channel.many && !mc_shm_seated(d, local)) return 0;
  if (local->channel.role == MC_NUMBERS) return lvd_elements(c, UINT32_MAX);
  for (uint32_t at = 0; packet_at(c, at, &size, &lines); at += lines) count++;
  return count;
}

/* ---- releasing ---------------------------------------------------------------------------------- */

/* The one that was handed out at `at`; null: it is not held here. */
static mc_held *held_at(mc_channel *c, const void *at) {
  for (uint32_t i = 0; i < c->count; i++) {
    mc_held *h = &c->held[(c->first + i) % MC_HELD];
    if (h->at == at && !h->released) return h;
  }
  return NULL;
}

MC_INLINE bool release(mc_domain *d, mc_local *local, const void *buffer, bool only_test) {
  mc_channel *c = &local->channel;
  mc_held *h = held_at(c, buffer);
  if (!h || only_test) return h != NULL;
  h->released = true;
  c->out_there--;
  bool any = false;
  for (; c->count && (h = &c->held[c->first])->released; any = true) {
    lvd_get_done(&c->back, h->lines);
    c->first = (c->first + 1) % MC_HELD;
    c->count--;
  }
  if (any) {
    lvd_pop(&c->back);
    mc_ring(d, c->peer_node);
  }
  return true;
}

bool mc_shm_release(mc_domain *d, mc_local *local, const void *buffer, bool only_test) {
  return release(d, local, buffer, only_test);
}

/* ---- the short way ------------------------------------------------------------------------------ */

MC_ALL_IN bool mc_packet_out_at_once(uint32_t handle, const void *buffer, size_t size) {
  MC_VISIT(visit);
  mc_local *local = mc_at_once(&visit, handle);
  if (!local || (!buffer && size) || size > MCAPI_MAX_PACKET_SIZE) return false;
  mc_domain *d = local->node->domain;
  if (size > mc_attribute(d, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE)) return false;
  if (!mc_enter(local, MC_PACKET_OUT, handle)) return false;
  bool done = !local->channel.loan && mc_may_send(d, local, MC_PACKETS | MC_SENDS) &&
              put_packet(d, local, buffer, size) == LVD_OK;
  mc_lock_drop(&local->lock);
  return done;
}

MC_ALL_IN bool mc_scalar_out_at_once(uint32_t handle, uint64_t value, uint32_t size) {
  MC_VISIT(visit);
  mc_local *local = mc_at_once(&visit, handle);
  if (!local || !mc_enter(local, MC_SCALAR_OUT, handle)) return false;
  mc_domain *d = local->node->domain;
  bool done = !local->channel.loan && mc_may_send(d, local, MC_NUMBERS | MC_SENDS) &&
              put_scalar(d, local, value, size) == LVD_OK;
  mc_lock_drop(&local->lock);
  return done;
}

static bool packet_in(mc_local *local, uint32_t handle, void **buffer, size_t *size) {
  if (!mc_enter(local, MC_PACKET_IN, handle)) return false;
  mc_domain *d = local->node->domain;
  bool done = mc_is_open(local, MC_PACKETS) && take_packet(d, local, buffer, size) == LVD_OK;
  if (done) mc_count(d->tables, local->index, *size);
  mc_lock_drop(&local->lock);
  return done;
}

MC_ALL_IN bool mc_packet_in_at_once(uint32_t handle, void **buffer, size_t *size) {
  MC_VISIT(visit);
  mc_local *local = mc_at_once(&visit, handle);
  return local && buffer && size && mc_may_come(local, packet_has_come) &&
         packet_in(local, handle, buffer, size);
}

static bool scalar_in(mc_local *local, uint32_t handle, uint64_t *value, uint32_t size) {
  if (!mc_enter(local, MC_SCALAR_IN, handle)) return false;
  mc_domain *d = local->node->domain;
  bool done = mc_is_open(local, MC_NUMBERS) && take_scalar(d, local, size, value) == LVD_OK;
  if (done) mc_count(d->tables, local->index, size);
  mc_lock_drop(&local->lock);
  return done;
}

MC_ALL_IN bool mc_scalar_in_at_once(uint32_t handle, uint64_t *value, uint32_t size) {
  MC_VISIT(visit);
  mc_local *local = mc_at_once(&visit, handle);
  return local && mc_may_come(local, scalar_has_come) && scalar_in(local, handle, value, size);
}

/* Where the last one was released. */
MC_ALL_IN bool mc_release_at_once(const void *buffer) {
  MC_VISIT(visit);
  mc_mine *self = visit.node;
  if (LVD_UNLIKELY(!self) || LVD_UNLIKELY(self->domain->transport != &mc_shm)) return false;
  mc_domain *d = self->domain;
  mc_local *local = lvd_load_acquire_ptr(&d->local[lvd_load_relaxed_u32(&self->released)]);
  if (!local || local->node != self) return false;
  mc_lock_take(&local->lock);
  bool done = !local->line[MC_PACKET_IN].first && mc_is_open(local, MC_PACKETS) &&
              release(d, local, buffer, false);
  mc_lock_drop(&local->lock);
  return done;
}
