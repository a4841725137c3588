/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two processes for the checker, and a stream between them: the two sides of a link, each with its
 * notifier, in one address space. This file provides what they need of the operating system:
 * shared memory, a bell each way, and the report that a process has exited. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "src/ipc/link.h"

enum { MEMORY = 8192 };

void model_ring(uint32_t bell);
void model_sleep(uint32_t bell);

typedef struct model_side {
  lvd_runtime rt;
  lvd_app app;
  lvd_link link;
  lvd_stream *stream;
  uint32_t got, wrong;
  lvd_a32 records;
  lvd_a32 let_go; /* 1 + the status with which the link ended */
} model_side;

typedef struct model_world {
  model_side side[2];
  lvd_a32 gone[2]; /* the process has exited */
  lvd_a32 told[2]; /* the system has news: anything but the other side's bell */
} model_world;

static model_world *world;

/* No check has a deadlock. */
bool lvd_deadlock_is_parents(const lvd_link *link) { return link == NULL; }

/* ---- the port ------------------------------------------------------------------------------ */

/* What is known by a descriptor; a bell's end has its side's number. */
enum { PARENTS_BELL = LVD_PARENT, CHILDS_BELL = LVD_CHILD, MEMORY_FILE, OWN_BELL };

static unsigned char *shared;
static size_t shared_size;

bool lvd_os_barrier_prepare(void) { return false; }
size_t lvd_os_ring_granularity(void) { return 4096; }

lvd_status lvd_os_shared_create(size_t size, int *memory) {
  shared = model_pages(shared_size = size);
  *memory = MEMORY_FILE;
  return LVD_OK;
}
lvd_status lvd_os_shared_size(int memory, size_t *size) {
  *size = memory == MEMORY_FILE ? shared_size : 0;
  return LVD_OK;
}
lvd_status lvd_os_shared_commit(int memory, size_t offset, size_t size) {
  return memory == MEMORY_FILE && offset + size <= shared_size ? LVD_OK : LVD_E_MEMORY;
}
void lvd_os_shared_decommit(int memory, size_t offset, size_t size) {
  (void)memory, (void)offset, (void)size;
}
/* Nothing is put or got here in a row that would pass the end of a ring. */
void *lvd_os_shared_map(int memory, size_t offset, size_t head, size_t ring) {
  return memory == MEMORY_FILE && offset + head + ring <= shared_size ? shared + offset : NULL;
}
void lvd_os_shared_unmap(void *p, size_t head, size_t ring) { (void)p, (void)head, (void)ring; }

/* A process is known by 1 + its side. */
int32_t lvd_os_process_self(void) { return 1 + LVD_PARENT; }
lvd_status lvd_os_process_parent(lvd_os_process *p, int32_t id) {
  *p = (lvd_os_process){.id = id, .pidfd = -1, .parent = true};
  return LVD_OK;
}
bool lvd_os_process_crashed(const lvd_os_process *p) { return (void)p, false; }
bool lvd_os_process_has_exited(lvd_os_process *p) {
  return lvd_load_acquire_u32(&world->gone[p->id - 1]);
}
void lvd_os_process_kill(const lvd_os_process *p) { (void)p, abort(); }
void lvd_os_process_close(lvd_os_process *p) { (void)p; }
void lvd_os_close(int descriptor) { (void)descriptor; }

/* One bell for each side stands for everything that its notifier sleeps for, since the notifier
 * checks all of it anyway. News of the operating system orders what was before it (`told`); the
 * other side's doorbell orders nothing. */
static void tell(uint32_t side) {
  lvd_exchange_release_u32(&world->told[side], 1);
  model_ring(side);
}
lvd_status lvd_os_socketpair(int bell[2], bool wire) {
  (void)wire;
  bell[0] = PARENTS_BELL;
  bell[1] = CHILDS_BELL;
  return LVD_OK;
}
void lvd_os_socket_signal(int bell) { model_ring(bell == PARENTS_BELL ? LVD_CHILD : LVD_PARENT); }
lvd_status lvd_os_eventfd_create(int *bell) {
  *bell = OWN_BELL + (shared != NULL && world->side[LVD_PARENT].link.segment != NULL);
  return LVD_OK;
}
void lvd_os_eventfd_signal(int bell) { tell((uint32_t)(bell - OWN_BELL)); }
void lvd_os_signal_wait(int bell, int own, const lvd_os_process *p, int64_t timeout_ns) {
  (void)own, (void)p, (void)timeout_ns;
  model_sleep((uint32_t)bell);
  lvd_exchange_acquire_u32(&world->told[bell], 0);
}

/* Only threads wait, no fibers. */
lvd_fiber *lvd_fiber_self(void) { return NULL; }
void *lvd_caller(void) { return lvd_os_self(); }
bool lvd_os_thread_set_realtime(uint32_t priority) { return (void)priority, true; }
lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_wait_item *want, uint32_t count,
                          int64_t timeout_ns, uint32_t *which) {
  (void)f, (void)want, (void)count, (void)timeout_ns, (void)which;
  abort();
}

/* ---- what a check does --------------------------------------------------------------------- */

static model_side *side_of(lvd_link *link) {
  return (model_side *)(void *)((char *)link - offsetof(model_side, link));
}
static void take(lvd_link *link, const lvd_record *r) {
  model_side *s = side_of(link);
  uint32_t n = lvd_load_relaxed_u32(&s->records);
  if (r->number != n) s->wrong++;
  lvd_store_release_u32(&s->records, n + 1);
  lvd_os_wake(&s->records);
}
static void ended(lvd_link *link, lvd_status why) {
  lvd_store_release_u32(&side_of(link)->let_go, 1 + (uint32_t)why);
}

