/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbered streams: a table of streams, each known by its number to its two sides. A side is whoever
 * created it: a fiber, or a thread. The sides are listed by who that is, so that a procedure that
 * returns finds its own. It then is forgotten: its fiber's address may be the next one's. What it has
 * closed before that it cannot create again until the other side is done, too.
 *
 * A stream leads to one other process: when it has only one side here as its first element comes, it
 * is opened with that one, where the other side will be; or it comes here later, which works as
 * well. */
#include <stdio.h>
#include <stdlib.h>

#include "inside.h"
#include "program.h"

enum { SIDE_LISTS_LOG2 = 6 };

/* Who has created a number. */
typedef struct side {
  void *who;         /* null: nobody, or one that has returned */
  lvd_fiber *fiber;  /* ... if it is one */
  bool gone;         /* it has closed it, or returned */
  struct side *next; /* in its list, as long as there is `who` */
  struct entry *entry;
} side;

/* A number that is in use. */
typedef struct entry {
  lvd_aptr stream;  /* lvd_stream, made at the first element */
  lvd_aptr user[2]; /* who has its receiving and its sending end, if they are of its sides */
  side side[2];
  uint32_t sides, left;
  lvd_unit *unit;    /* the process where the other side may be */
  bool bound;        /* ... because stream_with has said so */
  bool opening;      /* somebody asks that process, without the lock ... */
  lvd_event *opened; /* ... of who waits until he has; or null */
  uint32_t capacity, threshold;
  int64_t time_limit_ns;
} entry;

/* With the lock. */
struct lvd_numbers {
  entry number[PB_STREAMS];
  side *sides_of_all[1 << SIDE_LISTS_LOG2]; /* by who they are */
};
struct lvd_numbers lvd_numbers_of_process;

static entry *numbers(void) { return lvd_program_here()->numbers->number; }

/* ---- sides ---------------------------------------------------------------------------------- */

/* Null: there is no such number. */
static entry *entry_of(STREAM_ID sID) {
  return sID >= 0 && sID < PB_STREAMS ? &numbers()[sID] : NULL;
}

/* The list that has all sides of `who`, and of a few others. */
static side **sides_of(const void *who) {
  uint64_t spread = (uint64_t)(uintptr_t)who * 0x9e3779b97f4a7c15u;
  return &lvd_program_here()->numbers->sides_of_all[spread >> (64 - SIDE_LISTS_LOG2)];
}

static side *side_of(entry *e, const void *who) {
  for (int i = 0; i < 2; i++)
    if (e->side[i].who == who) return &e->side[i];
  return NULL;
}

static bool is_side(entry *e, const void *who) {
  const side *s = side_of(e, who);
  return s && !s->gone;
}

static void enter_side(entry *e, void *who) {
  if (!lvd_this_worker()) lvd_port_at_thread_end(LVD_ENDS_NUMBERS, lvd_numbers_leave, who);
  side **list = sides_of(who);
  side *s = &e->side[e->sides++];
  *s = (side){who, lvd_fiber_self(), false, *list, e};
  *list = s;
}

static void forget_side(side *s) {
  if (!s->who) return;
  side **at = sides_of(s->who);
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  s->who = NULL;
}

/* Both sides have left, or the number was never used. */
static void reset(entry *e) {
  lvd_stream_destroy(lvd_load_relaxed_ptr(&e->stream));
  for (int i = 0; i < 2; i++) forget_side(&e->side[i]);
  memset(e, 0, sizeof *e);
}

static lvd_shared_stream *shared_of(const entry *e) {
  const lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  return s ? ((const stream *)s)->shared : NULL;
}

/* All who were here have left, and the other ends were theirs or the other process's. */
static bool is_over(const entry *e) {
  if (e->left == 2) return true;
  return e->left && e->left == e->sides && shared_of(e) && lvd_shared_is_taken(shared_of(e));
}

/* The process that a stream leads to which the caller creates. With the lock. */
static lvd_unit *leads_to(void *me) {
  TASKID t = lvd_program_here()->tasks;
  while (t && t->self != me) t = t->next;
  return t && t->leads ? t->leads : lvd_program_last_unit();
}

