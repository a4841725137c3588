/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Nodes: a process, a thread or a fiber, whoever calls mcapi_initialize. A thread or a fiber that has
 * not called it belongs to the first node that its process has. */
#include "api_internal.h"
#include "attributes.h"

#include <levada/fiber.h>
#include <levada/mcapi_ext.h>

#include <stdlib.h>
#include <string.h>

enum { NAP_NS = 200000, OURS = 0x10000 };
enum { VERSION = LVD_VERSION_MAJOR << 12 | LVD_VERSION_MINOR };

static lvd_os_mutex nodes_lock;
static lvd_aptr nodes; /* mc_mine; never freed */
static lvd_aptr heres; /* mc_here */
static bool fenced;    /* [light] must be a real fence; asked when there is a node */

_Thread_local mc_owner mc_own;

static bool is_active(const mc_mine *n) { return lvd_load_acquire_u32(&n->active) % 2; }

bool mc_any_node(void) {
  const mc_mine *n = lvd_load_acquire_ptr(&nodes);
  while (n && !is_active(n)) n = lvd_load_acquire_ptr(&n->next);
  return n != NULL;
}

/* What the caller itself has initialized, and how far that counted then; null: it never has. An even
 * count, or one that is not the node's any more: that has ended. */
static mc_mine *own(uint32_t *active) {
  lvd_fiber *fiber = lvd_fiber_self();
  *active = mc_own.active;
  if (!fiber) return mc_own.node;
  mc_mine *n = *lvd_fiber_word();
  if (!n) return NULL;
  uint32_t now = lvd_load_acquire_u32(&n->active);
  *active = lvd_load_relaxed_ptr(&n->fiber) == fiber ? now : 0; /* else another's by now */
  return n;
}

/* The caller's node, active so. Who has had one has no other's. */
static mc_mine *self(uint32_t *active) {
  mc_mine *n = own(active);
  if (n) return *active % 2 && lvd_load_acquire_u32(&n->active) == *active ? n : NULL;
  for (n = lvd_load_acquire_ptr(&nodes); n; n = lvd_load_acquire_ptr(&n->next))
    if ((*active = lvd_load_acquire_u32(&n->active)) % 2) return n;
  return NULL;
}

/* The caller has, or has had, this one. */
static void owns(mc_mine *n, uint32_t active) {
  if (lvd_fiber_self()) {
    *lvd_fiber_word() = n;
    return;
  }
  mc_own.node = n;
  mc_own.active = active;
}

/* ---- calls ---------------------------------------------------------------------------------- */

mc_mine *mc_call_begin(void) {
  uint32_t active;
  for (mc_mine *n; (n = self(&active));) {
    if (mc_inside_enter(&n->inside, &n->active, active, fenced)) return n;
    mc_call_end(&n); /* it is ending: perhaps there is another */
  }
  return NULL;
}

void mc_call_end(mc_mine *const *n) {
  if (*n) mc_inside_leave(&(*n)->inside);
}

static void leave_here(void *here) { lvd_store_release_u32(&((mc_here *)here)->taken, 0); }

static mc_here *new_here(void) {
  mc_here *h = aligned_alloc(LVD_LINE, sizeof *h);
  if (h) memset(h, 0, sizeof *h);
  return h;
}

/* Where this thread says in which node's short calls it is; null: there is no memory. */
static mc_here *find_here(void) {
  if (mc_own.here) return mc_own.here;
  lvd_os_lock(&nodes_lock);
  lvd_aptr *at = &heres;
  mc_here *h;
  while ((h = lvd_load_relaxed_ptr(at)) && lvd_load_acquire_u32(&h->taken)) at = &h->next;
  if (!h && (h = new_here())) lvd_store_release_ptr(at, h);
  if (h) lvd_store_relaxed_u32(&h->taken, 1);
  lvd_os_unlock(&nodes_lock);
  if (h) lvd_os_at_thread_exit(LVD_EXIT_HOOK_CALLS, leave_here, h);
  mc_own.fenced = fenced;
  return mc_own.here = h;
}

mc_visit mc_visit_as_guest(void) {
  uint32_t active;
  mc_mine *n = self(&active);
  mc_visit v = {.node = n, .here = n ? find_here() : NULL};
  if (!v.here) return (mc_visit){0};
  if (!mc_here_enter(v.here, n, &n->active, active, mc_own.fenced)) v.node = NULL;
  return v;
}

/* Those who wait look again, find that the node is none any more, and go. */
static void send_away(mc_mine *n) {
  lvd_os_barrier();
  while (!mc_nobody_in(n, &n->inside, &heres)) {
    mc_ring(n->domain, n->index);
    if (lvd_fiber_self())
      lvd_fiber_sleep(NAP_NS); /* they may be fibers of this worker */
    else
      lvd_os_wait(&n->inside, lvd_load_relaxed_u32(&n->inside), NAP_NS);
  }
}

/* ---- nodes of this process -------------------------------------------------------------------- */

/* Nothing of it is the child's. */
static void forget_all(void) {
  nodes_lock = (lvd_os_mutex){{0}};
  mc_requests_reset();
  mc_lents_reset();
  for (mc_mine *n = lvd_load_acquire_ptr(&nodes); n; n = lvd_load_acquire_ptr(&n->next)) {
    if (is_active(n)) lvd_add_release_u32(&n->active, 1);
    lvd_store_relaxed_u32(&n->inside, 0); /* who waited there is not here */
    lvd_store_relaxed_u32(&n->ending, 0);
  }
  for (mc_here *h = lvd_load_acquire_ptr(&heres); h; h = lvd_load_acquire_ptr(&h->next)) {
    lvd_store_relaxed_ptr(&h->in, NULL);
    lvd_store_relaxed_u32(&h->taken, h == mc_own.here);
  }
}