/* The two sides, as lvd_unit_load and lvd_unit_serve make them. */
model_world *model_make(void) {
  int bell;
  model_arena_reset();
  shared = NULL;
  model_world *m = world = lvd_os_alloc(sizeof *m);
  for (int i = 0; i < 2; i++) {
    model_side *s = &m->side[i];
    s->rt.options.no_spin = true;
    s->app.rt = &s->rt;
    s->link.take = take;
    s->link.ended = ended;
  }
  model_side *parent = &m->side[LVD_PARENT], *child = &m->side[LVD_CHILD];
  if (lvd_link_make(&parent->link, &parent->app, 0, MEMORY, false, &bell) != LVD_OK ||
      lvd_link_join(&child->link, &child->app, parent->link.memory, bell) != LVD_OK ||
      lvd_link_begin(&parent->link, "parent's") != LVD_OK ||
      lvd_link_begin(&child->link, "child's") != LVD_OK)
    abort();
  parent->link.peer = (lvd_os_process){.id = 1 + LVD_CHILD, .pidfd = -1};
  return m;
}

/* A thread works for one side; that tells which side's ends it has. */
static lvd_worker sides[2];
static model_side *on(model_world *m, uint32_t side) {
  lvd_os_set_self(&sides[side]);
  return &m->side[side];
}

uint32_t model_open(model_world *m, uint32_t side, uint32_t capacity, uint32_t threshold) {
  lvd_stream_options o = {
      .name = "stream", .elem_size = 4, .capacity = capacity, .threshold = threshold};
  model_side *at = on(m, side);
  return lvd_shared_open(&at->link, &o, &at->stream);
}
uint32_t model_put(model_world *m, uint32_t side, uint32_t v) {
  lvd_stream *s = on(m, side)->stream;
  lvd_status status = lvd_stream_wait_room(s, 1, -1);
  if (status != LVD_OK) return status;
  *(uint32_t *)lvd_put_span(&s->producer) = v;
  lvd_put_done(&s->producer, 1);
  lvd_stream_push(s);
  return LVD_OK;
}
uint32_t model_get(model_world *m, uint32_t side) {
  model_side *at = on(m, side);
  lvd_stream *s = at->stream;
  lvd_status status = lvd_stream_wait_elements(s, 1, -1);
  if (status != LVD_OK) return status;
  if (*(const uint32_t *)lvd_get_span(&s->consumer) != 100 + at->got) at->wrong++;
  at->got++;
  lvd_get_done(&s->consumer, 1);
  lvd_stream_pop(s);
  return LVD_OK;
}
void model_flush(model_world *m, uint32_t side) { lvd_stream_flush(m->side[side].stream); }
void model_close(model_world *m, uint32_t side) { lvd_stream_close(on(m, side)->stream); }
uint32_t model_destroy(model_world *m, uint32_t side) {
  return lvd_stream_destroy(on(m, side)->stream);
}

/* Reads an element, gives its end up without popping it, and lets go of the stream. */
uint32_t model_peek(model_world *m, uint32_t side) {
  model_side *at = on(m, side);
  lvd_status status = lvd_stream_wait_elements(at->stream, 1, -1);
  if (status != LVD_OK) return status;
  if (*(const uint32_t *)lvd_get_span(&at->stream->consumer) != 100) at->wrong++;
  lvd_stream_release_end(at->stream);
  return lvd_stream_destroy(at->stream);
}
/* Puts if there is room, without waiting, also if the element will not be got. */
uint32_t model_try_put(model_world *m, uint32_t side, uint32_t v) {
  lvd_stream *s = m->side[side].stream;
  if (lvd_room(&s->producer, 1) < 1) return false;
  *(uint32_t *)lvd_put_span(&s->producer) = v;
  return true;
}
/* `side` declares that it will not open the stream. */
uint32_t model_leave(model_world *m, uint32_t side) {
  return lvd_shared_leave(&m->side[side].link, "stream");
}

uint32_t model_send(model_world *m, uint32_t side, uint32_t number) {
  const lvd_record r = {.kind = LVD_RECORD_CALL, .number = number};
  return lvd_link_send(&m->side[side].link, &r);
}
/* Sleeps until `n` records have come. */
void model_come(model_world *m, uint32_t side, uint32_t n) {
  lvd_a32 *records = &m->side[side].records;
  for (uint32_t come; (come = lvd_load_acquire_u32(records)) < n;) lvd_os_wait(records, come, -1);
}

/* The process has exited, with all its threads; the system reports it to the peer. */
void model_dies(model_world *m, uint32_t side) {
  lvd_store_release_u32(&m->gone[side], 1);
  tell(1 - side);
}
void model_stop(model_world *m, uint32_t side) { lvd_link_end(&m->side[side].link); }

/* Elements that a side has pushed, according to the shared memory. */
uint32_t model_pushed(model_world *m, uint32_t side) {
  return lvd_load_relaxed_u32(m->side[side].stream->producer.tail);
}
uint32_t model_got(model_world *m, uint32_t side) { return m->side[side].got; }
uint32_t model_wrong(model_world *m, uint32_t side) { return m->side[side].wrong; }
uint32_t model_let_go(model_world *m, uint32_t side) {
  return lvd_load_acquire_u32(&m->side[side].let_go) - 1;
}

/* Statuses by name, whatever their numbers are. */
uint32_t model_status_ended(void) { return LVD_E_EOF; }
uint32_t model_status_peer(void) { return LVD_E_PEER_GONE; }