/* What the two processes call it. */
static void shared_name(const entry *e, char name[32]) {
  snprintf(name, 32, "number %d", (int)(e - numbers()));
}

/* Who will use the stream: it is they whom others wait for, here or in the other process. With the
 * lock. */
static void say_parties(const entry *e) {
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  lvd_user party[2] = {{0}};
  uint32_t parties = 0;
  char name[32];
  for (int i = 0; i < 2; i++)
    if (e->side[i].who && !e->side[i].gone)
      party[parties++] = (lvd_user){e->side[i].who, e->side[i].fiber};
  shared_name(e, name);
  if (s) lvd_stream_say_parties(s, party, parties);
  if (e->unit) lvd_unit_expect_stream(e->unit, name, party, s ? 0 : parties);
}

/* ---- creating ------------------------------------------------------------------------------- */

lvd_status stream_create(STREAM_ID sID) {
  LVD_INSIDE;
  entry *e = entry_of(sID);
  if (!e) return LVD_E_ARGUMENT;
  lvd_status status = pb_boot();
  if (status != LVD_OK) return status;
  void *me = lvd_stream_caller();
  lvd_port_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  if (side_of(e, me) || e->sides == 2)
    status = LVD_E_STATE;
  else
    enter_side(e, me);
  if (status == LVD_OK && e->sides == 1 && !e->bound) e->unit = leads_to(me);
  if (status == LVD_OK) say_parties(e);
  lvd_port_unlock(&lvd_program_here()->lock);
  return status;
}

lvd_status stream_with(STREAM_ID sID, TASKID tid) {
  LVD_INSIDE;
  entry *e = entry_of(sID);
  if (!e || !tid) return LVD_E_ARGUMENT;
  lvd_port_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  bool made = tid->released || e->opening || lvd_load_relaxed_ptr(&e->stream);
  if (!made) {
    char name[32];
    shared_name(e, name);
    if (e->unit) lvd_unit_expect_stream(e->unit, name, NULL, 0);
    e->unit = tid->unit;
    e->bound = true;
    say_parties(e);
  }
  lvd_port_unlock(&lvd_program_here()->lock);
  return made ? LVD_E_STATE : LVD_OK;
}

lvd_status stream_configure(STREAM_ID sID, u32 capacity, u32 threshold) {
  LVD_INSIDE;
  entry *e = entry_of(sID);
  if (!e || capacity > LVD_CHANNEL_CAPACITY || threshold > LVD_CHANNEL_CAPACITY)
    return LVD_E_ARGUMENT;
  lvd_port_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  if (!s) {
    e->capacity = capacity;
    e->threshold = threshold;
  }
  lvd_port_unlock(&lvd_program_here()->lock);
  return s ? LVD_E_STATE : LVD_OK;
}

lvd_status stream_time_limit(STREAM_ID sID, int64_t timeout_ns) {
  LVD_INSIDE;
  entry *e = entry_of(sID);
  if (!e) return LVD_E_ARGUMENT;
  lvd_port_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  e->time_limit_ns = timeout_ns < 0 ? 0 : timeout_ns ? timeout_ns : 1;
  if (s) s->time_limit_ns = timeout_ns;
  lvd_port_unlock(&lvd_program_here()->lock);
  return LVD_OK;
}

/* ---- leaving -------------------------------------------------------------------------------- */

/* Nobody of this process will come for an end that nobody has taken: nothing will come from it, or
 * nobody will take what comes. */
static void leave_unused(lvd_stream *s, bool sender) {
  if (sender)
    lvd_stream_end(s, LVD_OK);
  else
    lvd_stream_leave(s);
}

