/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Nodes. A node is initialized by a thread or a fiber that calls mcapi_initialize. A thread or
 * fiber that has not called it uses the first node of its process. */
#include "api_internal.h"
#include "attributes.h"

#include <levada/fiber.h>
#include <levada/mcapi_ext.h>

#include <stdlib.h>
#include <string.h>

enum { RETRY_NS = 200000, ATTRIBUTES_MARK = 0x10000 };
enum { VERSION = LVD_VERSION_MAJOR << 12 | LVD_VERSION_MINOR };

static lvd_os_mutex nodes_lock;
static lvd_aptr nodes;      /* mc_local_node; never freed */
static lvd_aptr call_slots; /* mc_call_slot; never freed */
static bool fenced;         /* [light] must be a real fence; set with the first node */

_Thread_local mc_thread_state mc_thread;

static bool is_active(const mc_local_node *n) { return lvd_load_acquire_u32(&n->active) % 2; }

bool mc_any_node(void) {
  const mc_local_node *n = lvd_load_acquire_ptr(&nodes);
  while (n && !is_active(n)) n = lvd_load_acquire_ptr(&n->next);
  return n != NULL;
}

/* The node that the caller itself has initialized, and its `active` then; null: it has initialized
 * none. If *active is even, or differs from the node's, that node has ended. */
static mc_local_node *own_node(uint32_t *active) {
  lvd_fiber *fiber = lvd_fiber_self();
  *active = mc_thread.active;
  if (!fiber) return mc_thread.node;
  mc_local_node *n = *lvd_fiber_local();
  if (!n) return NULL;
  uint32_t now = lvd_load_acquire_u32(&n->active);
  /* else the node has been reused by another caller */
  *active = lvd_load_relaxed_ptr(&n->fiber) == fiber ? now : 0;
  return n;
}

/* The caller's active node. A caller has none after its own node has ended. */
static mc_local_node *current_node(uint32_t *active) {
  mc_local_node *n = own_node(active);
  if (n) return *active % 2 && lvd_load_acquire_u32(&n->active) == *active ? n : NULL;
  for (n = lvd_load_acquire_ptr(&nodes); n; n = lvd_load_acquire_ptr(&n->next))
    if ((*active = lvd_load_acquire_u32(&n->active)) % 2) return n;
  return NULL;
}

/* Makes `n` the node that the caller has initialized. */
static void set_own_node(mc_local_node *n, uint32_t active) {
  if (lvd_fiber_self()) {
    *lvd_fiber_local() = n;
    return;
  }
  mc_thread.node = n;
  mc_thread.active = active;
}

/* ---- calls ----------------------------------------------------------------------------------- */

mc_local_node *mc_long_call_begin(void) {
  uint32_t active;
  for (mc_local_node *n; (n = current_node(&active));) {
    if (mc_long_call_enter(&n->long_calls, &n->active, active, fenced)) return n;
    mc_long_call_end(&n); /* this one is ending; there may be another */
  }
  return NULL;
}

void mc_long_call_end(mc_local_node *const *n) {
  if (*n) mc_long_call_leave(&(*n)->long_calls);
}

static void free_call_slot(void *slot) {
  lvd_store_release_u32(&((mc_call_slot *)slot)->in_use, 0);
}

static mc_call_slot *new_call_slot(void) {
  mc_call_slot *h = aligned_alloc(LVD_CACHE_LINE, sizeof *h);
  if (h) memset(h, 0, sizeof *h);
  return h;
}

/* The slot in which this thread announces its short calls; null: no memory. */
static mc_call_slot *thread_call_slot(void) {
  if (mc_thread.call_slot) return mc_thread.call_slot;
  lvd_os_lock(&nodes_lock);
  lvd_aptr *at = &call_slots;
  mc_call_slot *h;
  while ((h = lvd_load_relaxed_ptr(at)) && lvd_load_acquire_u32(&h->in_use)) at = &h->next;
  if (!h && (h = new_call_slot())) lvd_store_release_ptr(at, h);
  if (h) lvd_store_relaxed_u32(&h->in_use, 1);
  lvd_os_unlock(&nodes_lock);
  if (h) lvd_os_at_thread_exit(LVD_EXIT_HOOK_CALLS, free_call_slot, h);
  mc_thread.fenced = fenced;
  return mc_thread.call_slot = h;
}

mc_short_call mc_short_call_begin_slow(void) {
  uint32_t active;
  mc_local_node *n = current_node(&active);
  mc_short_call v = {.node = n, .call_slot = n ? thread_call_slot() : NULL};
  if (!v.call_slot) return (mc_short_call){0};
  if (!mc_short_call_enter(v.call_slot, n, &n->active, active, mc_thread.fenced)) v.node = NULL;
  return v;
}

