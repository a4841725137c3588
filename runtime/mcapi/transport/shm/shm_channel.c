/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels in shared memory: each is an lvd_channel stored behind the queue of the receiving
 * endpoint.
 *
 * A packet takes whole lines of the ring: a header line with its size, then its data. So the
 * receiver reads it in place. It gets with one handle and pops with another, which advances when
 * the oldest packets have been released.
 *
 * Cache line transfers of a packet between two cores, if the receiver is polling; a plain ring has
 * the same ones:
 *   1  the cursor `tail`: from the receiver, which polls it, to the sender, which writes it
 *   2  `tail`, back
 *   3  the packet's header and first lines, or the scalar's line, requested together, and by a
 *      polling receiver again with each poll (has_arrived)
 * Everything else stays in its cache: the lines of the data were prefetched when the previous
 * packet was sent (mc_publish), `head` is read only when the known room is used up (packet_ring.h),
 * and the tables and eventcounts are only read. So a packet costs, beyond a plain ring, the
 * header's line and the instructions of three calls, the release included. */
#include "../../api/fast_path.h"
#include "packet_ring.h"

#include <string.h>

enum { LINE = MC_PACKET_LINE_BYTES, READ_PREFETCH_LINES = 16 };

typedef struct packet_head {
  uint32_t size;
} packet_head;

typedef struct scalar {
  uint64_t value;
  uint32_t size, pad;
} scalar;

lvd_channel *mc_shm_channel_at(mc_domain *d, uint32_t index) {
  mc_mapped_endpoint *p = mc_mapped_endpoint_at(d, index);
  if (!p) return NULL;
  lvd_channel *ch = lvd_load_acquire_ptr(&p->channel);
  if (ch) return ch;
  lvd_os_lock(&d->lock);
  ch = lvd_load_relaxed_ptr(&p->channel);
  if (!ch) {
    ch = lvd_os_shared_map(d->file, mc_channel_at(index), MC_MAP_GRANULE, MC_RING_MAX_BYTES);
    lvd_store_release_ptr(&p->channel, ch);
  }
  lvd_os_unlock(&d->lock);
  return ch;
}

static uint32_t element_size(uint32_t role) {
  return role & MC_ROLE_PACKETS ? LINE : sizeof(scalar);
}

/* ---- creating and attaching ------------------------------------------------------------------ */

lvd_status mc_shm_channel_create(mc_domain *d, uint32_t index, uint32_t kind) {
  size_t at = mc_channel_at(index);
  if (lvd_os_shared_commit(d->file, at, MC_CHANNEL_INITIAL_BYTES) != LVD_OK) return LVD_E_MEMORY;
  lvd_channel *ch = mc_shm_channel_at(d, index);
  if (!ch) return LVD_E_MEMORY;
  uint32_t element = element_size(kind), slots = MC_RING_MAX_BYTES / element;
  lvd_channel_init(ch, (unsigned char *)ch + MC_MAP_GRANULE, element, slots,
                   kind & MC_ROLE_PACKETS ? slots : MC_CHANNEL_SCALARS, 1, LVD_CHANNEL_MIRRORED);
  lvd_store_relaxed_u64(mc_origin_word(ch), 0);
  return LVD_OK;
}

static bool attach(mc_domain *d, mc_local_endpoint *local) {
  mc_channel *c = &local->channel;
  bool sends = (c->role & MC_ROLE_SENDER) != 0;
  lvd_channel *ch = mc_view_channel(c->view);
  size_t size = MC_MAP_GRANULE + 2 * (size_t)MC_RING_MAX_BYTES;
  if (c->broadcast && !sends) { /* attached once it is admitted */
    c->in = (lvd_consumer){0};
    lvd_store_release_ptr(&local->tail, NULL);
    return !(c->admitted = false);
  }
  uint32_t element = element_size(c->role);
  lvd_status status = sends ? lvd_producer_attach_shared(&c->out, ch, size, element, NULL)
                            : lvd_consumer_attach_shared(&c->in, ch, size, element, 0, NULL);
  if (status != LVD_OK) return false;
  /* The layout must be ours, not that of some other valid channel: spans never end early. */
  bool mirrored = sends ? c->out.mirrored : c->in.mirrored;
  if (!mirrored || (sends ? c->out.mask : c->in.mask) != MC_RING_MAX_BYTES / element - 1)
    return false;
  if (sends && c->out.consumers != (c->broadcast ? MC_BROADCAST_RECEIVERS : 1)) return false;
  /* No wake mark is armed: mc_notify wakes, and makes the fence. */
  c->out.fenced = c->in.fenced = false;
  if (sends) {
    c->membership_version =
        lvd_load_relaxed_u32(&d->tables->endpoint[local->index].membership_version) - 1;
    mc_sender_attached(c);
  } else {
    c->popper = c->in;
    lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
    lvd_store_release_ptr(&local->tail, &ch->tail);
  }
  return true;
}

