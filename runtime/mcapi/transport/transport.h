/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Transport: what carries the messages and the channels of a domain. One for all of a domain, chosen by
 * whoever lays it out (an attribute of its node, else LEVADA_MCAPI_TRANSPORT=name, else shm).
 *
 * Above it: nodes, endpoints, attributes, requests, who is connected to whom, open or closed, who is
 * alive: the tables, which lie in a file that all have mapped (a file of /dev/shm or of any other file
 * system; the pages of tables and bells are all that a transport can rely on). The bells lie there,
 * too, so waiting is above as well: a transport rings for whoever may go on (mc_ring, mc_ring_all).
 * Below it: a queue for each endpoint, and a channel for each connected pair.
 *
 * To add one: fill in an mc_transport in a file of its own, and enter it in `transports` (domain.c), at
 * the end: a place there is the number in the file's header. It keeps what is a domain's in
 * d->own, an endpoint's in local->own, an open channel's in local->channel.own; what lies in names of the
 * system is named for the domain and the endpoint's place, so that `clear` and `bury` can take it away
 * without having known whose it was. Every function is called by any thread. With `local` it holds
 * that endpoint's lock, unless it says otherwise; none waits.
 *
 * What all of them do
 *   T1  A message or a packet is received whole, or not at all, whoever dies or runs wild.
 *   T2  What was sent before a death or an end is received; of one sender, in the order it was sent,
 *       at one level.
 *   T3  The place of a dead process's endpoint can be used again, and what was left in it is dropped. */
#ifndef LVD_MCAPI_TRANSPORT_H
#define LVD_MCAPI_TRANSPORT_H

#include "../api/api_internal.h"

struct mc_transport {
  const char *name;

  /* ---- a domain's; all may be null ---- */
  lvd_status (*join)(mc_domain *d); /* this process has its place in the table; behind the gate */
  void (*leave)(mc_domain *d);      /* all that this process has mapped or opened */
  void (*clear)(mc_domain *d);      /* nobody else is in it: whatever was left goes */
  /* The endpoint at `index` belonged to a process that is dead. Behind the gate; more than once. */
  void (*bury)(mc_domain *d, uint32_t index);

  /* ---- an endpoint's queue ---- */
  /* `local` has its index: this process receives there from now on, and what was left is dropped.
   * Behind the gate. LVD_OK, LVD_E_MEMORY. */
  lvd_status (*open)(mc_domain *d, mc_local *local);
  /* Behind the gate, its handle is gone: senders that wait for room are rung for. */
  void (*close)(mc_domain *d, mc_local *local);
  /* From `local`. `to` may be anybody's, or nobody's any more. `level`: above 0 is more urgent. LVD_OK;
   * LVD_E_TIME: there is no room; LVD_E_PEER: there is no such endpoint; LVD_E_MEMORY. */
  lvd_status (*send)(mc_domain *d, mc_local *local, mcapi_endpoint_t to, const void *buffer,
                     size_t size, uint32_t level);
  /* LVD_OK; LVD_E_TIME: nothing has come; LVD_E_LIMIT: it is cut to `room` bytes; LVD_E_CORRUPT. */
  lvd_status (*receive)(mc_domain *d, mc_local *local, void *buffer, size_t room, size_t *size);
  uint32_t (*count)(mc_domain *d, mc_local *local);  /* messages to receive */
  uint32_t (*buffers)(mc_domain *d, uint32_t index); /* free ones, of anybody's queue; no lock */
  /* When there is room at `index`, `node` is rung for; afterwards the caller tries again. No lock. */
  void (*await_room)(mc_domain *d, uint32_t index, uint32_t node);

