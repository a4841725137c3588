/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Observing a domain from outside, and removing dead processes. Observing copies the tables without
 * joining. Every number in the copy is checked, since any member can write to the file. Removing
 * joins the domain, which does the work, and leaves it. */
#include "../transport/mqueue/mqueue.h"
#include "../transport/shm/packet_ring.h"

#include <levada/mcapi_ext.h>
#include <levada/mcapi_observe.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

typedef struct number_list {
  uint32_t *number, room, count;
} number_list;

/* Inserts in ascending order, without duplicates: a domain's file and its FIFOs have one name
 * each. */
static void insert_number(number_list *all, uint32_t number) {
  uint32_t at = 0;
  while (at < all->count && all->number[at] < number) at++;
  if (at < all->count && all->number[at] == number) return;
  if (all->count == all->room) {
    uint32_t room = all->room ? 2 * all->room : 64;
    uint32_t *more = realloc(all->number, room * sizeof *more);
    if (!more) return;
    all->number = more;
    all->room = room;
  }
  memmove(&all->number[at + 1], &all->number[at], (all->count - at) * sizeof *all->number);
  all->number[at] = number;
  all->count++;
}

static void collect_name(void *what, const char *name) {
  unsigned number, process;
  char rest;
  if (sscanf(name, "mcapi-%u%c", &number, &rest) == 1 ||
      sscanf(name, "mcapi-%u.%u%c", &number, &process, &rest) == 2)
    if (number <= MCAPI_MAX_DOMAIN) insert_number(what, number);
}

lvd_status lvd_mcapi_domains(uint32_t *number, uint32_t room, uint32_t *count) {
  if ((!number && room) || !count) return LVD_E_ARGUMENT;
  int directory;
  int64_t group = MC_GROUP_FROM_ENVIRONMENT;
  lvd_status status = mc_domain_directory_open(&group, &directory);
  if (status != LVD_OK) return status;
  number_list all = {0};
  status = lvd_os_directory_list(directory, collect_name, &all);
  lvd_os_close(directory);
  *count = all.count;
  for (uint32_t i = 0; i < all.count && i < room; i++) number[i] = all.number[i];
  free(all.number);
  return status;
}

/* ---- observing ------------------------------------------------------------------------------- */

/* A private copy of the parts of a domain's file. */
typedef struct snapshot {
  int file;
  mc_tables tables;
  mc_queue queue;
  union {
    lvd_channel channel;
    unsigned char header[offsetof(lvd_channel, consumer) +
                         MC_BROADCAST_RECEIVERS * sizeof(lvd_consumer_shared)];
  };
  unsigned char ring[MC_RING_MAX_BYTES];
  bool alive[MC_PROCESSES];
  mcapi_domain_t number;
  uint32_t transport;
} snapshot;

static uint32_t load(const lvd_a32 *at) { return lvd_load_relaxed_u32(at); }

static bool is_alive(const snapshot *c, uint32_t owner) {
  return owner && owner <= MC_PROCESSES && c->alive[owner - 1];
}

/* The record with that handle; null: none. */
static const mc_endpoint *find(const snapshot *c, mcapi_endpoint_t handle) {
  const mc_endpoint *e = &c->tables.endpoint[mc_index(handle)];
  return handle && load(&e->handle) == handle ? e : NULL;
}

static uint32_t id_of(const snapshot *c, uint32_t node) {
  return node < MC_NODES ? load(&c->tables.node[node].id) : MCAPI_NODE_INVALID;
}

/* Slots that are posted and not released. */
static uint32_t count_messages(const mc_queue *q) {
  uint32_t count = 0;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    uint64_t claim = lvd_load_relaxed_u64(&q->message[n].sending_id);
    count += load(&q->message[n].slot.owner) && claim &&
             lvd_load_relaxed_u64(&q->posted[n].sending_id) == claim;
  }
  return count;
}

