/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A domain seen from outside, and cleared of the dead. Seen is a copy of its tables; every number in it
 * is checked as if nobody had, since anybody of the domain can write there. Cleared is it by joining it,
 * which has all that is needed for that, and leaving it again. */
#include "../transport/mqueue/mqueue.h"
#include "../transport/shm/packet_ring.h"

#include <levada/mcapi_ext.h>
#include <levada/mcapi_observe.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---------------------------------------------------------------------------------- */

typedef struct numbers {
  uint32_t *number, room, count;
} numbers;

/* In order, each once: its file and the bells in it have names. */
static void enter_number(numbers *all, uint32_t number) {
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

static void meet_name(void *what, const char *name) {
  unsigned number, process;
  char rest;
  if (sscanf(name, "mcapi-%u%c", &number, &rest) == 1 ||
      sscanf(name, "mcapi-%u.%u%c", &number, &process, &rest) == 2)
    if (number <= MCAPI_MAX_DOMAIN) enter_number(what, number);
}

lvd_status lvd_mcapi_domains(uint32_t *number, uint32_t room, uint32_t *count) {
  if ((!number && room) || !count) return LVD_E_ARGUMENT;
  int directory;
  int64_t group = MC_GROUP_AS_SAID;
  lvd_status status = mc_names_open(&group, &directory);
  if (status != LVD_OK) return status;
  numbers all = {0};
  status = lvd_os_directory_list(directory, meet_name, &all);
  lvd_os_close(directory);
  *count = all.count;
  for (uint32_t i = 0; i < all.count && i < room; i++) number[i] = all.number[i];
  free(all.number);
  return status;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* What is read of a domain, in memory of our own. */
typedef struct copy {
  int file;
  mc_tables tables;
  mc_queue queue;
  union {
    lvd_channel channel;
    unsigned char header[offsetof(lvd_channel, consumer) + MC_SEATS * sizeof(lvd_consumer_lines)];
  };
  unsigned char ring[MC_RING];
  bool alive[MC_PROCESSES];
  mcapi_domain_t number;
  uint32_t transport;
} copy;

static uint32_t word(const lvd_a32 *at) { return lvd_load_relaxed_u32(at); }

static bool is_alive(const copy *c, uint32_t owner) {
  return owner && owner <= MC_PROCESSES && c->alive[owner - 1];
}

/* The record that a handle leads to; null: none. */
static const mc_endpoint *find(const copy *c, mcapi_endpoint_t handle) {
  const mc_endpoint *e = &c->tables.endpoint[mc_index(handle)];
  return handle && word(&e->handle) == handle ? e : NULL;
}

static uint32_t id_of(const copy *c, uint32_t node) {
  return node < MC_NODES ? word(&c->tables.node[node].id) : MCAPI_NODE_INVALID;
}

/* Posted, and not given back. */
static uint32_t messages_in(const mc_queue *q) {
  uint32_t count = 0;
  for (uint32_t n = 0; n < MC_SLOTS; n++) {
    uint64_t claim = lvd_load_relaxed_u64(&q->message[n].claim);
    count += word(&q->message[n].slot.owner) && claim &&
             lvd_load_relaxed_u64(&q->posted[n].claim) == claim;
  }
  return count;
}

/* In the channel behind place `index`, before the receiver that has `seat`. */
static uint32_t elements_in(copy *c, uint32_t index, uint32_t seat, bool packets) {
  size_t at = mc_channel_at(index);
  if (seat >= MC_SEATS || !lvd_os_file_read(c->file, at, c->header, sizeof c->header)) return 0;
  const lvd_consumer_lines *lines = (const lvd_consumer_lines *)c->channel.consumer + seat;
  if (word(&lines->state) != LVD_OPEN) return 0;
  uint32_t head = word(&lines->head), count = word(&c->channel.tail) - head;
  if (!packets) return count <= MC_SCALARS ? count : 0;
  if (count > MC_RING / MC_PACKET_LINE || !count) return 0;
  uint64_t lie;
  if (!lvd_os_file_read(c->file, at + MC_UNIT - LVD_LINE, &lie, sizeof lie)) return 0;
  size_t size = (size_t)count * MC_PACKET_LINE, from = mc_offset(lie, head, MC_PACKET_LINE);
  size_t all = mc_ring_size(lie), ahead = size < all - from ? size : all - from;
  if (size > all || !lvd_os_file_read(c->file, at + MC_UNIT + from, c->ring, ahead) ||
      !lvd_os_file_read(c->file, at + MC_UNIT, c->ring + ahead, size - ahead))
    return 0;
  /* The receiver goes on meanwhile, so a head may be something else by now. */
  uint32_t found = 0;
  for (uint32_t line = 0; line < count; found++) {
    uint32_t length;
    memcpy(&length, c->ring + (size_t)line * MC_PACKET_LINE, sizeof length);
    if (length > MCAPI_MAX_PACKET_SIZE) break;
    line += 1 + (length + MC_PACKET_LINE - 1) / MC_PACKET_LINE;
  }
  return found;
}

/* In a message queue: of long ones, pieces. */
static uint32_t waiting_in(const copy *c, uint32_t index, bool channel) {
  char name[64];
  lvd_os_queue q;
  mc_pmq_name(name, sizeof name, c->number, index, channel);
  if (lvd_os_queue_find(name, &q) != LVD_OK) return 0;
  uint32_t count = lvd_os_queue_count(&q);
  lvd_os_queue_close(&q);
  return count;
}

/* Of a broadcast, which has no other end to show. */
static void see_receivers(copy *c, lvd_mcapi_endpoint_seen *out) {
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    const mc_endpoint *e = &c->tables.endpoint[i];
    out->receivers += word(&e->handle) && word(&e->handle) != out->handle &&
                      word(&e->peer) == out->handle && word(&e->many);
  }
  out->connected = true;
}

static void see_endpoint(copy *c, uint32_t index, lvd_mcapi_endpoint_seen *out) {
  const mc_endpoint *e = &c->tables.endpoint[index];
  uint32_t role = word(&e->role), state = word(&e->state);
  *out = (lvd_mcapi_endpoint_seen){.handle = word(&e->handle),
                                   .node = id_of(c, word(&e->node)),
                                   .port = word(&e->port),
                                   .alive = is_alive(c, word(&e->owner)),
                                   .kind = role & MC_PACKETS   ? LVD_MCAPI_PACKETS
                                           : role & MC_NUMBERS ? LVD_MCAPI_SCALARS
                                                               : LVD_MCAPI_MESSAGES,
                                   .sends = (role & MC_SENDS) != 0,
                                   .opened = (state & MC_OPENED) != 0,
                                   .closed = (state & MC_CLOSED) != 0};
  const mc_endpoint *peer = find(c, word(&e->peer));
  if (peer == e) {
    see_receivers(c, out);
  } else if (peer) {
    out->peer = word(&peer->handle);
    out->peer_node = id_of(c, word(&peer->node));
    out->peer_port = word(&peer->port);
    out->connected = word(&peer->peer) == (word(&e->many) ? out->peer : out->handle);
  }
  out->received = lvd_load_relaxed_u64(&e->received);
  out->received_bytes = lvd_load_relaxed_u64(&e->received_bytes);
  if (c->transport == LVD_MCAPI_TRANSPORT_PMQ) {
    out->messages = waiting_in(c, index, false);
    if (out->kind != LVD_MCAPI_MESSAGES && !out->sends) out->elements = waiting_in(c, index, true);
    return;
  }
  if (!lvd_os_file_read(c->file, mc_queue_at(index), &c->queue, sizeof c->queue)) return;
  out->messages = messages_in(&c->queue);
  if (out->kind == LVD_MCAPI_MESSAGES || out->sends || !out->peer) return;
  bool many = word(&e->many) != 0;
  out->elements = elements_in(c, many ? mc_index(out->peer) : index, many ? word(&e->seat) : 0,
                              out->kind == LVD_MCAPI_PACKETS);
}

static lvd_status see(copy *c, lvd_mcapi_domain_seen *out) {
  const mc_tables *t = &c->tables;
  out->node = calloc(MC_NODES, sizeof *out->node);
  out->endpoint = calloc(MC_ENDPOINTS, sizeof *out->endpoint);
  if (!out->node || !out->endpoint) return LVD_E_MEMORY;
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (!word(&t->process[i].serial)) continue;
    c->alive[i] = mc_file_alive(c->file, i);
    out->processes++;
    out->dead += !c->alive[i];
  }
  for (uint32_t i = 0; i < MC_NODES; i++) {
    uint32_t owner = word(&t->node[i].owner);
    if (!owner || owner > MC_PROCESSES) continue;
    out->node[out->node_count++] = (lvd_mcapi_node_seen){.id = word(&t->node[i].id),
                                                         .process = word(&t->process[owner - 1].id),
                                                         .alive = is_alive(c, owner)};
  }
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    mcapi_endpoint_t handle = word(&t->endpoint[i].handle);
    if (handle && mc_index(handle) == i) see_endpoint(c, i, &out->endpoint[out->endpoint_count++]);
  }
  return LVD_OK;
}

