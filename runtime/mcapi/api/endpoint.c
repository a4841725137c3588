/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Endpoints: creating, finding, deleting, and their attributes. */
#include "../transport/transport.h"

#include <stdlib.h>
#include <string.h>

enum {
  GENERATIONS = (1 << MC_GENERATION_BITS) - 2,
  FIRST_DYNAMIC_PORT = 0x40000000,
  GET_COUNT_MAX = 1 << 30
};

static mc_endpoint *record(const mc_domain *d, mcapi_endpoint_t e) {
  return &d->tables->endpoint[mc_index(e)];
}

bool mc_endpoint_exists(const mc_domain *d, mcapi_endpoint_t e) {
  return e && lvd_load_acquire_u32(&record(d, e)->handle) == e;
}

bool mc_endpoint_was_deleted(const mc_domain *d, mcapi_endpoint_t e) {
  uint32_t generation = e / MC_ENDPOINTS;
  if (!generation || mc_endpoint_exists(d, e)) return false;
  /* The handle is read first: if it has ended, its death is visible in the history, too. */
  uint64_t past = lvd_load_relaxed_u64(&record(d, e)->history);
  uint32_t age = mc_generation(past) - generation;
  return age < MC_DEATH_BITS && !mc_died_with_process(past, age);
}

/* The ID of the node at an index of the table. */
static mcapi_node_t node_id_at(const mc_domain *d, uint32_t at) {
  return lvd_load_acquire_u32(&d->tables->node[at].id);
}

/* The fields may be those of the next endpoint at the index; then the handle has changed by now. */
mcapi_endpoint_t mc_endpoint_find(mc_domain *d, mcapi_node_t node, mcapi_port_t port) {
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    mc_endpoint *e = &d->tables->endpoint[i];
    mcapi_endpoint_t handle = lvd_load_acquire_u32(&e->handle);
    if (!handle || mc_index(handle) != i || lvd_load_acquire_u32(&e->port) != port) continue;
    uint32_t at = lvd_load_acquire_u32(&e->node);
    if (at < MC_NODES && node_id_at(d, at) == node && lvd_load_relaxed_u32(&e->handle) == handle)
      return handle;
  }
  return 0;
}

/* ---- creating and deleting ------------------------------------------------------------------- */

static mc_local_endpoint *local_endpoint_at(mc_domain *d, uint32_t index) {
  mc_local_endpoint *local = lvd_load_relaxed_ptr(&d->local[index]);
  if (!local && (local = calloc(1, sizeof *local))) {
    local->index = index;
    mc_lock_init(&local->lock, &mc_thread_mark, lvd_channel_fenced());
    lvd_store_release_ptr(&d->local[index], local);
  }
  return local;
}