bool mc_shm_attach(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t peer) {
  mc_channel *c = &local->channel;
  bool others = c->role & MC_ROLE_SENDER || c->broadcast;
  c->first = c->count = c->held_count = 0;
  c->view = mc_view_open(d, others ? mc_index(peer) : local->index);
  if (!c->view) return false;
  if (attach(d, local)) return true;
  mc_view_close(local);
  return false;
}

void mc_shm_detach(mc_domain *d, mc_local_endpoint *local) {
  mc_channel *c = &local->channel;
  (void)d;
  mc_view_close(local);
  c->count = c->held_count = 0;
  c->loan = NULL;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Room for `n` elements; null: there is none. */
MC_INLINE void *room_for(const mc_domain *d, mc_channel *c, uint32_t n) {
  return mc_has_room(d, c, n) ? mc_put_at(c) : NULL;
}

MC_INLINE lvd_status put_packet(mc_domain *d, mc_local_endpoint *local, const void *data,
                                size_t size) {
  mc_channel *c = &local->channel;
  uint32_t n = 1 + (uint32_t)((size + LINE - 1) / LINE);
  if (LVD_UNLIKELY(c->broadcast)) mc_shm_update_receivers(d, local);
  unsigned char *to = room_for(d, c, n);
  if (!to) return c->out.corrupt ? LVD_E_CORRUPT : LVD_E_TIMEOUT;
  *(packet_head *)(void *)to = (packet_head){(uint32_t)size};
  if (size) mc_copy(to + LINE, data, size);
  mc_publish(d, c, n);
  return LVD_OK;
}

lvd_status mc_shm_put_packet(mc_domain *d, mc_local_endpoint *local, const void *data,
                             size_t size) {
  return put_packet(d, local, data, size);
}

MC_INLINE lvd_status put_scalar(mc_domain *d, mc_local_endpoint *local, uint64_t value,
                                uint32_t size) {
  mc_channel *c = &local->channel;
  scalar *to = room_for(d, c, 1);
  if (!to) return c->out.corrupt ? LVD_E_CORRUPT : LVD_E_TIMEOUT;
  *to = (scalar){.value = value, .size = size};
  mc_publish(d, c, 1);
  return LVD_OK;
}

lvd_status mc_shm_put_scalar(mc_domain *d, mc_local_endpoint *local, uint64_t value,
                             uint32_t size) {
  return put_scalar(d, local, value, size);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Like lvd_elements, for a handle in memory. */
static uint32_t elements(lvd_consumer *c, uint32_t want) {
  int64_t n = (int64_t)(c->limit - c->got);
  return n >= (int64_t)want ? (uint32_t)n : lvd_elements_refresh(c);
}

/* A hint, without the lock: has more arrived than has been received? Each poll also prefetches the
 * lines of the expected element, so that they arrive with the cursor instead of after it. */
MC_INLINE bool has_arrived(const mc_local_endpoint *local, uint32_t element) {
  lvd_a32 *tail = lvd_load_acquire_ptr(&local->tail);
  if (!tail) return true;
  lvd_channel *ch = (lvd_channel *)(void *)((char *)tail - offsetof(lvd_channel, tail));
  uint32_t got = lvd_load_relaxed_u32(&local->got);
  bool come = lvd_load_relaxed_u32(tail) != got;
  size_t line = mc_offset(lvd_load_relaxed_u64(mc_origin_word(ch)), got, element);
  __builtin_prefetch((const char *)ch + MC_MAP_GRANULE + line);
  __builtin_prefetch((const char *)ch + MC_MAP_GRANULE + line + LINE);
  return come;
}
static bool packet_has_arrived(const mc_local_endpoint *local) { return has_arrived(local, LINE); }
static bool scalar_has_arrived(const mc_local_endpoint *local) {
  return has_arrived(local, sizeof(scalar));
}

/* The packet `skip` elements ahead: address of its data, its size and lines. Null: there is none,
 * or its header is not valid. The size is read only once, since the sender could change it. */
MC_INLINE const unsigned char *packet_at(lvd_consumer *c, uint32_t skip, uint32_t *size,
                                         uint32_t *lines) {
  uint32_t there = elements(c, skip + 1);
  if (there <= skip) return NULL;
  const unsigned char *head = mc_get_at(c, skip);
  __builtin_prefetch(head + LINE); /* before the size has been loaded */
  *size = *(const volatile uint32_t *)(const void *)head;
  *lines = 1 + (*size + LINE - 1) / LINE;
  if (*size <= MCAPI_MAX_PACKET_SIZE && *lines <= there - skip) return head + LINE;
  c->corrupt = true;
  return NULL;
}

/* Merges adjacent released entries behind packets that are still held. */
LVD_NOINLINE void merge_released(mc_channel *c) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    mc_held_packet *last = n ? &c->held[(c->first + n - 1) % MC_HELD_ENTRIES] : NULL;
    const mc_held_packet h = c->held[(c->first + i) % MC_HELD_ENTRIES];
    if (last && last->released && h.released)
      last->lines += h.lines;
    else
      c->held[(c->first + n++) % MC_HELD_ENTRIES] = h;
  }
  c->count = n;
}

