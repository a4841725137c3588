/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Transport: carries the messages and channels of a domain. A domain has one transport, chosen by
 * the process that creates the file (an attribute of its node, else LEVADA_MCAPI_TRANSPORT=name,
 * else shm).
 *
 * Above it are nodes, endpoints, attributes, requests, connections and the detection of dead
 * processes. They use the tables, which lie in a file that all members map (of /dev/shm or of any
 * other file system). The eventcounts lie there, too, so waiting is above as well: a transport
 * notifies the nodes that may proceed (mc_notify, mc_notify_all). A transport may rely on nothing
 * else in the file. Below it are a message queue for each endpoint, and a channel for each
 * connected pair.
 *
 * To add one: define an mc_transport in a file of its own, and append it to `transports`
 * (domain.c); its index is stored in the file's header. It keeps its data in d->transport_data,
 * local->transport_data and local->channel.transport_data. Names of system objects contain the
 * domain and the endpoint's index, so that `remove_all` and `reap` can remove them without knowing
 * their owner. Every function may be called by any thread. Unless its comment says otherwise, a
 * function with a `local` parameter is called with that endpoint's lock. No function waits.
 *
 * Guarantees of every transport
 *   T1  A message or packet is received completely or not at all, whatever process dies or
 *       misbehaves.
 *   T2  What was sent before a death or a close is received; from one sender, in the order of
 *       sending, within a priority level.
 *   T3  The index of a dead process's endpoint can be reused; what was left in its queue is
 *       dropped. */
#ifndef LVD_MCAPI_TRANSPORT_H
#define LVD_MCAPI_TRANSPORT_H

#include "../api/api_internal.h"

struct mc_transport {
  const char *name;

  /* ---- of the domain; all may be null ---- */
  lvd_status (*join)(mc_domain *d); /* after this process has got its index; with the tables lock */
  void (*leave)(mc_domain *d);      /* releases all that this process has mapped or opened */
  void (*remove_all)(mc_domain *d); /* no other process is a member: removes all system objects */
  /* Removes what the endpoint at `index` of a dead process had. With the tables lock; may be
   * repeated. */
  void (*reap)(mc_domain *d, uint32_t index);

  /* ---- message queue of an endpoint ---- */
  /* This process receives at local->index from now on; what was left there is dropped. With the
   * tables lock. LVD_OK, LVD_E_MEMORY. */
  lvd_status (*open)(mc_domain *d, mc_local_endpoint *local);
  /* The handle has been removed: notifies senders that wait for room. With the tables lock. */
  void (*close)(mc_domain *d, mc_local_endpoint *local);
  /* Sends from `local` to `to`, an endpoint of any process, which may have been deleted. A higher
   * `level` is received first. LVD_OK; LVD_E_TIMEOUT: no room; LVD_E_PEER_GONE: no such endpoint;
   * LVD_E_MEMORY. */
  lvd_status (*send)(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t to,
                     const void *buffer, size_t size, uint32_t level);
  /* LVD_OK; LVD_E_TIMEOUT: no message; LVD_E_LIMIT: truncated to `room` bytes; LVD_E_CORRUPT. */
  lvd_status (*receive)(mc_domain *d, mc_local_endpoint *local, void *buffer, size_t room,
                        size_t *size);
  uint32_t (*count)(mc_domain *d, mc_local_endpoint *local); /* messages that can be received */
  uint32_t (*free_buffers)(mc_domain *d, uint32_t index);    /* of any endpoint; no lock */
  /* `node` will be notified when there is room at `index`. The caller tries again after this. No
   * lock. */
  void (*await_room)(mc_domain *d, uint32_t index, uint32_t node);