static void leave_side(side *its) {
  entry *e = its->entry;
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  /* Who has put and got nothing leaves the end that the other side has not taken. */
  if (s && !lvd_stream_close(s)) {
    leave_unused(s, true);
    leave_unused(s, false);
  }
  for (int i = 0; i < 2; i++)
    if (lvd_load_relaxed_ptr(&e->user[i]) == its->who) lvd_store_relaxed_ptr(&e->user[i], NULL);
  e->left++;
  its->gone = true;
  say_parties(e);
  if (!s && e->sides == 1 && e->unit) {
    char name[32];
    shared_name(e, name);
    lvd_unit_leave_stream(e->unit, name);
    reset(e);
  } else if (is_over(e)) {
    reset(e);
  }
}

void lvd_numbers_leave(void *who) {
  LVD_INSIDE;
  lvd_port_lock(&lvd_program_here()->lock);
  for (side *s = *sides_of(who); s;) {
    if (s->who != who) {
      s = s->next;
      continue;
    }
    if (!s->gone) leave_side(s);
    forget_side(s);
    s = *sides_of(who); /* others may have gone with it */
  }
  lvd_port_unlock(&lvd_program_here()->lock);
}

lvd_status stream_close(STREAM_ID sID) {
  LVD_INSIDE;
  entry *e = entry_of(sID);
  if (!e) return LVD_E_ARGUMENT;
  void *me = lvd_stream_caller();
  lvd_port_lock(&lvd_program_here()->lock);
  lvd_status status = is_side(e, me) ? LVD_OK : LVD_E_STATE;
  if (status == LVD_OK) leave_side(side_of(e, me));
  lvd_port_unlock(&lvd_program_here()->lock);
  return status;
}

/* ---- elements ------------------------------------------------------------------------------- */

/* Opens it with the other process, which may take a while: without the lock, and others who want
 * the same meanwhile wait. */
static lvd_status open_shared(entry *e, lvd_stream_options o, lvd_stream **out) {
  char name[32];
  shared_name(e, name);
  o.name = name;
  e->opening = true;
  lvd_port_unlock(&lvd_program_here()->lock);
  lvd_status status = lvd_stream_open(e->unit, &o, out);
  lvd_port_lock(&lvd_program_here()->lock);
  e->opening = false;
  if (e->opened) lvd_event_set(e->opened, 1); /* who waits keeps it until he has the lock */
  e->opened = NULL;
  return status;
}

/* The other side opens it just now; so nobody else waits. With the lock, but while waiting. */
static lvd_status await_opening(entry *e) {
  lvd_event opened;
  lvd_event_init(&opened);
  e->opened = &opened;
  lvd_port_unlock(&lvd_program_here()->lock);
  lvd_status status = lvd_event_wait(&opened, NULL, e->time_limit_ns ? e->time_limit_ns : -1);
  lvd_port_lock(&lvd_program_here()->lock);
  if (e->opened == &opened) e->opened = NULL;
  return status;
}

/* The stream, if the caller has that end of it; null: this is not known. Who is no side of it does
 * not touch it: it may be gone. */
static lvd_stream *own(STREAM_ID sID, bool sender) {
  entry *e = entry_of(sID);
  const void *me = lvd_stream_caller();
  if (LVD_UNLIKELY(!e || lvd_load_relaxed_ptr(&e->user[sender]) != me)) return NULL;
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  return LVD_LIKELY(lvd_stream_has(s, me, sender)) ? s : NULL;
}

/* With the lock. */
static lvd_status make_stream(entry *e, size_t size, lvd_stream **out) {
  char name[32];
  snprintf(name, sizeof name, "%d", (int)(e - numbers()));
  lvd_stream_options o = {.name = name,
                          .elem_size = (uint32_t)size,
                          .capacity = e->capacity,
                          .threshold = e->threshold,
                          .time_limit_ns = e->time_limit_ns};
  if (e->unit && e->sides == 1) return open_shared(e, o, out);
  return lvd_stream_create(lvd_program_here()->app, &o, out);
}

/* Gives the caller, who must be a side, that end of the stream, which is made now if there is none:
 * so that who leaves knows by the lock which end the other side has. */