static lvd_status find_file(uint32_t number, int *file) {
  int directory;
  int64_t group = MC_GROUP_AS_SAID;
  char name[64];
  lvd_status status = mc_names_open(&group, &directory);
  if (status != LVD_OK) return status;
  mc_file_name(name, sizeof name, number);
  status = lvd_os_file_find(directory, name, file);
  lvd_os_close(directory);
  return status;
}

lvd_status lvd_mcapi_domain_look(uint32_t number, lvd_mcapi_domain_seen *out) {
  if (!out || number > MCAPI_MAX_DOMAIN) return LVD_E_ARGUMENT;
  *out = (lvd_mcapi_domain_seen){.number = number};
  if (mc_any_node()) return LVD_E_STATE; /* to close its file would cost the node its lock */
  copy *c = calloc(1, sizeof *c);
  if (!c) return LVD_E_MEMORY;
  lvd_status status = find_file(number, &c->file);
  if (status == LVD_OK) {
    bool whole = lvd_os_file_read(c->file, 0, &c->tables, sizeof c->tables);
    c->number = number;
    bool queues = c->tables.transport == LVD_MCAPI_TRANSPORT_PMQ - 1;
    out->transport = c->transport = queues ? LVD_MCAPI_TRANSPORT_PMQ : LVD_MCAPI_TRANSPORT_SHM;
    status = whole && mc_tables_fit(&c->tables) ? see(c, out) : LVD_E_LAYOUT;
    lvd_os_close(c->file);
  }
  free(c);
  if (status != LVD_OK) lvd_mcapi_domain_forget(out);
  return status;
}