/* Elements in the channel at `index` that its receiver with that index has not received. */
static uint32_t count_elements(snapshot *c, uint32_t index, uint32_t receiver_index, bool packets) {
  size_t at = mc_channel_at(index);
  if (receiver_index >= MC_BROADCAST_RECEIVERS ||
      !lvd_os_file_read(c->file, at, c->header, sizeof c->header))
    return 0;
  const lvd_consumer_shared *lines =
      (const lvd_consumer_shared *)c->channel.consumer + receiver_index;
  if (load(&lines->state) != LVD_OPEN) return 0;
  uint32_t head = load(&lines->head), count = load(&c->channel.tail) - head;
  if (!packets) return count <= MC_CHANNEL_SCALARS ? count : 0;
  if (count > MC_RING_MAX_BYTES / MC_PACKET_LINE_BYTES || !count) return 0;
  uint64_t origin;
  if (!lvd_os_file_read(c->file, at + MC_MAP_GRANULE - LVD_CACHE_LINE, &origin, sizeof origin))
    return 0;
  size_t size = (size_t)count * MC_PACKET_LINE_BYTES,
         from = mc_offset(origin, head, MC_PACKET_LINE_BYTES);
  size_t all = mc_ring_size(origin), first_part = size < all - from ? size : all - from;
  if (size > all || !lvd_os_file_read(c->file, at + MC_MAP_GRANULE + from, c->ring, first_part) ||
      !lvd_os_file_read(c->file, at + MC_MAP_GRANULE, c->ring + first_part, size - first_part))
    return 0;
  /* The receiver proceeds meanwhile, so a header may have been overwritten. */
  uint32_t found = 0;
  for (uint32_t line = 0; line < count; found++) {
    uint32_t length;
    memcpy(&length, c->ring + (size_t)line * MC_PACKET_LINE_BYTES, sizeof length);
    if (length > MCAPI_MAX_PACKET_SIZE) break;
    line += 1 + (length + MC_PACKET_LINE_BYTES - 1) / MC_PACKET_LINE_BYTES;
  }
  return found;
}

/* Messages of a queue; a long message counts once per piece. */
static uint32_t count_queued(const snapshot *c, uint32_t index, bool channel) {
  char name[64];
  lvd_os_queue q;
  mc_pmq_name(name, sizeof name, c->number, index, channel);
  if (lvd_os_queue_find(name, &q) != LVD_OK) return 0;
  uint32_t count = lvd_os_queue_count(&q);
  lvd_os_queue_close(&q);
  return count;
}

/* Of a broadcast's sender, which has no single peer. */
static void describe_receivers(snapshot *c, lvd_mcapi_endpoint_info *out) {
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    const mc_endpoint *e = &c->tables.endpoint[i];
    out->receivers += load(&e->handle) && load(&e->handle) != out->handle &&
                      load(&e->peer) == out->handle && load(&e->broadcast);
  }
  out->connected = true;
}

static void describe_endpoint(snapshot *c, uint32_t index, lvd_mcapi_endpoint_info *out) {
  const mc_endpoint *e = &c->tables.endpoint[index];
  uint32_t role = load(&e->role), state = load(&e->state);
  *out = (lvd_mcapi_endpoint_info){.handle = load(&e->handle),
                                   .node = id_of(c, load(&e->node)),
                                   .port = load(&e->port),
                                   .alive = is_alive(c, load(&e->owner)),
                                   .kind = role & MC_ROLE_PACKETS   ? LVD_MCAPI_PACKETS
                                           : role & MC_ROLE_SCALARS ? LVD_MCAPI_SCALARS
                                                                    : LVD_MCAPI_MESSAGES,
                                   .sends = (role & MC_ROLE_SENDER) != 0,
                                   .opened = (state & MC_END_OPENED) != 0,
                                   .closed = (state & MC_END_CLOSED) != 0};
  const mc_endpoint *peer = find(c, load(&e->peer));
  if (peer == e) {
    describe_receivers(c, out);
  } else if (peer) {
    out->peer = load(&peer->handle);
    out->peer_node = id_of(c, load(&peer->node));
    out->peer_port = load(&peer->port);
    out->connected = load(&peer->peer) == (load(&e->broadcast) ? out->peer : out->handle);
  }
  out->received = lvd_load_relaxed_u64(&e->received);
  out->received_bytes = lvd_load_relaxed_u64(&e->received_bytes);
  if (c->transport == LVD_MCAPI_TRANSPORT_PMQ) {
    out->messages = count_queued(c, index, false);
    if (out->kind != LVD_MCAPI_MESSAGES && !out->sends)
      out->elements = count_queued(c, index, true);
    return;
  }
  if (!lvd_os_file_read(c->file, mc_queue_at(index), &c->queue, sizeof c->queue)) return;
  out->messages = count_messages(&c->queue);
  if (out->kind == LVD_MCAPI_MESSAGES || out->sends || !out->peer) return;
  bool many = load(&e->broadcast) != 0;
  out->elements =
      count_elements(c, many ? mc_index(out->peer) : index, many ? load(&e->receiver_index) : 0,
                     out->kind == LVD_MCAPI_PACKETS);
}