static void reset_attributes(mc_endpoint *e) {
  for (uint32_t i = 0; i < MCAPI_ENDP_ATTR_END; i++) lvd_store_relaxed_u32(&e->attribute[i], 0);
  static const struct {
    uint32_t number, value;
  } others[] = {{MCAPI_ENDP_ATTR_TYPE, MCAPI_ENDP_ATTR_TYPE_MESSAGE},
                {MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, MCAPI_MAX_MESSAGE_SIZE},
                {MCAPI_ENDP_ATTR_NUM_PRIORITIES, LVD_INBOX_LEVELS},
                {MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS, MC_SLOTS},
                {MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, MC_SLOTS},
                {MCAPI_ENDP_ATTR_TIMEOUT, MCAPI_TIMEOUT_INFINITE}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    lvd_store_relaxed_u32(&e->attribute[others[i].number], others[i].value);
  lvd_store_relaxed_u32(&e->role, 0);
  lvd_store_relaxed_u32(&e->peer, 0);
  lvd_store_relaxed_u32(&e->state, 0);
  lvd_store_relaxed_u32(&e->broadcast, 0);
  lvd_store_relaxed_u32(&e->get_count, 0);
  lvd_store_relaxed_u32(&e->get_domain, MCAPI_DOMAIN_INVALID);
  lvd_store_relaxed_u32(&e->get_node, MCAPI_NODE_INVALID);
  lvd_store_relaxed_u64(&e->received, 0);
  lvd_store_relaxed_u64(&e->received_bytes, 0);
}

static lvd_status open_local(mc_local_node *self, mc_local_endpoint *local,
                             mcapi_endpoint_t handle) {
  mc_lock_acquire(&local->lock);
  lvd_store_relaxed_ptr(&local->node, self);
  lvd_store_relaxed_u32(&local->timeout, MCAPI_TIMEOUT_INFINITE);
  lvd_store_relaxed_u32(&local->memory, 0);
  lvd_store_relaxed_u32(&local->spin_us, MC_SPIN_US);
  local->channel.role = 0;
  lvd_status status = self->domain->transport->open(self->domain, local);
  if (status == LVD_OK) lvd_store_release_u32(&local->handle, handle);
  mc_lock_release(&local->lock);
  return status;
}

/* Sets the owner before any other field, and the handle last. With the tables lock. */
static mcapi_status_t create(mc_local_node *self, mcapi_port_t port, mcapi_endpoint_t *out) {
  mc_domain *d = self->domain;
  if (port == MCAPI_PORT_ANY) do
      port = FIRST_DYNAMIC_PORT + self->next_port++ % FIRST_DYNAMIC_PORT;
    while (mc_endpoint_find(d, self->id, port));
  else if (mc_endpoint_find(d, self->id, port))
    return MCAPI_ERR_ENDP_EXISTS;
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    mc_endpoint *e = &d->tables->endpoint[i];
    if (lvd_load_relaxed_u32(&e->owner) || mc_channel_in_use(d, i)) continue;
    mc_local_endpoint *local = local_endpoint_at(d, i);
    if (!local) return MCAPI_ERR_MEM_LIMIT;
    lvd_store_relaxed_u32(&e->owner, 1 + d->process);
    uint64_t past = lvd_load_relaxed_u64(&e->history), ends = past >> MC_GENERATION_BITS;
    uint32_t generation = mc_generation(past) % GENERATIONS + 1;
    lvd_store_relaxed_u64(&e->history, ends << (MC_GENERATION_BITS + 1) | generation);
    lvd_store_release_u32(&e->node, self->index);
    lvd_store_release_u32(&e->port, port);
    reset_attributes(e);
    const mcapi_endpoint_t handle = generation * MC_ENDPOINTS + i;
    lvd_status status = open_local(self, local, handle);
    if (status != LVD_OK) {
      lvd_store_relaxed_u32(&e->owner, 0);
      return MCAPI_ERR_MEM_LIMIT;
    }
    *out = handle;
    lvd_store_release_u32(&e->handle, handle);
    return MCAPI_SUCCESS;
  }
  return MCAPI_ERR_ENDP_LIMIT;
}

mcapi_endpoint_t mcapi_endpoint_create(mcapi_port_t port_id, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_endpoint_t out = 0;
  mcapi_status_t status = MCAPI_ERR_NODE_NOTINIT;
  if (self && port_id > MCAPI_MAX_PORT && port_id != MCAPI_PORT_ANY) {
    status = MCAPI_ERR_PORT_INVALID;
  } else if (self) {
    mc_tables_lock(self->domain);
    status = create(self, port_id, &out);
    mc_tables_unlock(self->domain);
    if (status == MCAPI_SUCCESS)
      mc_notify_all(self->domain, &self->domain->tables->endpoint_waiters);
  }
  mc_set_status(mcapi_status, status);
  return out;
}

/* Senders that wait for room poll again and find it deleted. MCAPI_ERR_ENDP_INVALID: another call
 * has deleted it. MCAPI_ERR_CHAN_OPEN: its channel is open, and `if_closed` is set. */
static mcapi_status_t delete_endpoint(mc_local_node *self, mc_local_endpoint *local,
                                      mcapi_endpoint_t handle, bool if_closed) {
  mc_domain *d = self->domain;
  mc_endpoint *e = &d->tables->endpoint[local->index];
  mc_tables_lock(d);
  mc_lock_acquire(&local->lock);
  bool there = lvd_load_relaxed_u32(&local->handle) == handle;
  bool open = local->channel.role != 0;
  mc_lock_release(&local->lock);
  if (there && !(open && if_closed)) {
    mc_channel_abandon(d, local, handle);
    lvd_store_release_u32(&e->handle, 0);
    mc_lock_acquire(&local->lock);
    lvd_store_relaxed_u32(&local->handle, 0);
    mc_requests_fail(local, MC_MESSAGE_SEND, MCAPI_ERR_ENDP_DELETED);
    d->transport->close(d, local);
    mc_descriptor_close(local);
    mc_lock_release(&local->lock);
    lvd_store_relaxed_u32(&e->owner, 0);
  }
  mc_tables_unlock(d);
  mc_notify(d, self->index);
  return !there ? MCAPI_ERR_ENDP_INVALID : open && if_closed ? MCAPI_ERR_CHAN_OPEN : MCAPI_SUCCESS;
}