void lvd_mcapi_domain_forget(lvd_mcapi_domain_seen *seen) {
  free(seen->node);
  free(seen->endpoint);
  *seen = (lvd_mcapi_domain_seen){.number = seen->number};
}

/* ---- clearing ------------------------------------------------------------------------------- */

static void count_dead(const lvd_mcapi_domain_seen *seen, lvd_mcapi_cleared *out) {
  out->processes = seen->dead;
  for (uint32_t i = 0; i < seen->node_count; i++) out->nodes += !seen->node[i].alive;
  for (uint32_t i = 0; i < seen->endpoint_count; i++) out->endpoints += !seen->endpoint[i].alive;
}

lvd_status lvd_mcapi_domain_clean(uint32_t number, lvd_mcapi_cleared *out) {
  if (!out || number > MCAPI_MAX_DOMAIN) return LVD_E_ARGUMENT;
  *out = (lvd_mcapi_cleared){0};
  if (mc_any_node()) return LVD_E_STATE;
  lvd_mcapi_domain_seen seen;
  lvd_status status = lvd_mcapi_domain_look(number, &seen);
  if (status == LVD_OK) count_dead(&seen, out);
  lvd_mcapi_domain_forget(&seen);
  mc_domain *d;
  status = mc_domain_join(number, MC_WHATEVER, MC_GROUP_AS_SAID, &d);
  if (status != LVD_OK) return status;
  for (uint32_t i = 0; i < MC_PROCESSES; i++) {
    if (!word(&d->tables->process[i].serial)) continue;
    mc_gate_enter(d);
    mc_bury(d, i);
    mc_gate_leave(d);
  }
  mc_ring_all(d, NULL);
  mc_domain_leave(d);
  int file;
  out->gone = find_file(number, &file) == LVD_E_UNKNOWN;
  if (!out->gone) lvd_os_close(file);
  return LVD_OK;
}
