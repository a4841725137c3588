/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests: calls that have started and are not complete. They make progress whenever a thread of
 * the process polls or waits for a request in the same list, in the order in which they were
 * started. */
#include "../transport/transport.h"

#include <levada/fiber.h>

#include <string.h>

enum { REQUESTS = MCAPI_MAX_REQUESTS, WAIT_ANY = 1024, POLLS = 64 };

/* A request with a number, the caller's mcapi_request_t. A thread that uses an entry pins it, so
 * that it is not reused meanwhile. */
typedef struct mc_request_entry {
  mc_request request;
  mcapi_request_t found;  /* the number it was given */
  mcapi_request_t number; /* the same while it is valid; 0: it has been used up */
  uint32_t pins, generation;
  bool waited, cancelled;
} mc_request_entry;

static lvd_os_mutex table_lock; /* acquired after an endpoint's lock */
static mc_request_entry table[REQUESTS];
static uint32_t next_entry;

/* ---- progress -------------------------------------------------------------------------------- */

static void finish(mc_request *r, mcapi_status_t status) {
  r->status = status;
  lvd_store_release_u32(&r->done, 1);
}

/* Of several threads that poll or cancel a request that is in no list, one completes it. */
static bool claim_completion(mc_request *r) {
  uint32_t unclaimed = 0;
  return lvd_cas_relaxed_u32(&r->claimed, &unclaimed, 1);
}

static mcapi_status_t progress(mc_request *r) {
  mc_domain *d = r->node->domain;
  if (r->kind == MC_MESSAGE_SEND)
    switch (MC_TRANSPORT_CALL(d, send, d, r->local, r->to, r->out, r->size, r->level)) {
    case LVD_OK:
      return MCAPI_SUCCESS;
    case LVD_E_TIMEOUT:
      return r->fail_when_full ? MCAPI_ERR_MEM_LIMIT : MCAPI_PENDING;
    case LVD_E_PEER_GONE: /* deleted: messages on their way are dropped */
      return mc_endpoint_was_deleted(d, r->to) ? MCAPI_SUCCESS : MCAPI_ERR_ENDP_INVALID;
    case LVD_E_MEMORY:
      return MCAPI_ERR_MEM_LIMIT;
    default:
      return MCAPI_ERR_GENERAL;
    }
  if (r->kind != MC_MESSAGE_RECEIVE) return mc_channel_progress(d, r);
  size_t room = r->size, size = 0;
  lvd_status status = MC_TRANSPORT_CALL(d, receive, d, r->local, r->in, room, &size);
  if (status == LVD_E_TIMEOUT) return MCAPI_PENDING;
  r->size = size;
  return status == LVD_OK        ? MCAPI_SUCCESS
         : status == LVD_E_LIMIT ? MCAPI_ERR_MSG_TRUNCATED
                                 : MCAPI_ERR_TRANSMISSION;
}

static void dequeue(mc_request *r) {
  mc_request_list *line = &r->local->pending[r->kind];
  mc_request **at = &line->first, *before = NULL;
  while (*at && *at != r) {
    before = *at;
    at = &before->next;
  }
  if (!*at) return;
  *at = r->next;
  if (line->last == r) line->last = before;
}

/* Advances the requests of a list, in their order. Messages to different endpoints do not wait for
 * each other. With the lock. True: requests other than `mine` have completed. */
static bool progress_list(mc_request_list *line, const mc_request *mine) {
  bool others = false, sends = line->first && line->first->kind == MC_MESSAGE_SEND;
  uint64_t full[(MC_ENDPOINTS + 63) / 64] = {0};
  for (mc_request *r = line->first, *next; r; r = next) {
    next = r->next;
    uint32_t to = sends ? mc_index(r->to) : 0;
    if (full[to / 64] >> to % 64 & 1) continue;
    mcapi_status_t status = progress(r);
    if (status == MCAPI_PENDING && !sends) break;
    full[to / 64] |= (uint64_t)(status == MCAPI_PENDING) << to % 64;
    if (status == MCAPI_PENDING) continue;
    others |= r != mine;
    dequeue(r);
    finish(r, status);
  }
  return others;
}

static bool abort_request(mc_request *r, mcapi_status_t why);