  /* ---- channel, identified by the receiving endpoint ---- */
  /* Creates an empty one for MC_ROLE_PACKETS or MC_ROLE_SCALARS; replaces any that was there. With
   * the tables lock, without the endpoint's. LVD_OK, LVD_E_MEMORY. */
  lvd_status (*channel_create)(mc_domain *d, uint32_t index, uint32_t kind);
  /* The same for a broadcast, at the sending endpoint's index; null: broadcasts are not
   * supported. */
  lvd_status (*broadcast_create)(mc_domain *d, uint32_t index);
  /* Opens the end that local->channel.role and .broadcast describe. False: there is no valid
   * channel. */
  bool (*attach)(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t peer);
  /* The end is closed or deleted. Packets and a loan that the program holds stay valid
   * (mc_detached_add). */
  void (*detach)(mc_domain *d, mc_local_endpoint *local);
  /* LVD_OK; LVD_E_TIMEOUT: no room; LVD_E_CORRUPT; LVD_E_MEMORY. They notify
   * local->channel.peer_node. */
  lvd_status (*put_packet)(mc_domain *d, mc_local_endpoint *local, const void *data, size_t size);
  lvd_status (*put_scalar)(mc_domain *d, mc_local_endpoint *local, uint64_t value, uint32_t size);
  /* LVD_OK; LVD_E_TIMEOUT: the channel is empty; LVD_E_CORRUPT; LVD_E_LIMIT: too many packets are
   * held; LVD_E_ARGUMENT: the scalar has another size, and stays in the channel. */
  lvd_status (*take_packet)(mc_domain *d, mc_local_endpoint *local, void **at, size_t *size);
  lvd_status (*take_scalar)(mc_domain *d, mc_local_endpoint *local, uint32_t size, uint64_t *value);
  uint32_t (*available)(mc_domain *d, mc_local_endpoint *local);
  /* Lends the program room for a packet of `size` bytes at *at, to be filled and sent with at most
   * `size` bytes. Nothing else is sent meanwhile. LVD_OK; LVD_E_TIMEOUT: no room; LVD_E_CORRUPT;
   * LVD_E_MEMORY. */
  lvd_status (*loan)(mc_domain *d, mc_local_endpoint *local, size_t size, void **at);
  /* LVD_OK; any other status: a misbehaving process has taken the room. */
  lvd_status (*send_loan)(mc_domain *d, mc_local_endpoint *local, size_t size);
  /* False: this end holds no such buffer. */
  bool (*release)(mc_domain *d, mc_local_endpoint *local, const void *buffer, bool only_test);

  /* ---- waiting; may be null ---- */
  /* Used by a thread instead of sleeping on the node's eventcount: waits for one queued request `r`
   * (MC_MESSAGE_SEND ... MC_SCALAR_RECEIVE). It may sleep in any way, but has to call
   * is_ready(argument) whenever `r` may have become complete: data, room, a closed end, a death, a
   * cancel (all of which also notify the node). LVD_OK: is_ready returned true; LVD_E_TIMEOUT. No
   * lock. */
  lvd_status (*wait)(mc_domain *d, mc_request *r, bool (*is_ready)(void *argument), void *argument,
                     int64_t timeout_ns);
};

/* The functions that every transport has, to declare and to enter them: each is named after its
 * member, with the transport's prefix. */
#define MC_TRANSPORT_FUNCTIONS(F)                                                                  \
  F(open)                                                                                          \
  F(close)                                                                                         \
  F(send)                                                                                          \
  F(receive)                                                                                       \
  F(count)                                                                                         \
  F(free_buffers)                                                                                  \
  F(await_room)                                                                                    \
  F(channel_create)                                                                                \
  F(attach)                                                                                        \
  F(detach)                                                                                        \
  F(put_packet)                                                                                    \
  F(put_scalar) F(take_packet) F(take_scalar) F(available) F(loan) F(send_loan) F(release)
#define MC_FUNCTION(function, name) __typeof__(*((mc_transport *)0)->function) name;

/* ---- shared memory (shm_queue.c, shm_channel.c) ---------------------------------------------- */

#define MC_SHM_FUNCTION(function) MC_FUNCTION(function, mc_shm_##function)
#define MC_SHM_ENTRY(function)    .function = mc_shm_##function,
extern const mc_transport mc_shm;
extern const mc_transport mc_pmq; /* mqueue.h */

MC_TRANSPORT_FUNCTIONS(MC_SHM_FUNCTION)
void mc_shm_leave(mc_domain *d);
/* A hint, without the lock: a request of that kind may complete. */
bool mc_shm_ready(const mc_local_endpoint *local, enum mc_kind kind);
lvd_channel *mc_shm_channel_at(mc_domain *d, uint32_t index); /* mapped; null: no memory */

/* shm_view.c. Null: no memory. Closed with the endpoint's lock; buffers that are held become
 * detached. */
mc_view *mc_view_open(mc_domain *d, uint32_t index);
lvd_channel *mc_view_channel(const mc_view *v);
void mc_view_close(const mc_local_endpoint *local);
void mc_views_leave(mc_domain *d);

/* shm_broadcast.c */
lvd_status mc_shm_broadcast_create(mc_domain *d, uint32_t index);
/* Sending: adopts changes of the set of receivers. Before each packet. */
void mc_shm_update_receivers(mc_domain *d, mc_local_endpoint *local);
void mc_shm_notify_receivers(mc_domain *d, const mc_channel *c);
/* Receiving: has the sender admitted this end? */
bool mc_shm_is_admitted(mc_domain *d, mc_local_endpoint *local);

/* ---- calls ----------------------------------------------------------------------------------- */

/* Calls a transport's function; directly for shared memory, since every message takes this path. */
#define MC_TRANSPORT_CALL(d, function, ...)                                                        \
  (LVD_LIKELY((d)->transport == &mc_shm) ? mc_shm_##function(__VA_ARGS__)                          \
                                         : (d)->transport->function(__VA_ARGS__))

#endif