static lvd_status describe(snapshot *c, lvd_mcapi_domain_info *out) {
  const mc_tables *t = &c->tables;
  out->node = calloc(MC_NODES, sizeof *out->node);
  out->endpoint = calloc(MC_ENDPOINTS, sizeof *out->endpoint);
  if (!out->node || !out->endpoint) return LVD_E_MEMORY;
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (!load(&t->process[i].serial)) continue;
    c->alive[i] = mc_file_process_is_alive(c->file, i);
    out->processes++;
    out->dead += !c->alive[i];
  }
  for (uint32_t i = 0; i < MC_NODES; i++) {
    uint32_t owner = load(&t->node[i].owner);
    if (!owner || owner > MC_PROCESSES) continue;
    out->node[out->node_count++] =
        (lvd_mcapi_node_info){.id = load(&t->node[i].id),
                              .process = load(&t->process[owner - 1].pid),
                              .alive = is_alive(c, owner)};
  }
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    mcapi_endpoint_t handle = load(&t->endpoint[i].handle);
    if (handle && mc_index(handle) == i)
      describe_endpoint(c, i, &out->endpoint[out->endpoint_count++]);
  }
  return LVD_OK;
}

static lvd_status find_file(uint32_t number, int *file) {
  int directory;
  int64_t group = MC_GROUP_FROM_ENVIRONMENT;
  char name[64];
  lvd_status status = mc_domain_directory_open(&group, &directory);
  if (status != LVD_OK) return status;
  mc_file_name(name, sizeof name, number);
  status = lvd_os_file_find(directory, name, file);
  lvd_os_close(directory);
  return status;
}

lvd_status lvd_mcapi_domain_snapshot(uint32_t number, lvd_mcapi_domain_info *out) {
  if (!out || number > MCAPI_MAX_DOMAIN) return LVD_E_ARGUMENT;
  *out = (lvd_mcapi_domain_info){.number = number};
  /* closing the file would release this process's file locks */
  if (mc_any_node()) return LVD_E_STATE;
  snapshot *c = calloc(1, sizeof *c);
  if (!c) return LVD_E_MEMORY;
  lvd_status status = find_file(number, &c->file);
  if (status == LVD_OK) {
    bool whole = lvd_os_file_read(c->file, 0, &c->tables, sizeof c->tables);
    c->number = number;
    bool queues = c->tables.transport == LVD_MCAPI_TRANSPORT_PMQ - 1;
    out->transport = c->transport = queues ? LVD_MCAPI_TRANSPORT_PMQ : LVD_MCAPI_TRANSPORT_SHM;
    status = whole && mc_tables_fit(&c->tables) ? describe(c, out) : LVD_E_ABI;
    lvd_os_close(c->file);
  }
  free(c);
  if (status != LVD_OK) lvd_mcapi_domain_forget(out);
  return status;
}

void lvd_mcapi_domain_forget(lvd_mcapi_domain_info *seen) {
  free(seen->node);
  free(seen->endpoint);
  *seen = (lvd_mcapi_domain_info){.number = seen->number};
}

/* ---- removing dead processes ----------------------------------------------------------------- */

static void count_dead(const lvd_mcapi_domain_info *seen, lvd_mcapi_cleanup_result *out) {
  out->processes = seen->dead;
  for (uint32_t i = 0; i < seen->node_count; i++) out->nodes += !seen->node[i].alive;
  for (uint32_t i = 0; i < seen->endpoint_count; i++) out->endpoints += !seen->endpoint[i].alive;
}

lvd_status lvd_mcapi_domain_clean(uint32_t number, lvd_mcapi_cleanup_result *out) {
  if (!out || number > MCAPI_MAX_DOMAIN) return LVD_E_ARGUMENT;
  *out = (lvd_mcapi_cleanup_result){0};
  if (mc_any_node()) return LVD_E_STATE;
  lvd_mcapi_domain_info seen;
  lvd_status status = lvd_mcapi_domain_snapshot(number, &seen);
  if (status == LVD_OK) count_dead(&seen, out);
  lvd_mcapi_domain_forget(&seen);
  mc_domain *d;
  status = mc_domain_join(number, MC_ANY_TRANSPORT, MC_GROUP_FROM_ENVIRONMENT, &d);
  if (status != LVD_OK) return status;
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (!load(&d->tables->process[i].serial)) continue;
    mc_tables_lock(d);
    mc_reap_process(d, i);
    mc_tables_unlock(d);
  }
  mc_notify_all(d, NULL);
  mc_domain_leave(d);
  int file;
  out->gone = find_file(number, &file) == LVD_E_NOT_FOUND;
  if (!out->gone) lvd_os_close(file);
  return LVD_OK;
}