/* One that is not in use; with the lock. */
static mc_mine *unused(void) {
  static bool at_fork;
  if (!at_fork) {
    lvd_os_at_fork(NULL, NULL, forget_all);
    fenced = lvd_channel_fenced();
  }
  at_fork = true;
  lvd_aptr *at = &nodes;
  for (mc_mine *n; (n = lvd_load_relaxed_ptr(at)); at = &n->next)
    if (!is_active(n) && !lvd_load_acquire_u32(&n->ending)) return n;
  mc_mine *n = calloc(1, sizeof *n);
  if (n) lvd_store_release_ptr(at, n);
  return n;
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
  uint32_t active;
  mc_mine *had = own(&active);
  if (had && active % 2 && lvd_load_acquire_u32(&had->active) == active)
    return MCAPI_ERR_NODE_INITIALIZED;
  mc_domain *d;
  uint32_t index = 0;
  lvd_status joined = mc_domain_join(domain, transport, group, &d);
  if (joined == LVD_E_STATE) return MCAPI_ERR_ATTR_INCOMPATIBLE;
  if (joined != LVD_OK) return MCAPI_ERR_NODE_INITFAILED;
  mc_gate_enter(d);
  mcapi_status_t status = take(d, id, &index);
  mc_gate_leave(d);
  lvd_os_lock(&nodes_lock);
  mc_mine *n = status == MCAPI_SUCCESS ? unused() : NULL;
  if (n) {
    n->domain = d;
    n->index = index;
    n->id = id;
    n->next_port = 0;
    lvd_store_relaxed_ptr(&n->fiber, lvd_fiber_self());
    owns(n, lvd_add_release_u32(&n->active, 1) + 1);
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
  lvd_os_unlock(&nodes_lock);
  if (!n) mc_domain_leave(d);
  /* No worker; and a worker is one from its beginning. */
  if (n && !lvd_fiber_self()) mc_own.plain = find_here() && !lvd_os_self();
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

/* Whoever ends a node has had one; so a second end does not meet another's. */
void mcapi_finalize(mcapi_status_t *mcapi_status) {
  uint32_t active;
  mc_mine *n = self(&active);
  lvd_os_lock(&nodes_lock);
  bool mine =
      n && lvd_load_acquire_u32(&n->active) == active; /* and nobody else is just doing the same */
  if (mine) {
    lvd_store_relaxed_u32(&n->ending, 1);
    lvd_add_release_u32(&n->active, 1);
  }
  lvd_os_unlock(&nodes_lock);
  if (!mine) {
    mc_say(mcapi_status, MCAPI_ERR_NODE_NOTINIT);
    return;
  }
  owns(n, active);
  mc_domain *d = n->domain;
  mc_endpoints_delete(n);
  send_away(n);
  mc_requests_forget(n);
  mc_gate_enter(d);
  lvd_store_release_u32(&d->tables->node[n->index].owner, 0);
  mc_gate_leave(d);
  lvd_store_release_u32(&n->ending, 0);
  mc_domain_leave(d);
  mc_say(mcapi_status, MCAPI_SUCCESS);
}

mcapi_domain_t mcapi_domain_id_get(mcapi_status_t *mcapi_status) {
  MC_CALL(n);
  mc_say(mcapi_status, n ? MCAPI_SUCCESS : MCAPI_ERR_NODE_NOTINIT);
  return n ? n->domain->number : MCAPI_DOMAIN_INVALID;
}

mcapi_node_t mcapi_node_id_get(mcapi_status_t *mcapi_status) {
  MC_CALL(n);
  mc_say(mcapi_status, n ? MCAPI_SUCCESS : MCAPI_ERR_NODE_NOTINIT);
  return n ? n->id : MCAPI_NODE_INVALID;
}

/* ---- attributes ----------------------------------------------------------------------------- */

void mcapi_node_get_attribute(mcapi_domain_t domain_id, mcapi_node_t node_id,
                              mcapi_uint_t attribute_num, void *attribute, size_t attribute_size,
                              mcapi_status_t *mcapi_status) {
  MC_CALL(n);
  mcapi_status_t status = mc_node_attribute_misfit(attribute_num, attribute, attribute_size);
  if (!n) status = MCAPI_ERR_NODE_NOTINIT;
  if (status == MCAPI_SUCCESS && domain_id != n->domain->number) status = MCAPI_ERR_DOMAIN_INVALID;
  if (status == MCAPI_SUCCESS) {
    mc_gate_enter(n->domain);
    if (!is_taken(n->domain, node_id)) status = MCAPI_ERR_NODE_INVALID;
    mc_gate_leave(n->domain);
  }
  if (status == MCAPI_SUCCESS) {
    const mc_domain *d = n->domain;
    mcapi_uint_t value = MCAPI_NODE_ATTR_TYPE_REGULAR;
    if (attribute_num == LVD_MCAPI_NODE_ATTR_TRANSPORT) value = 1 + mc_transport_number(d);
    if (attribute_num == LVD_MCAPI_NODE_ATTR_GROUP)
      value = d->group < 0 ? LVD_MCAPI_NO_GROUP : (mcapi_uint_t)d->group;
    memcpy(attribute, &value, sizeof value);
  }
  mc_say(mcapi_status, status);
}
