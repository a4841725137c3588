/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests: what has been begun and is not done yet. They go on whenever somebody of the process tests
 * or waits for one that stands in the same line, in the order in which they were begun. */
#include "../transport/transport.h"

#include <levada/fiber.h>

#include <string.h>

enum { REQUESTS = MCAPI_MAX_REQUESTS, WAIT_ANY = 1024, PEEKS = 64 };

/* A request with a number: the caller's mcapi_request_t. Who looks at one has it pinned, so that it is
 * not another by then. */
typedef struct mc_numbered {
  mc_request request;
  mcapi_request_t found;  /* its number */
  mcapi_request_t number; /* the same, until it is used up: 0 */
  uint32_t pins, generation;
  bool waited, cancelled;
} numbered;

static lvd_os_mutex table_lock; /* after an endpoint's lock */
static numbered table[REQUESTS];
static uint32_t hint;

/* ---- going on ------------------------------------------------------------------------------- */

static void finish(mc_request *r, mcapi_status_t status) {
  r->status = status;
  lvd_store_release_u32(&r->done, 1);
}

/* Of several who test one that stands in no line, and who cancel it, one concludes it. */
static bool claim(mc_request *r) {
  uint32_t nobody = 0;
  return lvd_cas_relaxed_u32(&r->claimed, &nobody, 1);
}

static mcapi_status_t go_on(mc_request *r) {
  mc_domain *d = r->node->domain;
  if (r->kind == MC_SEND)
    switch (MC_THROUGH(d, send, d, r->local, r->to, r->out, r->size, r->level)) {
    case LVD_OK:
      return MCAPI_SUCCESS;
    case LVD_E_TIME:
      return r->may_fail ? MCAPI_ERR_MEM_LIMIT : MCAPI_PENDING;
    case LVD_E_PEER: /* deleted: what is under way to it is dropped */
      return mc_endpoint_was(d, r->to) ? MCAPI_SUCCESS : MCAPI_ERR_ENDP_INVALID;
    case LVD_E_MEMORY:
      return MCAPI_ERR_MEM_LIMIT;
    default:
      return MCAPI_ERR_GENERAL;
    }
  if (r->kind != MC_RECEIVE) return mc_channel_go_on(d, r);
  size_t room = r->size, size = 0;
  lvd_status status = MC_THROUGH(d, receive, d, r->local, r->in, room, &size);
  if (status == LVD_E_TIME) return MCAPI_PENDING;
  r->size = size;
  return status == LVD_OK        ? MCAPI_SUCCESS
         : status == LVD_E_LIMIT ? MCAPI_ERR_MSG_TRUNCATED
                                 : MCAPI_ERR_TRANSMISSION;
}

static void leave_line(mc_request *r) {
  mc_line *line = &r->local->line[r->kind];
  mc_request **at = &line->first, *before = NULL;
  while (*at && *at != r) {
    before = *at;
    at = &before->next;
  }
  if (!*at) return;
  *at = r->next;
  if (line->last == r) line->last = before;
}

/* Those go on that can, in their order; of messages, which may go to several, each behind those that go to
 * the same. With the lock. True: others than `mine` are done. */
static bool go_on_in_line(mc_line *line, const mc_request *mine) {
  bool others = false, sends = line->first && line->first->kind == MC_SEND;
  uint64_t full[(MC_ENDPOINTS + 63) / 64] = {0};
  for (mc_request *r = line->first, *next; r; r = next) {
    next = r->next;
    uint32_t to = sends ? mc_index(r->to) : 0;
    if (full[to / 64] >> to % 64 & 1) continue;
    mcapi_status_t status = go_on(r);
    if (status == MCAPI_PENDING && !sends) break;
    full[to / 64] |= (uint64_t)(status == MCAPI_PENDING) << to % 64;
    if (status == MCAPI_PENDING) continue;
    others |= r != mine;
    leave_line(r);
    finish(r, status);
  }
  return others;
}

static bool give_up(mc_request *r, mcapi_status_t why);

bool mc_request_try(mc_request *r) {
  if (lvd_load_acquire_u32(&r->done)) return true;
  if (LVD_UNLIKELY(r->active != lvd_load_acquire_u32(&r->node->active))) {
    give_up(r, MCAPI_ERR_NODE_NOTINIT); /* its node has been finalized meanwhile */
    return lvd_load_acquire_u32(&r->done);
  }
  if (r->kind == MC_GET) {
    mcapi_endpoint_t e = mc_endpoint_find(r->node->domain, r->target_node, r->target_port);
    if (!e || !claim(r)) return lvd_load_acquire_u32(&r->done);
    bool got = mc_endpoint_got(r->node, e);
    if (got) *r->endpoint = e;
    finish(r, got ? MCAPI_SUCCESS : MCAPI_ERR_ENDP_GET_LIMIT);
    return true;
  }
  if (r->kind == MC_OPEN) return mc_channel_opened(r);
  if (r->kind == MC_DONE) {
    if (claim(r)) finish(r, MCAPI_SUCCESS);
    return lvd_load_acquire_u32(&r->done);
  }
  mc_local *local = r->local;
  mc_lock_take(&local->lock);
  bool others = go_on_in_line(&local->line[r->kind], r);
  mc_lock_drop(&local->lock);
  if (others) mc_ring(r->node->domain, r->node->index); /* somebody may wait for those */
  return lvd_load_acquire_u32(&r->done);
}