/* Wakes calls that wait until all have seen that the node has ended, and have returned. */
static void drain_calls(mc_local_node *n) {
  lvd_os_barrier();
  while (!mc_no_call_in(n, &n->long_calls, &call_slots)) {
    mc_notify(n->domain, n->index);
    /* they may be made by fibers of this worker */
    if (lvd_fiber_self())
      lvd_fiber_sleep(RETRY_NS);
    else
      lvd_os_wait(&n->long_calls, lvd_load_relaxed_u32(&n->long_calls), RETRY_NS);
  }
}

/* ---- nodes of this process ------------------------------------------------------------------- */

/* A forked child has no node. */
static void reset_after_fork(void) {
  nodes_lock = (lvd_os_mutex){{0}};
  mc_requests_reset();
  mc_detached_reset();
  for (mc_local_node *n = lvd_load_acquire_ptr(&nodes); n; n = lvd_load_acquire_ptr(&n->next)) {
    if (is_active(n)) lvd_add_release_u32(&n->active, 1);
    /* the threads that were in these calls do not exist in the child */
    lvd_store_relaxed_u32(&n->long_calls, 0);
    lvd_store_relaxed_u32(&n->ending, 0);
  }
  for (mc_call_slot *h = lvd_load_acquire_ptr(&call_slots); h; h = lvd_load_acquire_ptr(&h->next)) {
    lvd_store_relaxed_ptr(&h->node, NULL);
    lvd_store_relaxed_u32(&h->in_use, h == mc_thread.call_slot);
  }
}