void mc_endpoints_delete(mc_local_node *node) {
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) {
    mc_local_endpoint *local = lvd_load_acquire_ptr(&node->domain->local[i]);
    mcapi_endpoint_t handle = local ? lvd_load_acquire_u32(&local->handle) : 0;
    if (handle && mc_owner(local) == node) delete_endpoint(node, local, handle, false);
  }
}

void mcapi_endpoint_delete(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_local_endpoint *local = self ? mc_local_endpoint_of(self, endpoint) : NULL;
  mc_set_status(mcapi_status, !self   ? MCAPI_ERR_NODE_NOTINIT
                              : local ? delete_endpoint(self, local, endpoint, true)
                              : mc_endpoint_exists(self->domain, endpoint)
                                  ? MCAPI_ERR_ENDP_NOTOWNER
                                  : MCAPI_ERR_ENDP_INVALID);
}

/* ---- getting and releasing ------------------------------------------------------------------- */

bool mc_endpoint_add_reference(mc_local_node *node, mcapi_endpoint_t endpoint) {
  mc_endpoint *e = record(node->domain, endpoint);
  uint32_t count = lvd_load_relaxed_u32(&e->get_count);
  do
    if (count >= GET_COUNT_MAX) return false;
  while (!lvd_cas_relaxed_u32(&e->get_count, &count, count + 1));
  lvd_store_relaxed_u32(&e->get_domain, node->domain->number);
  lvd_store_relaxed_u32(&e->get_node, node->id);
  return true;
}

static mcapi_status_t check_get(const mc_local_node *self, mcapi_domain_t domain, mcapi_node_t node,
                                mcapi_port_t port) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  if (domain != self->domain->number) return MCAPI_ERR_DOMAIN_INVALID;
  if (node > MCAPI_MAX_NODE) return MCAPI_ERR_NODE_INVALID;
  return port > MCAPI_MAX_PORT ? MCAPI_ERR_PORT_INVALID : MCAPI_SUCCESS;
}

void mcapi_endpoint_get_i(mcapi_domain_t domain_id, mcapi_node_t node_id, mcapi_port_t port_id,
                          mcapi_endpoint_t *endpoint, mcapi_request_t *request,
                          mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status = check_get(self, domain_id, node_id, port_id);
  if (status == MCAPI_SUCCESS && (!endpoint || !request)) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) {
    const mc_request r = {.kind = MC_ENDPOINT_GET,
                          .node = self,
                          .target_node = node_id,
                          .target_port = port_id,
                          .endpoint = endpoint};
    status = mc_request_begin(&r, request);
  }
  mc_set_status(mcapi_status, status);
}

mcapi_endpoint_t mcapi_endpoint_get(mcapi_domain_t domain_id, mcapi_node_t node_id,
                                    mcapi_port_t port_id, mcapi_timeout_t timeout,
                                    mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_endpoint_t found = 0;
  mcapi_status_t status = check_get(self, domain_id, node_id, port_id);
  if (status == MCAPI_SUCCESS) {
    mc_request r = {.kind = MC_ENDPOINT_GET,
                    .node = self,
                    .target_node = node_id,
                    .target_port = port_id,
                    .endpoint = &found};
    status = mc_request_run(&r, mc_timeout_ns(timeout));
  }
  mc_set_status(mcapi_status, status);
  return found;
}

void mcapi_endpoint_release(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status = self ? MCAPI_SUCCESS : MCAPI_ERR_NODE_NOTINIT;
  if (self && !mc_endpoint_exists(self->domain, endpoint)) status = MCAPI_ERR_ENDP_INVALID;
  if (status == MCAPI_SUCCESS) {
    lvd_a32 *count = &record(self->domain, endpoint)->get_count;
    uint32_t now = lvd_load_relaxed_u32(count);
    while (now && !lvd_cas_relaxed_u32(count, &now, now - 1)) {
    }
    if (!now) status = MCAPI_ERR_ENDP_INVALID; /* it has no reference */
  }
  mc_set_status(mcapi_status, status);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static size_t size_of(mcapi_uint_t number) {
  return number == MCAPI_ENDP_ATTR_GET_SOURCE ? sizeof(mcapi_endp_attr_get_source_t)
                                              : sizeof(mcapi_uint_t);
}

static mcapi_status_t check_attribute(mc_local_node *self, mcapi_endpoint_t endpoint,
                                      mcapi_uint_t number, const void *attribute, size_t size) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  if (!mc_endpoint_exists(self->domain, endpoint)) return MCAPI_ERR_ENDP_INVALID;
  if (!attribute) return MCAPI_ERR_PARAMETER;
  if (number >= MCAPI_ENDP_ATTR_END) return MCAPI_ERR_ATTR_NUM;
  return size == size_of(number) ? MCAPI_SUCCESS : MCAPI_ERR_ATTR_SIZE;
}

