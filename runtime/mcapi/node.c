/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Nodes: a process, a thread or a fiber, whoever calls mcapi_initialize. A thread or a fiber that has
 * not called it belongs to the first node that its process has. */
#include "face.h"

#include <levada/fiber.h>
#include <levada/mcapi_ext.h>

#include <stdlib.h>
#include <string.h>

enum { NAP_NS = 200000, OURS = 0x10000 };
enum { VERSION = LVD_VERSION_MAJOR << 12 | LVD_VERSION_MINOR };

static lvd_port_mutex nodes_lock;
static lvd_aptr nodes; /* mc_mine; never freed */

_Thread_local mc_owner mc_own;

static bool is_active(const mc_mine *n) { return lvd_load_acquire_u32(&n->active) % 2; }

mc_mine *mc_self(void) {
  lvd_fiber *fiber = lvd_fiber_self();
  if (!fiber && mc_own.node && lvd_load_acquire_u32(&mc_own.node->active) == mc_own.active)
    return mc_own.node;
  mc_mine *first = NULL;
  for (mc_mine *n = lvd_load_acquire_ptr(&nodes); n; n = lvd_load_acquire_ptr(&n->next)) {
    if (!is_active(n)) continue;
    if (fiber && n->fiber == fiber) return n;
    if (!first) first = n;
  }
  return first;
}

/* Has the caller itself initialized a node? */
static bool has_own(void) {
  mc_mine *n = mc_self();
  lvd_fiber *fiber = lvd_fiber_self();
  return n && (fiber ? n->fiber == fiber : n == mc_own.node);
}

/* Nothing of it is the child's. */
static void forget_all(void) {
  nodes_lock = (lvd_port_mutex){{0}};
  mc_requests_reset();
  for (mc_mine *n = lvd_load_acquire_ptr(&nodes); n; n = lvd_load_acquire_ptr(&n->next)) {
    if (is_active(n)) lvd_add_release_u32(&n->active, 1);
    lvd_store_relaxed_u32(&n->inside, 0); /* who waited there is not here */
    lvd_store_relaxed_u32(&n->ending, 0);
  }
}

/* One that is not in use; with the lock. */
static mc_mine *unused(void) {
  static bool at_fork;
  if (!at_fork) lvd_port_at_fork(NULL, NULL, forget_all);
  at_fork = true;
  lvd_aptr *at = &nodes;
  for (mc_mine *n; (n = lvd_load_relaxed_ptr(at)); at = &n->next)
    if (!is_active(n) && !lvd_load_acquire_u32(&n->ending)) return n;
  mc_mine *n = calloc(1, sizeof *n);
  if (n) lvd_store_release_ptr(at, n);
  return n;
}

/* ---- calls that wait, and the end ----------------------------------------------------------- */

/* enter: inside + 1, fence, load active <> finalize: active + 1, fence, load inside. */
bool mc_node_enter(mc_mine *n, uint32_t *active) {
  lvd_add_relaxed_u32(&n->inside, 1);
  lvd_fence_seq_cst();
  *active = lvd_load_acquire_u32(&n->active);
  if (*active % 2) return true;
  mc_node_leave(n);
  return false;
}

void mc_node_leave(mc_mine *n) { lvd_add_release_u32(&n->inside, -1u); }