/* A node that is not in use. With the lock. */
static mc_local_node *unused_node(void) {
  static bool at_fork;
  if (!at_fork) {
    lvd_os_at_fork(NULL, NULL, reset_after_fork);
    fenced = lvd_channel_fenced();
  }
  at_fork = true;
  lvd_aptr *at = &nodes;
  for (mc_local_node *n; (n = lvd_load_relaxed_ptr(at)); at = &n->next)
    if (!is_active(n) && !lvd_load_acquire_u32(&n->ending)) return n;
  mc_local_node *n = calloc(1, sizeof *n);
  if (n) lvd_store_release_ptr(at, n);
  return n;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* True: there is such a node, of a living process. With the tables lock. */
static bool node_exists(mc_domain *d, mcapi_node_t id) {
  for (uint32_t i = 0; i < MC_NODES; i++) {
    mc_node *n = &d->tables->node[i];
    uint32_t owner = lvd_load_acquire_u32(&n->owner);
    if (!owner || lvd_load_relaxed_u32(&n->id) != id) continue;
    if (owner > MC_PROCESSES || !mc_reap_process(d, owner - 1)) return true;
  }
  return false;
}

static mcapi_status_t claim_record(mc_domain *d, mcapi_node_t id, uint32_t *index) {
  if (node_exists(d, id)) return MCAPI_ERR_NODE_INITIALIZED;
  for (uint32_t i = 0; i < MC_NODES; i++) {
    mc_node *n = &d->tables->node[i];
    if (lvd_load_acquire_u32(&n->owner)) continue;
    /* found endpoints read it, too; those of the former node have ended */
    lvd_store_release_u32(&n->id, id);
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

/* ---- the calls ------------------------------------------------------------------------------- */

static mcapi_status_t initialize(mcapi_domain_t domain, mcapi_node_t id, uint32_t transport,
                                 int64_t group, mcapi_info_t *info) {
  if (domain > MCAPI_MAX_DOMAIN) return MCAPI_ERR_DOMAIN_INVALID;
  if (id > MCAPI_MAX_NODE) return MCAPI_ERR_NODE_INVALID;
  if (!info) return MCAPI_ERR_PARAMETER;
  uint32_t active;
  mc_local_node *had = own_node(&active);
  if (had && active % 2 && lvd_load_acquire_u32(&had->active) == active)
    return MCAPI_ERR_NODE_INITIALIZED;
  mc_domain *d;
  uint32_t index = 0;
  lvd_status joined = mc_domain_join(domain, transport, group, &d);
  if (joined == LVD_E_STATE) return MCAPI_ERR_ATTR_INCOMPATIBLE;
  if (joined != LVD_OK) return MCAPI_ERR_NODE_INITFAILED;
  mc_tables_lock(d);
  mcapi_status_t status = claim_record(d, id, &index);
  mc_tables_unlock(d);
  lvd_os_lock(&nodes_lock);
  mc_local_node *n = status == MCAPI_SUCCESS ? unused_node() : NULL;
  if (n) {
    n->domain = d;
    n->index = index;
    n->id = id;
    n->next_port = 0;
    lvd_store_relaxed_ptr(&n->fiber, lvd_fiber_self());
    set_own_node(n, lvd_add_release_u32(&n->active, 1) + 1);
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
  /* The thread is not a worker. (A worker is one from its start.) */
  if (n && !lvd_fiber_self()) mc_thread.never_runs_fibers = thread_call_slot() && !lvd_os_self();
  return status;
}

void mcapi_initialize(mcapi_domain_t domain_id, mcapi_node_t node_id,
                      const mcapi_node_attributes_t *mcapi_node_attributes,
                      const mcapi_param_t *init_parameters, mcapi_info_t *mcapi_info,
                      mcapi_status_t *mcapi_status) {
  /* There is one kind of node. Programs that have not initialized the attributes pass arbitrary
   * bytes. */
  const mcapi_node_attributes_t *a = mcapi_node_attributes;
  bool filled =
      a && a->transport / ATTRIBUTES_MARK == LVD_MCAPI_NODE_ATTR_TRANSPORT / ATTRIBUTES_MARK;
  uint32_t transport = filled ? a->transport % ATTRIBUTES_MARK : 0;
  int64_t group =
      filled && a->group != LVD_MCAPI_NO_GROUP ? (int64_t)a->group : MC_GROUP_FROM_ENVIRONMENT;
  (void)init_parameters;
  mc_set_status(mcapi_status, initialize(domain_id, node_id, transport, group, mcapi_info));
}

/* A caller that has ended a node keeps it as its own. So a second call does not end another
 * caller's node. */
void mcapi_finalize(mcapi_status_t *mcapi_status) {
  uint32_t active;
  mc_local_node *n = current_node(&active);
  lvd_os_lock(&nodes_lock);
  bool mine = n && lvd_load_acquire_u32(&n->active) == active; /* and no other call is ending it */
  if (mine) {
    lvd_store_relaxed_u32(&n->ending, 1);
    lvd_add_release_u32(&n->active, 1);
  }
  lvd_os_unlock(&nodes_lock);
  if (!mine) {
    mc_set_status(mcapi_status, MCAPI_ERR_NODE_NOTINIT);
    return;
  }
  set_own_node(n, active);
  mc_domain *d = n->domain;
  mc_endpoints_delete(n);
  drain_calls(n);
  mc_requests_forget_node(n);
  mc_tables_lock(d);
  lvd_store_release_u32(&d->tables->node[n->index].owner, 0);
  mc_tables_unlock(d);
  lvd_store_release_u32(&n->ending, 0);
  mc_domain_leave(d);
  mc_set_status(mcapi_status, MCAPI_SUCCESS);
}

mcapi_domain_t mcapi_domain_id_get(mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(n);
  mc_set_status(mcapi_status, n ? MCAPI_SUCCESS : MCAPI_ERR_NODE_NOTINIT);
  return n ? n->domain->number : MCAPI_DOMAIN_INVALID;
}

mcapi_node_t mcapi_node_id_get(mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(n);
  mc_set_status(mcapi_status, n ? MCAPI_SUCCESS : MCAPI_ERR_NODE_NOTINIT);
  return n ? n->id : MCAPI_NODE_INVALID;
}

/* ---- attributes ------------------------------------------------------------------------------ */

void mcapi_node_get_attribute(mcapi_domain_t domain_id, mcapi_node_t node_id,
                              mcapi_uint_t attribute_num, void *attribute, size_t attribute_size,
                              mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(n);
  mcapi_status_t status = mc_node_attribute_error(attribute_num, attribute, attribute_size);
  if (!n) status = MCAPI_ERR_NODE_NOTINIT;
  if (status == MCAPI_SUCCESS && domain_id != n->domain->number) status = MCAPI_ERR_DOMAIN_INVALID;
  if (status == MCAPI_SUCCESS) {
    mc_tables_lock(n->domain);
    if (!node_exists(n->domain, node_id)) status = MCAPI_ERR_NODE_INVALID;
    mc_tables_unlock(n->domain);
  }
  if (status == MCAPI_SUCCESS) {
    const mc_domain *d = n->domain;
    mcapi_uint_t value = MCAPI_NODE_ATTR_TYPE_REGULAR;
    if (attribute_num == LVD_MCAPI_NODE_ATTR_TRANSPORT) value = 1 + mc_transport_number(d);
    if (attribute_num == LVD_MCAPI_NODE_ATTR_GROUP)
      value = d->group < 0 ? LVD_MCAPI_NO_GROUP : (mcapi_uint_t)d->group;
    memcpy(attribute, &value, sizeof value);
  }
  mc_set_status(mcapi_status, status);
}