bool mc_request_poll(mc_request *r) {
  if (lvd_load_acquire_u32(&r->done)) return true;
  if (LVD_UNLIKELY(r->active != lvd_load_acquire_u32(&r->node->active))) {
    abort_request(r, MCAPI_ERR_NODE_NOTINIT); /* its node has been finalized meanwhile */
    return lvd_load_acquire_u32(&r->done);
  }
  if (r->kind == MC_ENDPOINT_GET) {
    mcapi_endpoint_t e = mc_endpoint_find(r->node->domain, r->target_node, r->target_port);
    if (!e || !claim_completion(r)) return lvd_load_acquire_u32(&r->done);
    bool got = mc_endpoint_add_reference(r->node, e);
    if (got) *r->endpoint = e;
    finish(r, got ? MCAPI_SUCCESS : MCAPI_ERR_ENDP_GET_LIMIT);
    return true;
  }
  if (r->kind == MC_CHANNEL_OPEN) return mc_channel_poll_open(r);
  if (r->kind == MC_COMPLETED) {
    if (claim_completion(r)) finish(r, MCAPI_SUCCESS);
    return lvd_load_acquire_u32(&r->done);
  }
  mc_local_endpoint *local = r->local;
  mc_lock_acquire(&local->lock);
  bool others = progress_list(&local->pending[r->kind], r);
  mc_lock_release(&local->lock);
  if (others) mc_notify(r->node->domain, r->node->index); /* their callers may be waiting */
  return lvd_load_acquire_u32(&r->done);
}

/* False: the endpoint has been deleted meanwhile. */
static bool enqueue(mc_request *r) {
  if (r->kind >= MC_QUEUED_KINDS) return true;
  mc_local_endpoint *local = r->local;
  mc_request_list *line = &local->pending[r->kind];
  mc_lock_acquire(&local->lock);
  bool there = lvd_load_relaxed_u32(&local->handle) == r->handle;
  if (there) {
    r->next = NULL;
    *(line->first ? &line->last->next : &line->first) = r;
    line->last = r;
  }
  mc_lock_release(&local->lock);
  return there;
}

/* True: the request was not complete, and has been completed with `why`. */
static bool abort_request(mc_request *r, mcapi_status_t why) {
  if (!r->local) {
    bool mine = !lvd_load_acquire_u32(&r->done) && claim_completion(r);
    if (mine) finish(r, why);
    return mine;
  }
  if (r->kind == MC_CHANNEL_OPEN) return mc_channel_cancel_open(r, why);
  mc_lock_acquire(&r->local->lock);
  bool mine = !lvd_load_relaxed_u32(&r->done);
  if (mine) {
    dequeue(r);
    finish(r, why);
  }
  mc_lock_release(&r->local->lock);
  return mine;
}