/* False: its endpoint has been deleted meanwhile. */
static bool stand_in_line(mc_request *r) {
  if (r->kind >= MC_LINES) return true;
  mc_local *local = r->local;
  mc_line *line = &local->line[r->kind];
  mc_lock_take(&local->lock);
  bool there = lvd_load_relaxed_u32(&local->handle) == r->handle;
  if (there) {
    r->next = NULL;
    *(line->first ? &line->last->next : &line->first) = r;
    line->last = r;
  }
  mc_lock_drop(&local->lock);
  return there;
}

/* True: it was not done, and will not be. */
static bool give_up(mc_request *r, mcapi_status_t why) {
  if (!r->local) {
    bool mine = !lvd_load_acquire_u32(&r->done) && claim(r);
    if (mine) finish(r, why);
    return mine;
  }
  if (r->kind == MC_OPEN) return mc_channel_not_opened(r, why);
  mc_lock_take(&r->local->lock);
  bool mine = !lvd_load_relaxed_u32(&r->done);
  if (mine) {
    leave_line(r);
    finish(r, why);
  }
  mc_lock_drop(&r->local->lock);
  return mine;
}

void mc_requests_drop(mc_local *local, enum mc_kind from, mcapi_status_t why) {
  for (int kind = (int)from; kind < MC_LINES; kind++)
    for (mc_request *r; (r = local->line[kind].first);) {
      leave_line(r);
      finish(r, why);
    }
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Looks a few times without the lock, which costs more than the look. What ends a wait without anything
 * to take (a death, an end, a cancel) rings: then we are here again, or soon. */
static bool look_one(void *what) {
  const mc_request *r = what;
  if (r->kind < MC_LINES && r->node->domain->transport == &mc_shm)
    for (int i = 0; i < PEEKS && !mc_shm_ready(r->local, r->kind); i++) lvd_os_relax();
  return mc_request_try(what);
}

static void arm_one(void *what) {
  mc_request *r = what;
  mc_domain *d = r->node->domain;
  if (r->kind == MC_GET)
    mc_set_add(&d->tables->births, r->node->index);
  else if (r->kind == MC_SEND)
    d->transport->await_room(d, mc_index(r->to), r->node->index);
}

static mcapi_status_t unfinished(lvd_status status) {
  return status == LVD_E_TIME ? MCAPI_TIMEOUT : MCAPI_ERR_REQUEST_CANCELLED;
}

static uint32_t spin_of(const mc_request *r) {
  return r->local ? lvd_load_relaxed_u32(&r->local->spin_us) : MC_SPIN_US;
}

/* With nobody before it in line, and done at once: as most are. */
static bool run_at_once(mc_request *r) {
  if (r->kind >= MC_LINES) return false;
  mcapi_status_t status = MCAPI_PENDING;
  mc_lock_take(&r->local->lock);
  if (!r->local->line[r->kind].first && lvd_load_relaxed_u32(&r->local->handle) == r->handle)
    status = go_on(r);
  mc_lock_drop(&r->local->lock);
  r->status = status;
  return status != MCAPI_PENDING;
}

/* What is under way comes within a microsecond: before a thread stands in line and waits, which is more
 * work than that, it looks for so long. */
static bool run_soon(mc_request *r) {
  if (r->kind != MC_RECEIVE && r->kind != MC_PACKET_IN && r->kind != MC_SCALAR_IN) return false;
  if (r->node->domain->transport != &mc_shm || !spin_of(r) || lvd_fiber_self()) return false;
  for (int i = 0; i < PEEKS; i++) {
    if (mc_shm_ready(r->local, r->kind)) return run_at_once(r);
    lvd_os_relax();
  }
  return false;
}

static mcapi_status_t run_in_line(mc_request *r, int64_t timeout_ns) {
  if (!stand_in_line(r)) return MCAPI_ERR_ENDP_INVALID;
  if (!mc_request_try(r)) {
    const mc_domain *d = r->node->domain;
    bool own_way = d->transport->wait && r->kind < MC_LINES && !lvd_fiber_self();
    lvd_status status = own_way ? d->transport->wait(r->node->domain, r, look_one, r, timeout_ns)
                                : mc_wait(r->node, look_one, arm_one, r, spin_of(r), timeout_ns);
    if (status != LVD_OK) give_up(r, unfinished(status));
  }
  return r->status;
}

mcapi_status_t mc_request_run(mc_request *r, int64_t timeout_ns) {
  if (run_at_once(r) || (timeout_ns && run_soon(r))) return r->status;
  r->active = lvd_load_acquire_u32(&r->node->active);
  return r->active % 2 ? run_in_line(r, timeout_ns) : MCAPI_ERR_NODE_NOTINIT; /* it is ending */
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void unpin(numbered *n) {
  lvd_os_lock(&table_lock);
  n->pins--;
  lvd_os_unlock(&table_lock);
}

/* Pinned; null: the caller has no such request. Others may conclude it meanwhile: who concludes looks again. */
static numbered *find(mc_mine *self, const mcapi_request_t *request) {
  if (!request) return NULL;
  numbered *n = &table[*request % REQUESTS];
  lvd_os_lock(&table_lock);
  bool same = *request && n->number == *request && n->request.node == self;
  n->pins += same;
  lvd_os_unlock(&table_lock);
  return same ? n : NULL;
}

/* Nobody finds it any more. */
static void let_go(numbered *n) { n->number = 0; }

mc_numbered *mc_request_reserve(void) {
  numbered *n = NULL;
  lvd_os_lock(&table_lock);
  for (uint32_t i = 0; i < REQUESTS && !n; i++) {
    numbered *at = &table[(hint + i) % REQUESTS];
    if (!at->number && !at->pins) n = at;
  }
  if (n) {
    hint = (uint32_t)(n - table) + 1;
    n->pins = 1;
  }
  lvd_os_unlock(&table_lock);
  return n;
}

void mc_request_return(mc_numbered *n) { unpin(n); }

mcapi_status_t mc_request_start(mc_numbered *n, const mc_request *r, mcapi_request_t *out) {
  mc_request *mine = &n->request;
  *mine = *r;
  mine->active = lvd_load_acquire_u32(&r->node->active);
  if (mine->active % 2 == 0) { /* it is ending */
    unpin(n);
    return MCAPI_ERR_NODE_NOTINIT;
  }
  /* Done already: well, or to be told by the one who asks for it. */
  bool done = run_at_once(mine);
  if (done)
    finish(mine, mine->status);
  else if (!stand_in_line(mine))
    finish(mine, MCAPI_ERR_ENDP_INVALID);
  bool well = (done || mc_request_try(mine)) && mine->status == MCAPI_SUCCESS;
  /* Nobody knows its number before it is returned. If the node ends, it is forgotten behind this, or
   * was before, and is seen to have ended. */
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
  give_up(mine, MCAPI_ERR_NODE_NOTINIT);
  unpin(n);
  return MCAPI_ERR_NODE_NOTINIT;
}

mcapi_status_t mc_request_conclude(mc_numbered *n, mc_mine *self, mcapi_status_t status,
                                   mcapi_request_t *out) {
  if (status == MCAPI_SUCCESS)
    return mc_request_start(n, &(mc_request){.kind = MC_DONE, .node = self}, out);
  mc_request_return(n);
  return status;
}

mcapi_status_t mc_request_begin(const mc_request *r, mcapi_request_t *out) {
  mc_numbered *n = mc_request_reserve();
  return n ? mc_request_start(n, r, out) : MCAPI_ERR_REQUEST_LIMIT;
}

void mc_requests_forget(mc_mine *node) {
  lvd_os_lock(&table_lock);
  for (uint32_t i = 0; i < REQUESTS; i++)
    if (table[i].number && table[i].request.node == node) let_go(&table[i]);
  lvd_os_unlock(&table_lock);
}

void mc_requests_reset(void) {
  table_lock = (lvd_os_mutex){{0}};
  for (uint32_t i = 0; i < REQUESTS; i++) {
    let_go(&table[i]);
    table[i].pins = 0; /* who had it is not here */
  }
}

/* The request is done: its status and size, and it is used up, unless another tester was faster. With the
 * lock. */
static mcapi_status_t conclude(numbered *n, mcapi_request_t request, size_t *size) {
  if (n->number != request) return MCAPI_ERR_REQUEST_INVALID;
  if (size) *size = n->request.size;
  let_go(n);
  return n->cancelled ? MCAPI_ERR_REQUEST_CANCELLED : n->request.status;
}

mcapi_boolean_t mcapi_test(const mcapi_request_t *request, size_t *size,
                           mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  numbered *n = self ? find(self, request) : NULL;
  if (!n) {
    mc_say(mcapi_status, self ? MCAPI_ERR_REQUEST_INVALID : MCAPI_ERR_NODE_NOTINIT);
    return MCAPI_FALSE;
  }
  bool done = mc_request_try(&n->request);
  lvd_os_lock(&table_lock);
  mcapi_status_t status = done ? conclude(n, n->found, size) : MCAPI_PENDING;
  n->pins--;
  lvd_os_unlock(&table_lock);
  mc_say(mcapi_status, status);
  return status == MCAPI_SUCCESS;
}

typedef struct several {
  numbered **n;
  mcapi_request_t request[WAIT_ANY]; /* their numbers, when they were found */
  size_t count, which;
} several;

static bool look_any(void *what) {
  several *s = what;
  for (size_t i = 0; i < s->count; i++)
    if (mc_request_try(&s->n[i]->request)) {
      s->which = i;
      return true;
    }
  return false;
}
static void arm_any(void *what) {
  several *s = what;
  for (size_t i = 0; i < s->count; i++) arm_one(&s->n[i]->request);
}

/* Nobody else waits for one of them. MCAPI_SUCCESS; or one is used up already, or waited for. */
static mcapi_status_t reserve(several *s) {
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

/* The wait is over. Those that have been cancelled meanwhile, and are not what it ended with, are nobody's
 * now. With the lock. */
static void unreserve(several *s) {
  for (size_t i = 0; i < s->count; i++) {
    if (s->n[i]->number != s->request[i]) continue;
    s->n[i]->waited = false;
    if (s->n[i]->cancelled) let_go(s->n[i]);
  }
}

static bool wait_for(mc_mine *self, several *s, size_t *size, mcapi_timeout_t timeout,
                     mcapi_status_t *status) {
  mcapi_status_t reserved = reserve(s);
  if (reserved != MCAPI_SUCCESS) {
    mc_say(status, reserved);
    return false;
  }
  uint32_t spin_us = 0;
  for (size_t i = 0; i < s->count; i++) {
    uint32_t most = spin_of(&s->n[i]->request);
    if (most > spin_us) spin_us = most;
  }
  lvd_status how =
      look_any(s) ? LVD_OK : mc_wait(self, look_any, arm_any, s, spin_us, mc_ns(timeout));
  lvd_os_lock(&table_lock);
  mcapi_status_t ended =
      how == LVD_OK ? conclude(s->n[s->which], s->request[s->which], size) : unfinished(how);
  unreserve(s);
  lvd_os_unlock(&table_lock);
  mc_say(status, ended);
  return ended == MCAPI_SUCCESS;
}

mcapi_boolean_t mcapi_wait(const mcapi_request_t *request, size_t *size, mcapi_timeout_t timeout,
                           mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  numbered *n = self ? find(self, request) : NULL;
  if (!n) {
    mc_say(mcapi_status, self ? MCAPI_ERR_REQUEST_INVALID : MCAPI_ERR_NODE_NOTINIT);
    return MCAPI_FALSE;
  }
  several s; /* its table of 4 KiB is not cleared */
  s.n = &n;
  s.request[0] = n->found;
  s.count = 1;
  bool well = wait_for(self, &s, size, timeout, mcapi_status);
  unpin(n);
  return well;
}

mcapi_uint_t mcapi_wait_any(size_t number, mcapi_request_t **requests, size_t *size,
                            mcapi_timeout_t timeout, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  numbered *n[WAIT_ANY];
  several s;
  s.n = n;
  s.count = 0;
  s.which = MCAPI_RETURN_VALUE_INVALID;
  mcapi_status_t status = !self                                           ? MCAPI_ERR_NODE_NOTINIT
                          : !requests || number == 0 || number > WAIT_ANY ? MCAPI_ERR_PARAMETER
                                                                          : MCAPI_SUCCESS;
  for (size_t i = 0; i < number && status == MCAPI_SUCCESS; i++)
    if (!(n[i] = find(self, requests[i])))
      status = MCAPI_ERR_REQUEST_INVALID;
    else
      s.request[s.count++] = n[i]->found;
  if (status == MCAPI_SUCCESS)
    wait_for(self, &s, size, timeout, mcapi_status);
  else
    mc_say(mcapi_status, status);
  for (size_t i = 0; i < s.count; i++) unpin(n[i]);
  return (mcapi_uint_t)s.which;
}

void mcapi_cancel(const mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  numbered *n = self ? find(self, request) : NULL;
  mcapi_status_t status = !self ? MCAPI_ERR_NODE_NOTINIT : MCAPI_ERR_REQUEST_INVALID;
  if (n && give_up(&n->request, MCAPI_ERR_REQUEST_CANCELLED)) {
    lvd_os_lock(&table_lock);
    if (n->number == n->found) { /* else who waited has seen it, and was faster */
      n->cancelled = true;
      if (!n->waited) let_go(n); /* else whoever waits does */
    }
    lvd_os_unlock(&table_lock);
    mc_ring(self->domain, self->index);
    status = MCAPI_SUCCESS;
  }
  if (n) unpin(n);
  mc_say(mcapi_status, status);
}