static lvd_status take_end(STREAM_ID sID, size_t size, bool sender, lvd_stream **out) {
  LVD_INSIDE;
  entry *e = entry_of(sID);
  if (!e || size > LVD_STREAM_ELEMENT) return LVD_E_ARGUMENT;
  void *me = lvd_stream_caller();
  lvd_port_lock(&lvd_program_here()->lock);
  lvd_status status = is_side(e, me) ? LVD_OK : LVD_E_STATE;
  while (e->opening && status == LVD_OK) status = await_opening(e);
  *out = lvd_load_relaxed_ptr(&e->stream);
  bool is_new = status == LVD_OK && !*out;
  if (is_new) status = make_stream(e, size, out);
  if (status == LVD_OK && size != (*out)->put.elem_size) status = LVD_E_ARGUMENT;
  if (status == LVD_OK) status = lvd_stream_take(*out, sender);
  if (status == LVD_OK) lvd_store_relaxed_ptr(&e->user[sender], me);
  if (is_new && *out) {
    lvd_store_release_ptr(&e->stream, *out);
    say_parties(e);
    if (e->left) leave_unused(*out, !sender); /* the other side has come and gone */
  }
  lvd_port_unlock(&lvd_program_here()->lock);
  return status;
}

/* The stream, if the caller has that end of it, however he has come to it; else null. */
static lvd_stream *own_for_certain(STREAM_ID sID, bool sender) {
  LVD_INSIDE;
  lvd_stream *s = own(sID, sender);
  entry *e = entry_of(sID);
  if (LVD_LIKELY(s) || !e) return s;
  void *me = lvd_stream_caller();
  lvd_port_lock(&lvd_program_here()->lock);
  s = is_side(e, me) ? lvd_load_relaxed_ptr(&e->stream) : NULL;
  if (s && !lvd_stream_has(s, me, sender)) s = NULL;
  if (s) lvd_store_relaxed_ptr(&e->user[sender], me);
  lvd_port_unlock(&lvd_program_here()->lock);
  return s;
}

lvd_status srpc_put(STREAM_ID sID, const void *element, size_t size) {
  lvd_stream *s = own(sID, true);
  if (LVD_UNLIKELY(!s)) {
    lvd_status status = take_end(sID, size, true, &s);
    if (status != LVD_OK) return status;
  }
  return lvd_stream_put(s, element, size);
}

lvd_status srpc_get(STREAM_ID sID, void *element, size_t size) {
  lvd_stream *s = own(sID, false);
  if (LVD_UNLIKELY(!s)) {
    lvd_status status = take_end(sID, size, false, &s);
    if (status != LVD_OK) return status;
  }
  return lvd_stream_get(s, element, size);
}

lvd_status stream_push(STREAM_ID sID) {
  lvd_stream *s = own_for_certain(sID, true);
  if (!s) return LVD_E_STATE;
  lvd_stream_push(s);
  return LVD_OK;
}

lvd_status stream_pop(STREAM_ID sID) {
  lvd_stream *s = own_for_certain(sID, false);
  if (!s) return LVD_E_STATE;
  lvd_stream_pop(s);
  return LVD_OK;
}

lvd_status stream_flush(STREAM_ID sID) {
  lvd_stream *s = own_for_certain(sID, true);
  if (!s) return LVD_E_STATE;
  lvd_stream_flush(s);
  return LVD_OK;
}

lvd_stream *stream_handle(STREAM_ID sID) {
  entry *e = entry_of(sID);
  return e ? lvd_load_acquire_ptr(&e->stream) : NULL;
}

/* ---- all of them ---------------------------------------------------------------------------- */

bool lvd_numbers_are_used(const lvd_unit *unit) {
  bool used = false;
  for (int i = 0; i < PB_STREAMS; i++) used |= numbers()[i].unit == unit;
  return used;
}

void lvd_numbers_free(void) {
  lvd_port_lock(&lvd_program_here()->lock);
  memset(lvd_program_here()->numbers, 0, sizeof(struct lvd_numbers));
  lvd_port_unlock(&lvd_program_here()->lock);
}

struct lvd_numbers *lvd_numbers_make(void) {
  return calloc(1, sizeof(struct lvd_numbers));
}
void lvd_numbers_drop(struct lvd_numbers *numbers) { free(numbers); }