void mc_requests_fail(mc_local_endpoint *local, enum mc_kind from, mcapi_status_t why) {
  for (int kind = (int)from; kind < MC_QUEUED_KINDS; kind++)
    for (mc_request *r; (r = local->pending[kind].first);) {
      dequeue(r);
      finish(r, why);
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Polls a few times without the lock, which costs more than a poll. An event that completes a
 * request without data (a death, a close, a cancel) notifies the node, after which this is called
 * again. */
static bool poll_one(void *what) {
  const mc_request *r = what;
  if (r->kind < MC_QUEUED_KINDS && r->node->domain->transport == &mc_shm)
    for (int i = 0; i < POLLS && !mc_shm_ready(r->local, r->kind); i++) lvd_os_relax();
  return mc_request_poll(what);
}

static void arm_one(void *what) {
  mc_request *r = what;
  mc_domain *d = r->node->domain;
  if (r->kind == MC_ENDPOINT_GET)
    mc_node_set_add(&d->tables->endpoint_waiters, r->node->index);
  else if (r->kind == MC_MESSAGE_SEND)
    d->transport->await_room(d, mc_index(r->to), r->node->index);
}

static mcapi_status_t unfinished_status(lvd_status status) {
  return status == LVD_E_TIMEOUT ? MCAPI_TIMEOUT : MCAPI_ERR_REQUEST_CANCELLED;
}

static uint32_t spin_of(const mc_request *r) {
  return r->local ? lvd_load_relaxed_u32(&r->local->spin_us) : MC_SPIN_US;
}

/* Completes it at once if no request is queued before it, as for most. */
static bool run_unqueued(mc_request *r) {
  if (r->kind >= MC_QUEUED_KINDS) return false;
  mcapi_status_t status = MCAPI_PENDING;
  mc_lock_acquire(&r->local->lock);
  if (!r->local->pending[r->kind].first && lvd_load_relaxed_u32(&r->local->handle) == r->handle)
    status = progress(r);
  mc_lock_release(&r->local->lock);
  r->status = status;
  return status != MCAPI_PENDING;
}

/* Data on its way arrives within a microsecond. So a thread polls for that long before it queues
 * the request and waits, which takes longer. */
static bool run_after_polling(mc_request *r) {
  if (r->kind != MC_MESSAGE_RECEIVE && r->kind != MC_PACKET_RECEIVE && r->kind != MC_SCALAR_RECEIVE)
    return false;
  if (r->node->domain->transport != &mc_shm || !spin_of(r) || lvd_fiber_self()) return false;
  for (int i = 0; i < POLLS; i++) {
    if (mc_shm_ready(r->local, r->kind)) return run_unqueued(r);
    lvd_os_relax();
  }
  return false;
}

static mcapi_status_t run_queued(mc_request *r, int64_t timeout_ns) {
  if (!enqueue(r)) return MCAPI_ERR_ENDP_INVALID;
  if (!mc_request_poll(r)) {
    const mc_domain *d = r->node->domain;
    bool own_way = d->transport->wait && r->kind < MC_QUEUED_KINDS && !lvd_fiber_self();
    lvd_status status = own_way ? d->transport->wait(r->node->domain, r, poll_one, r, timeout_ns)
                                : mc_wait(r->node, poll_one, arm_one, r, spin_of(r), timeout_ns);
    if (status != LVD_OK) abort_request(r, unfinished_status(status));
  }
  return r->status;
}

mcapi_status_t mc_request_run(mc_request *r, int64_t timeout_ns) {
  if (run_unqueued(r) || (timeout_ns && run_after_polling(r))) return r->status;
  r->active = lvd_load_acquire_u32(&r->node->active);
  /* the node is ending */
  return r->active % 2 ? run_queued(r, timeout_ns) : MCAPI_ERR_NODE_NOTINIT;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void unpin_entry(mc_request_entry *n) {
  lvd_os_lock(&table_lock);
  n->pins--;
  lvd_os_unlock(&table_lock);
}

/* The entry, pinned; null: the caller has no such request. Another thread may consume it meanwhile,
 * so consume() checks. */
static mc_request_entry *find_entry(mc_local_node *self, const mcapi_request_t *request) {
  if (!request) return NULL;
  mc_request_entry *n = &table[*request % REQUESTS];
  lvd_os_lock(&table_lock);
  bool same = *request && n->number == *request && n->request.node == self;
  n->pins += same;
  lvd_os_unlock(&table_lock);
  return same ? n : NULL;
}

/* The number becomes invalid. */
static void free_number(mc_request_entry *n) { n->number = 0; }

mc_request_entry *mc_request_reserve(void) {
  mc_request_entry *n = NULL;
  lvd_os_lock(&table_lock);
  for (uint32_t i = 0; i < REQUESTS && !n; i++) {
    mc_request_entry *at = &table[(next_entry + i) % REQUESTS];
    if (!at->number && !at->pins) n = at;
  }
  if (n) {
    next_entry = (uint32_t)(n - table) + 1;
    n->pins = 1;
  }
  lvd_os_unlock(&table_lock);
  return n;
}

void mc_request_unreserve(mc_request_entry *n) { unpin_entry(n); }

mcapi_status_t mc_request_start(mc_request_entry *n, const mc_request *r, mcapi_request_t *out) {
  mc_request *mine = &n->request;
  *mine = *r;
  mine->active = lvd_load_acquire_u32(&r->node->active);
  if (mine->active % 2 == 0) { /* the node is ending */
    unpin_entry(n);
    return MCAPI_ERR_NODE_NOTINIT;
  }
  /* It may be complete now, with a status that the caller gets when it asks for it. */
  bool done = run_unqueued(mine);
  if (done)
    finish(mine, mine->status);
  else if (!enqueue(mine))
    finish(mine, MCAPI_ERR_ENDP_INVALID);
  bool well = (done || mc_request_poll(mine)) && mine->status == MCAPI_SUCCESS;
  /* No other thread knows the number before it is returned. If the node ends,
   * mc_requests_forget_node runs after this,
   *    or has run before and `active` has changed. */
  lvd_os_lock(&table_lock);
  bool ended = lvd_load_acquire_u32(&r->node->active) != mine->active;
  if (!ended) {
    n->generation = n->generation % (UINT32_MAX / REQUESTS - 1) + 1;
    n->found = n->number = n->generation * REQUESTS + (uint32_t)(n - table);
    n->waited = n->cancelled = false;
    n->pins--;
    *out = n->number;
  }
  lvd_os_unlock(&table_lock);
  if (!ended) return well ? MCAPI_SUCCESS : MCAPI_PENDING;
  abort_request(mine, MCAPI_ERR_NODE_NOTINIT);
  unpin_entry(n);
  return MCAPI_ERR_NODE_NOTINIT;
}

mcapi_status_t mc_request_start_completed(mc_request_entry *n, mc_local_node *self,
                                          mcapi_status_t status, mcapi_request_t *out) {
  if (status == MCAPI_SUCCESS)
    return mc_request_start(n, &(mc_request){.kind = MC_COMPLETED, .node = self}, out);
  mc_request_unreserve(n);
  return status;
}

mcapi_status_t mc_request_begin(const mc_request *r, mcapi_request_t *out) {
  mc_request_entry *n = mc_request_reserve();
  return n ? mc_request_start(n, r, out) : MCAPI_ERR_REQUEST_LIMIT;
}

void mc_requests_forget_node(mc_local_node *node) {
  lvd_os_lock(&table_lock);
  for (uint32_t i = 0; i < REQUESTS; i++)
    if (table[i].number && table[i].request.node == node) free_number(&table[i]);
  lvd_os_unlock(&table_lock);
}

void mc_requests_reset(void) {
  table_lock = (lvd_os_mutex){{0}};
  for (uint32_t i = 0; i < REQUESTS; i++) {
    free_number(&table[i]);
    table[i].pins = 0; /* the threads that pinned it do not exist in the child */
  }
}

/* Of a complete request: its status and size. The number becomes invalid, unless another thread has
 * consumed it before. With the table's lock. */
static mcapi_status_t consume(mc_request_entry *n, mcapi_request_t request, size_t *size) {
  if (n->number != request) return MCAPI_ERR_REQUEST_INVALID;
  if (size) *size = n->request.size;
  free_number(n);
  return n->cancelled ? MCAPI_ERR_REQUEST_CANCELLED : n->request.status;
}

mcapi_boolean_t mcapi_test(const mcapi_request_t *request, size_t *size,
                           mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request_entry *n = self ? find_entry(self, request) : NULL;
  if (!n) {
    mc_set_status(mcapi_status, self ? MCAPI_ERR_REQUEST_INVALID : MCAPI_ERR_NODE_NOTINIT);
    return MCAPI_FALSE;
  }
  bool done = mc_request_poll(&n->request);
  lvd_os_lock(&table_lock);
  mcapi_status_t status = done ? consume(n, n->found, size) : MCAPI_PENDING;
  n->pins--;
  lvd_os_unlock(&table_lock);
  mc_set_status(mcapi_status, status);
  return status == MCAPI_SUCCESS;
}

typedef struct request_set {
  mc_request_entry **n;
  mcapi_request_t request[WAIT_ANY]; /* their numbers when they were found */
  size_t count, which;
} request_set;

static bool poll_any(void *what) {
  request_set *s = what;
  for (size_t i = 0; i < s->count; i++)
    if (mc_request_poll(&s->n[i]->request)) {
      s->which = i;
      return true;
    }
  return false;
}
static void arm_any(void *what) {
  request_set *s = what;
  for (size_t i = 0; i < s->count; i++) arm_one(&s->n[i]->request);
}

/* MCAPI_SUCCESS: the caller is the only one that waits for them. Else a number is invalid, or is
 * being waited for. */
static mcapi_status_t mark_waited(request_set *s) {
  mcapi_status_t status = MCAPI_SUCCESS;
  lvd_os_lock(&table_lock);
  for (size_t i = 0; i < s->count; i++)
    if (s->n[i]->number != s->request[i])
      status = MCAPI_ERR_REQUEST_INVALID;
    else if (s->n[i]->waited && status == MCAPI_SUCCESS)
      status = MCAPI_ERR_WAIT_PENDING;
  for (size_t i = 0; i < s->count && status == MCAPI_SUCCESS; i++) s->n[i]->waited = true;
  lvd_os_unlock(&table_lock);
  return status;
}

/* After a wait. Frees the numbers of requests that were cancelled meanwhile and did not end the
 * wait. With the table's lock. */
static void unmark_waited(request_set *s) {
  for (size_t i = 0; i < s->count; i++) {
    if (s->n[i]->number != s->request[i]) continue;
    s->n[i]->waited = false;
    if (s->n[i]->cancelled) free_number(s->n[i]);
  }
}

static bool wait_for(mc_local_node *self, request_set *s, size_t *size, mcapi_timeout_t timeout,
                     mcapi_status_t *status) {
  mcapi_status_t reserved = mark_waited(s);
  if (reserved != MCAPI_SUCCESS) {
    mc_set_status(status, reserved);
    return false;
  }
  uint32_t spin_us = 0;
  for (size_t i = 0; i < s->count; i++) {
    uint32_t most = spin_of(&s->n[i]->request);
    if (most > spin_us) spin_us = most;
  }
  lvd_status how =
      poll_any(s) ? LVD_OK : mc_wait(self, poll_any, arm_any, s, spin_us, mc_timeout_ns(timeout));
  lvd_os_lock(&table_lock);
  mcapi_status_t ended =
      how == LVD_OK ? consume(s->n[s->which], s->request[s->which], size) : unfinished_status(how);
  unmark_waited(s);
  lvd_os_unlock(&table_lock);
  mc_set_status(status, ended);
  return ended == MCAPI_SUCCESS;
}

mcapi_boolean_t mcapi_wait(const mcapi_request_t *request, size_t *size, mcapi_timeout_t timeout,
                           mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request_entry *n = self ? find_entry(self, request) : NULL;
  if (!n) {
    mc_set_status(mcapi_status, self ? MCAPI_ERR_REQUEST_INVALID : MCAPI_ERR_NODE_NOTINIT);
    return MCAPI_FALSE;
  }
  request_set s; /* its array of 4 KiB is not initialized */
  s.n = &n;
  s.request[0] = n->found;
  s.count = 1;
  bool well = wait_for(self, &s, size, timeout, mcapi_status);
  unpin_entry(n);
  return well;
}

mcapi_uint_t mcapi_wait_any(size_t number, mcapi_request_t **requests, size_t *size,
                            mcapi_timeout_t timeout, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request_entry *n[WAIT_ANY];
  request_set s;
  s.n = n;
  s.count = 0;
  s.which = MCAPI_RETURN_VALUE_INVALID;
  mcapi_status_t status = !self                                           ? MCAPI_ERR_NODE_NOTINIT
                          : !requests || number == 0 || number > WAIT_ANY ? MCAPI_ERR_PARAMETER
                                                                          : MCAPI_SUCCESS;
  for (size_t i = 0; i < number && status == MCAPI_SUCCESS; i++)
    if (!(n[i] = find_entry(self, requests[i])))
      status = MCAPI_ERR_REQUEST_INVALID;
    else
      s.request[s.count++] = n[i]->found;
  if (status == MCAPI_SUCCESS)
    wait_for(self, &s, size, timeout, mcapi_status);
  else
    mc_set_status(mcapi_status, status);
  for (size_t i = 0; i < s.count; i++) unpin_entry(n[i]);
  return (mcapi_uint_t)s.which;
}

void mcapi_cancel(const mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request_entry *n = self ? find_entry(self, request) : NULL;
  mcapi_status_t status = !self ? MCAPI_ERR_NODE_NOTINIT : MCAPI_ERR_REQUEST_INVALID;
  if (n && abort_request(&n->request, MCAPI_ERR_REQUEST_CANCELLED)) {
    lvd_os_lock(&table_lock);
    if (n->number == n->found) { /* else the waiter has consumed it before */
      n->cancelled = true;
      if (!n->waited) free_number(n); /* else the waiter frees it */
    }
    lvd_os_unlock(&table_lock);
    mc_notify(self->domain, self->index);
    status = MCAPI_SUCCESS;
  }
  if (n) unpin_entry(n);
  mc_set_status(mcapi_status, status);
}