MC_INLINE lvd_status take_packet(mc_domain *d, mc_local_endpoint *local, void **out,
                                 size_t *out_size) {
  mc_channel *c = &local->channel;
  uint32_t size, lines;
  if (LVD_UNLIKELY(c->broadcast) && !mc_shm_is_admitted(d, local))
    return c->in.corrupt ? LVD_E_CORRUPT : LVD_E_TIMEOUT;
  if (c->held_count == MC_SLOTS) return LVD_E_LIMIT;
  const unsigned char *at = packet_at(&c->in, 0, &size, &lines);
  if (!at) return c->in.corrupt ? LVD_E_CORRUPT : LVD_E_TIMEOUT;
  if (LVD_UNLIKELY(c->count == MC_HELD_ENTRIES)) merge_released(c);
  c->held[(c->first + c->count++) % MC_HELD_ENTRIES] = (mc_held_packet){.at = at, .lines = lines};
  c->held_count++;
  lvd_get_done(&c->in, lines);
  lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
  for (uint32_t i = 1; i < lines - 1 && i < READ_PREFETCH_LINES; i++)
    __builtin_prefetch(at + i * LINE);
  *out = (void *)(uintptr_t)at;
  *out_size = size;
  return LVD_OK;
}

lvd_status mc_shm_take_packet(mc_domain *d, mc_local_endpoint *local, void **out,
                              size_t *out_size) {
  return take_packet(d, local, out, out_size);
}

MC_INLINE lvd_status take_scalar(mc_domain *d, mc_local_endpoint *local, uint32_t size,
                                 uint64_t *value) {
  mc_channel *c = &local->channel;
  if (!elements(&c->in, 1)) return c->in.corrupt ? LVD_E_CORRUPT : LVD_E_TIMEOUT;
  scalar s = *(const scalar *)(const void *)mc_get_at(&c->in, 0);
  if (s.size != size) return LVD_E_ARGUMENT; /* it stays in the channel */
  *value = s.value;
  lvd_get_done(&c->in, 1);
  lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
  lvd_pop(&c->in);
  mc_notify(d, c->peer_node);
  return LVD_OK;
}

lvd_status mc_shm_take_scalar(mc_domain *d, mc_local_endpoint *local, uint32_t size,
                              uint64_t *value) {
  return take_scalar(d, local, size, value);
}

uint32_t mc_shm_available(mc_domain *d, mc_local_endpoint *local) {
  lvd_consumer *c = &local->channel.in;
  uint32_t count = 0, size, lines;
  if (local->channel.broadcast && !mc_shm_is_admitted(d, local)) return 0;
  if (local->channel.role == MC_ROLE_SCALARS) return lvd_elements(c, UINT32_MAX);
  for (uint32_t at = 0; packet_at(c, at, &size, &lines); at += lines) count++;
  return count;
}

/* ---- releasing ------------------------------------------------------------------------------- */

/* The held packet that was handed out at `at`; null: this end holds none. */
static mc_held_packet *held_at(mc_channel *c, const void *at) {
  for (uint32_t i = 0; i < c->count; i++) {
    mc_held_packet *h = &c->held[(c->first + i) % MC_HELD_ENTRIES];
    if (h->at == at && !h->released) return h;
  }
  return NULL;
}