/* Those who wait look again, find that the node is none any more, and go. */
static void send_away(mc_mine *n) {
  lvd_fence_seq_cst();
  while (lvd_load_acquire_u32(&n->inside)) {
    mc_ring(n->domain, n->index);
    if (lvd_fiber_self())
      lvd_fiber_sleep(NAP_NS); /* they may be fibers of this worker */
    else
      lvd_port_wait(&n->inside, lvd_load_relaxed_u32(&n->inside), NAP_NS);
  }
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Behind the gate: is there such a node, of a process that is alive? */
static bool is_taken(mc_domain *d, mcapi_node_t id) {
  for (uint32_t i = 0; i < MC_NODES; i++) {
    mc_node *n = &d->tables->node[i];
    uint32_t owner = lvd_load_acquire_u32(&n->owner);
    if (!owner || lvd_load_relaxed_u32(&n->id) != id) continue;
    if (owner > MC_PROCESSES || !mc_bury(d, owner - 1)) return true;
  }
  return false;
}

static mcapi_status_t take(mc_domain *d, mcapi_node_t id, uint32_t *index) {
  if (is_taken(d, id)) return MCAPI_ERR_NODE_INITIALIZED;
  for (uint32_t i = 0; i < MC_NODES; i++) {
    mc_node *n = &d->tables->node[i];
    if (lvd_load_acquire_u32(&n->owner)) continue;
    lvd_store_release_u32(&n->id, id); /* of endpoints found, too: the former node's are gone */
    lvd_store_release_u32(&n->owner, 1 + d->process);
    *index = i;
    return MCAPI_SUCCESS;
  }
  return MCAPI_ERR_NODE_INITFAILED;
}

static mcapi_uint_t count_nodes(const mc_domain *d) {
  mcapi_uint_t count = 0;
  for (uint32_t i = 0; i < MC_NODES; i++)
    count += lvd_load_relaxed_u32(&d->tables->node[i].owner) != 0;
  return count;
}

/* ---- the calls ------------------------------------------------------------------------------ */

static mcapi_status_t initialize(mcapi_domain_t domain, mcapi_node_t id, uint32_t transport,
                                 int64_t group, mcapi_info_t *info) {
  if (domain > MCAPI_MAX_DOMAIN) return MCAPI_ERR_DOMAIN_INVALID;
  if (id > MCAPI_MAX_NODE) return MCAPI_ERR_NODE_INVALID;
  if (!info) return MCAPI_ERR_PARAMETER;
  if (has_own()) return MCAPI_ERR_NODE_INITIALIZED;
  mc_domain *d;
  uint32_t index = 0;
  lvd_status joined = mc_domain_join(domain, transport, group, &d);
  if (joined == LVD_E_STATE) return MCAPI_ERR_ATTR_INCOMPATIBLE;
  if (joined != LVD_OK) return MCAPI_ERR_NODE_INITFAILED;
  mc_gate_enter(d);
  mcapi_status_t status = take(d, id, &index);
  mc_gate_leave(d);
  lvd_port_lock(&nodes_lock);
  mc_mine *n = status == MCAPI_SUCCESS ? unused() : NULL;
  if (n) {
    n->domain = d;
    n->index = index;
    n->id = id;
    n->fiber = lvd_fiber_self();
    n->next_port = 0;
    uint32_t active = lvd_add_release_u32(&n->active, 1) + 1;
    if (!n->fiber) {
      mc_own.node = n;
      mc_own.active = active;
      mc_own.plain = !lvd_port_self(); /* no worker, and a worker is one from its beginning */
    }
    *info = (mcapi_info_t){.mcapi_version = MCAPI_VERSION,
                           .organization_id = MCA_ORG_ID_TBA,
                           .implementation_version = VERSION,
                           .number_of_domains = 1,
                           .number_of_nodes = count_nodes(d),
                           .number_of_ports = MC_ENDPOINTS};
  } else if (status == MCAPI_SUCCESS) {
    lvd_store_release_u32(&d->tables->node[index].owner, 0);
    status = MCAPI_ERR_NODE_INITFAILED;
  }
  lvd_port_unlock(&nodes_lock);
  if (!n) mc_domain_leave(d);
  return status;
}

void mcapi_initialize(mcapi_domain_t domain_id, mcapi_node_t node_id,
                      const mcapi_node_attributes_t *mcapi_node_attributes,
                      const mcapi_param_t *init_parameters, mcapi_info_t *mcapi_info,
                      mcapi_status_t *mcapi_status) {
  /* There is one kind of node. Programs that have not filled the attributes in pass anything. */
  const mcapi_node_attributes_t *a = mcapi_node_attributes;
  bool filled = a && a->transport / OURS == LVD_MCAPI_NODE_ATTR_TRANSPORT / OURS;
  uint32_t transport = filled ? a->transport % OURS : 0;
  int64_t group = filled && a->group != LVD_MCAPI_NO_GROUP ? (int64_t)a->group : MC_GROUP_AS_SAID;
  (void)init_parameters;
  mc_say(mcapi_status, initialize(domain_id, node_id, transport, group, mcapi_info));
}

void mcapi_finalize(mcapi_status_t *mcapi_status) {
  mc_mine *self = mc_self();
  if (!self) {
    mc_say(mcapi_status, MCAPI_ERR_NODE_NOTINIT);
    return;
  }
  lvd_port_lock(&nodes_lock);
  bool mine = is_active(self); /* and not another thread's, which is just doing the same */
  if (mine) {
    lvd_store_relaxed_u32(&self->ending, 1);
    lvd_add_release_u32(&self->active, 1);
  }
  lvd_port_unlock(&nodes_lock);
  if (!mine) {
    mc_say(mcapi_status, MCAPI_ERR_NODE_NOTINIT);
    return;
  }
  mc_domain *d = self->domain;
  mc_endpoints_delete(self);
  send_away(self);
  mc_requests_forget(self);
  mc_gate_enter(d);
  lvd_store_release_u32(&d->tables->node[self->index].owner, 0);
  mc_gate_leave(d);
  lvd_store_release_u32(&self->ending, 0);
  mc_domain_leave(d);
  mc_say(mcapi_status, MCAPI_SUCCESS);
}

mcapi_domain_t mcapi_domain_id_get(mcapi_status_t *mcapi_status) {
  const mc_mine *self = mc_self();
  mc_say(mcapi_status, self ? MCAPI_SUCCESS : MCAPI_ERR_NODE_NOTINIT);
  return self ? self->domain->number : MCAPI_DOMAIN_INVALID;
}

mcapi_node_t mcapi_node_id_get(mcapi_status_t *mcapi_status) {
  const mc_mine *self = mc_self();
  mc_say(mcapi_status, self ? MCAPI_SUCCESS : MCAPI_ERR_NODE_NOTINIT);
  return self ? self->id : MCAPI_NODE_INVALID;
}

/* ---- attributes ----------------------------------------------------------------------------- */

void mcapi_node_init_attributes(mcapi_node_attributes_t *mcapi_node_attributes,
                                mcapi_status_t *mcapi_status) {
  if (mcapi_node_attributes)
    *mcapi_node_attributes = (mcapi_node_attributes_t){.type = MCAPI_NODE_ATTR_TYPE_REGULAR,
                                                       .transport = LVD_MCAPI_NODE_ATTR_TRANSPORT,
                                                       .group = LVD_MCAPI_NO_GROUP};
  mc_say(mcapi_status, mcapi_node_attributes ? MCAPI_SUCCESS : MCAPI_ERR_PARAMETER);
}

static mcapi_status_t check_attribute(mcapi_uint_t number, const void *attribute, size_t size) {
  if (!attribute) return MCAPI_ERR_PARAMETER;
  if (number >= MCAPI_NODE_ATTR_END && number != LVD_MCAPI_NODE_ATTR_TRANSPORT &&
      number != LVD_MCAPI_NODE_ATTR_GROUP)
    return MCAPI_ERR_ATTR_NUM;
  return size == sizeof(mcapi_node_attr_type_t) ? MCAPI_SUCCESS : MCAPI_ERR_ATTR_SIZE;
}

void mcapi_node_get_attribute(mcapi_domain_t domain_id, mcapi_node_t node_id,
                              mcapi_uint_t attribute_num, void *attribute, size_t attribute_size,
                              mcapi_status_t *mcapi_status) {
  mc_mine *self = mc_self();
  mcapi_status_t status = check_attribute(attribute_num, attribute, attribute_size);
  if (!self) status = MCAPI_ERR_NODE_NOTINIT;
  if (status == MCAPI_SUCCESS && domain_id != self->domain->number)
    status = MCAPI_ERR_DOMAIN_INVALID;
  if (status == MCAPI_SUCCESS) {
    mc_gate_enter(self->domain);
    if (!is_taken(self->domain, node_id)) status = MCAPI_ERR_NODE_INVALID;
    mc_gate_leave(self->domain);
  }
  if (status == MCAPI_SUCCESS) {
    const mc_domain *d = self->domain;
    mcapi_uint_t value = MCAPI_NODE_ATTR_TYPE_REGULAR;
    if (attribute_num == LVD_MCAPI_NODE_ATTR_TRANSPORT) value = 1 + mc_transport_number(d);
    if (attribute_num == LVD_MCAPI_NODE_ATTR_GROUP)
      value = d->group < 0 ? LVD_MCAPI_NO_GROUP : (mcapi_uint_t)d->group;
    memcpy(attribute, &value, sizeof value);
  }
  mc_say(mcapi_status, status);
}

void mcapi_node_set_attribute(mcapi_node_attributes_t *mcapi_node_attributes,
                              mcapi_uint_t attribute_num, const void *attribute,
                              size_t attribute_size, mcapi_status_t *mcapi_status) {
  mcapi_status_t status = check_attribute(attribute_num, attribute, attribute_size);
  if (!mcapi_node_attributes) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) {
    mcapi_uint_t value;
    memcpy(&value, attribute, sizeof value);
    bool transport = attribute_num == LVD_MCAPI_NODE_ATTR_TRANSPORT;
    bool group = attribute_num == LVD_MCAPI_NODE_ATTR_GROUP;
    bool good = transport ? value == LVD_MCAPI_TRANSPORT_SHM || value == LVD_MCAPI_TRANSPORT_PMQ
                          : group || value < MCAPI_NODE_ATTR_TYPE_END;
    if (!good)
      status = MCAPI_ERR_ATTR_VALUE;
    else if (transport)
      mcapi_node_attributes->transport = LVD_MCAPI_NODE_ATTR_TRANSPORT + value;
    else if (group)
      mcapi_node_attributes->group = value;
    else
      mcapi_node_attributes->type = value;
  }
  mc_say(mcapi_status, status);
}