void mcapi_endpoint_get_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t attribute_num,
                                  void *attribute, size_t attribute_size,
                                  mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status = check_attribute(self, endpoint, attribute_num, attribute, attribute_size);
  mc_set_status(mcapi_status, status);
  if (status != MCAPI_SUCCESS) return;
  mc_endpoint *e = record(self->domain, endpoint);
  if (attribute_num == MCAPI_ENDP_ATTR_GET_SOURCE) {
    mcapi_endp_attr_get_source_t source = {lvd_load_relaxed_u32(&e->get_domain),
                                           lvd_load_relaxed_u32(&e->get_node)};
    memcpy(attribute, &source, sizeof source);
    return;
  }
  mcapi_uint_t value = lvd_load_relaxed_u32(&e->attribute[attribute_num]);
  if (attribute_num == MCAPI_ENDP_ATTR_TYPE) {
    uint32_t role = lvd_load_relaxed_u32(&e->role);
    if (role)
      value = role & MC_ROLE_PACKETS ? MCAPI_ENDP_ATTR_TYPE_PKTCHAN : MCAPI_ENDP_ATTR_TYPE_SCLCHAN;
  }
  if (attribute_num == MCAPI_ENDP_ATTR_GET_COUNT) value = lvd_load_relaxed_u32(&e->get_count);
  if (attribute_num == MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS)
    value = self->domain->transport->free_buffers(self->domain, mc_index(endpoint));
  if (attribute_num == MCAPI_ENDP_ATTR_ENDP_STATUS)
    value = mc_channel_status(self->domain, endpoint);
  memcpy(attribute, &value, sizeof value);
}

static mcapi_status_t check_value(mcapi_uint_t number, mcapi_uint_t value) {
  bool good = true;
  switch (number) {
  case MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE:
    good = value >= 1 && value <= MCAPI_MAX_MESSAGE_SIZE;
    break;
  case MCAPI_ENDP_ATTR_MEMORY_TYPE:
    good = (value & 0xffff) <= MCAPI_ENDP_ATTR_REMOTE_MEMORY &&
           (value >> 16 << 16 == MCAPI_ENDP_ATTR_BLOCK_ON_MEM_LIMIT ||
            value >> 16 << 16 == MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT);
    break;
  case MCAPI_ENDP_ATTR_NUM_PRIORITIES:
    good = value >= 1 && value <= LVD_INBOX_LEVELS;
    break;
  case MCAPI_ENDP_ATTR_PRIORITY:
    good = value <= MCAPI_MIN_PRORITY;
    break;
  case MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS:
  case MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS:
    good = value >= 1 && value <= MC_SLOTS;
    break;
  case MCAPI_ENDP_ATTR_TIMEOUT:
    break;
  default:
    return MCAPI_ERR_ATTR_READONLY;
  }
  return good ? MCAPI_SUCCESS : MCAPI_ERR_ATTR_VALUE;
}

void mcapi_endpoint_set_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t attribute_num,
                                  const void *attribute, size_t attribute_size,
                                  mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status = check_attribute(self, endpoint, attribute_num, attribute, attribute_size);
  mcapi_uint_t value = 0;
  mc_local_endpoint *local =
      status == MCAPI_SUCCESS ? mc_local_endpoint_lock(self, endpoint) : NULL;
  if (status == MCAPI_SUCCESS && !local) status = MCAPI_ERR_ENDP_REMOTE;
  if (status == MCAPI_SUCCESS && mc_is_connected(self->domain, endpoint))
    status = MCAPI_ERR_CHAN_CONNECTED;
  if (status == MCAPI_SUCCESS) {
    memcpy(&value, attribute, sizeof value);
    status = check_value(attribute_num, value);
  }
  if (status == MCAPI_SUCCESS) {
    lvd_store_relaxed_u32(&record(self->domain, endpoint)->attribute[attribute_num], value);
    if (attribute_num == MCAPI_ENDP_ATTR_TIMEOUT) lvd_store_relaxed_u32(&local->timeout, value);
    if (attribute_num == MCAPI_ENDP_ATTR_MEMORY_TYPE) lvd_store_relaxed_u32(&local->memory, value);
  }
  if (local) mc_lock_release(&local->lock);
  mc_set_status(mcapi_status, status);
}