MC_INLINE bool release(mc_domain *d, mc_local_endpoint *local, const void *buffer, bool only_test) {
  mc_channel *c = &local->channel;
  mc_held_packet *h = held_at(c, buffer);
  if (!h || only_test) return h != NULL;
  h->released = true;
  c->held_count--;
  bool any = false;
  for (; c->count && (h = &c->held[c->first])->released; any = true) {
    lvd_get_done(&c->popper, h->lines);
    c->first = (c->first + 1) % MC_HELD_ENTRIES;
    c->count--;
  }
  if (any) {
    lvd_pop(&c->popper);
    mc_notify(d, c->peer_node);
  }
  return true;
}

bool mc_shm_release(mc_domain *d, mc_local_endpoint *local, const void *buffer, bool only_test) {
  return release(d, local, buffer, only_test);
}

/* ---- fast path ------------------------------------------------------------------------------- */

MC_FLATTEN bool mc_packet_send_fast(uint32_t handle, const void *buffer, size_t size) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, handle);
  if (!local || (!buffer && size) || size > MCAPI_MAX_PACKET_SIZE) return false;
  mc_domain *d = mc_owner(local)->domain;
  if (size > mc_attribute(d, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE)) return false;
  if (!mc_fast_lock(local, MC_PACKET_SEND, handle)) return false;
  bool done = !local->channel.loan && mc_can_send(d, local, MC_ROLE_PACKETS | MC_ROLE_SENDER) &&
              put_packet(d, local, buffer, size) == LVD_OK;
  mc_lock_release(&local->lock);
  return done;
}

MC_FLATTEN bool mc_scalar_send_fast(uint32_t handle, uint64_t value, uint32_t size) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, handle);
  if (!local || !mc_fast_lock(local, MC_SCALAR_SEND, handle)) return false;
  mc_domain *d = mc_owner(local)->domain;
  bool done = !local->channel.loan && mc_can_send(d, local, MC_ROLE_SCALARS | MC_ROLE_SENDER) &&
              put_scalar(d, local, value, size) == LVD_OK;
  mc_lock_release(&local->lock);
  return done;
}

static bool receive_packet(mc_local_endpoint *local, uint32_t handle, void **buffer, size_t *size) {
  if (!mc_fast_lock(local, MC_PACKET_RECEIVE, handle)) return false;
  mc_domain *d = mc_owner(local)->domain;
  bool done = mc_is_open(local, MC_ROLE_PACKETS) && take_packet(d, local, buffer, size) == LVD_OK;
  if (done) mc_count_received(d->tables, local->index, *size);
  mc_lock_release(&local->lock);
  return done;
}

MC_FLATTEN bool mc_packet_receive_fast(uint32_t handle, void **buffer, size_t *size) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, handle);
  return local && buffer && size && mc_poll_briefly(local, packet_has_arrived) &&
         receive_packet(local, handle, buffer, size);
}

static bool receive_scalar(mc_local_endpoint *local, uint32_t handle, uint64_t *value,
                           uint32_t size) {
  if (!mc_fast_lock(local, MC_SCALAR_RECEIVE, handle)) return false;
  mc_domain *d = mc_owner(local)->domain;
  bool done = mc_is_open(local, MC_ROLE_SCALARS) && take_scalar(d, local, size, value) == LVD_OK;
  if (done) mc_count_received(d->tables, local->index, size);
  mc_lock_release(&local->lock);
  return done;
}

MC_FLATTEN bool mc_scalar_receive_fast(uint32_t handle, uint64_t *value, uint32_t size) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, handle);
  return local && mc_poll_briefly(local, scalar_has_arrived) &&
         receive_scalar(local, handle, value, size);
}

/* Tries the endpoint of the last release. */
MC_FLATTEN bool mc_packet_release_fast(const void *buffer) {
  MC_SHORT_CALL(call);
  mc_local_node *self = call.node;
  if (LVD_UNLIKELY(!self) || LVD_UNLIKELY(self->domain->transport != &mc_shm)) return false;
  mc_domain *d = self->domain;
  mc_local_endpoint *local =
      lvd_load_acquire_ptr(&d->local[lvd_load_relaxed_u32(&self->last_released)]);
  if (!local || mc_owner(local) != self) return false;
  mc_lock_acquire(&local->lock);
  bool done = mc_owner(local) == self && !local->pending[MC_PACKET_RECEIVE].first &&
              mc_is_open(local, MC_ROLE_PACKETS) && release(d, local, buffer, false);
  mc_lock_release(&local->lock);
  return done;
}