  /* ---- a channel, of the endpoint that receives ---- */
  /* Makes it, empty, for MC_PACKETS or MC_NUMBERS, whatever was there. Behind the gate; no lock.
   * LVD_OK, LVD_E_MEMORY. */
  lvd_status (*lay)(mc_domain *d, uint32_t index, uint32_t kind);
  /* The same of a broadcast, for the endpoint that sends; null: there is none. */
  lvd_status (*lay_broadcast)(mc_domain *d, uint32_t index);
  /* local->channel.role and .many say which end is opened here. False: that is no channel. */
  bool (*attach)(mc_domain *d, mc_local *local, mcapi_endpoint_t peer);
  /* Closed here, or deleted. Packets that are held, and a loan that is out, stay as they are (mc_lent_keep). */
  void (*detach)(mc_domain *d, mc_local *local);
  /* LVD_OK; LVD_E_TIME: no room; LVD_E_CORRUPT; LVD_E_MEMORY. They ring local->channel.peer_node. */
  lvd_status (*put_packet)(mc_domain *d, mc_local *local, const void *data, size_t size);
  lvd_status (*put_scalar)(mc_domain *d, mc_local *local, uint64_t value, uint32_t size);
  /* LVD_OK; LVD_E_TIME: none there; LVD_E_CORRUPT; LVD_E_LIMIT: as many are held as can be;
   * LVD_E_ARGUMENT: the scalar is of another size, and stays. */
  lvd_status (*take_packet)(mc_domain *d, mc_local *local, void **at, size_t *size);
  lvd_status (*take_scalar)(mc_domain *d, mc_local *local, uint32_t size, uint64_t *value);
  uint32_t (*available)(mc_domain *d, mc_local *local);
  /* A packet of `size` bytes is to be filled in at *at; and sent, `size` bytes of it or fewer, before
   * anything else is. LVD_OK; LVD_E_TIME: no room; LVD_E_CORRUPT; LVD_E_MEMORY. */
  lvd_status (*loan)(mc_domain *d, mc_local *local, size_t size, void **at);
  /* LVD_OK; LVD_E_CORRUPT, and the like: somebody has taken its room. */
  lvd_status (*send_loan)(mc_domain *d, mc_local *local, size_t size);
  /* False: it is not held here. */
  bool (*release)(mc_domain *d, mc_local *local, const void *buffer, bool only_test);

  /* ---- waiting; may be null ---- */
  /* Instead of sleeping on the node's bell: a thread waits for the one request `r`, which stands in line
   * (MC_SEND ... MC_SCALAR_IN). Sleeps where it likes, but is back in time for `look(what)` when
   * r may have become done: what came, room, an end closed, a death, a cancel (all of which ring the
   * node's bell, too). LVD_OK when look said so, LVD_E_TIME. No lock. */
  lvd_status (*wait)(mc_domain *d, mc_request *r, bool (*look)(void *what), void *what,
                     int64_t timeout_ns);
};

/* What all of them have, to declare it and to fill it in: a function is called as its place in the table,
 * behind its transport's name. */
#define MC_TRANSPORT(F)                                                                            \
  F(open)                                                                                          \
  F(close)                                                                                         \
  F(send)                                                                                          \
  F(receive)                                                                                       \
  F(count)                                                                                         \
  F(buffers)                                                                                       \
  F(await_room)                                                                                    \
  F(lay)                                                                                           \
  F(attach)                                                                                        \
  F(detach)                                                                                        \
  F(put_packet)                                                                                    \
  F(put_scalar) F(take_packet) F(take_scalar) F(available) F(loan) F(send_loan) F(release)
#define MC_FUNCTION(function, name) __typeof__(*((mc_transport *)0)->function) name;

/* ---- shared memory (shm_queue.c, shm_channel.c) ------------------------------------------------- */

#define MC_SHM_FUNCTION(function) MC_FUNCTION(function, mc_shm_##function)
#define MC_SHM_ENTRY(function)    .function = mc_shm_##function,
extern const mc_transport mc_shm;
extern const mc_transport mc_pmq; /* mqueue.h */

MC_TRANSPORT(MC_SHM_FUNCTION)
void mc_shm_leave(mc_domain *d);
/* Without the lock: is it worth while to try? */
bool mc_shm_ready(const mc_local *local, enum mc_kind kind);
lvd_channel *mc_shm_channel_at(mc_domain *d, uint32_t index); /* mapped; null: no memory */

/* shm_view.c. Null: no memory. Closed with the endpoint's lock: what is held of its channel is lent from then on. */
mc_view *mc_view_open(mc_domain *d, uint32_t index);
lvd_channel *mc_view_channel(const mc_view *v);
void mc_view_close(const mc_local *local);
void mc_views_leave(mc_domain *d);

/* shm_broadcast.c */
lvd_status mc_shm_lay_broadcast(mc_domain *d, uint32_t index);
/* Sending: who has come or gone since the last look. Before each packet. */
void mc_shm_audience(mc_domain *d, mc_local *local);
void mc_shm_ring_audience(mc_domain *d, const mc_channel *c);
/* Receiving: has the sender let us in? */
bool mc_shm_seated(mc_domain *d, mc_local *local);

/* ---- the way through ---------------------------------------------------------------------------- */

/* Of what every message goes through, shared memory's is called directly. */
#define MC_THROUGH(d, function, ...)                                                               \
  (LVD_LIKELY((d)->transport == &mc_shm) ? mc_shm_##function(__VA_ARGS__)                          \
                                         : (d)->transport->function(__VA_ARGS__))

#endif
