/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbered streams: a table of streams, each known to its two sides by its number. A side is the
 * fiber or thread that created it. The sides are hashed by that, so that a procedure that returns
 * finds its own. They are then forgotten, since the fiber's address may be reused. A number that
 * the caller has closed cannot be created again until the other side has closed it, too.
 *
 * A stream leads to at most one other process: if it has one side here when its first element
 * comes, it is opened with the process where the other side is expected; a side that comes here
 * later works as well. */
#include <stdio.h>
#include <stdlib.h>

#include "../core/text_buffer.h"
#include "../rpc/unit.h"
#include "../sched/no_abandon.h"
#include "../stream/stream.h"
#include "srpc_program.h"

enum { SIDE_LISTS_LOG2 = 6 };

/* One side: the fiber or thread that has created the number. */
typedef struct side {
  void *owner;       /* fiber or thread; null: none, or it has returned */
  lvd_fiber *fiber;  /* set if it is a fiber */
  bool gone;         /* it has closed the stream, or returned */
  struct side *next; /* in its list, while `owner` is set */
  struct entry *entry;
} side;

/* A number in use. */
typedef struct entry {
  lvd_aptr stream;  /* lvd_stream, created at the first element */
  lvd_aptr user[2]; /* the sides that own its receiving and its sending end */
  side side[2];
  uint32_t sides, left;
  lvd_unit *unit;    /* process where the other side may be */
  bool bound;        /* stream_with has set it */
  bool opening;      /* the stream is being opened with that process, without the lock */
  lvd_event *opened; /* set when that is done, for a caller that waits; or null */
  uint32_t capacity, threshold;
  int64_t timeout_ns;
  lvd_a32 claimed;   /* both sides are known: no wait can be for a side that never comes */
  uint64_t since_ns; /* when a side first waited for one that has not come, ns; 0: never */
  bool waits, sends; /* a side waits now; for room, else for elements */
  bool reported;     /* that was reported */
} entry;

/* Under the lock. */
struct lvd_numbers {
  entry number[PB_STREAMS];
  side *sides_of_all[1 << SIDE_LISTS_LOG2]; /* hashed by `owner` */
};
struct lvd_numbers lvd_numbers_of_process;

static entry *numbers(void) { return lvd_program_here()->numbers->number; }

/* ---- sides ----------------------------------------------------------------------------------- */

/* Returns null if there is no such number. */
static entry *entry_of(STREAM_ID sID) {
  return sID >= 0 && sID < PB_STREAMS ? &numbers()[sID] : NULL;
}

/* The hash list with all sides of `owner`. */
static side **sides_of(const void *owner) {
  uint64_t spread = (uint64_t)(uintptr_t)owner * 0x9e3779b97f4a7c15u;
  return &lvd_program_here()->numbers->sides_of_all[spread >> (64 - SIDE_LISTS_LOG2)];
}

static side *side_of(entry *e, const void *owner) {
  for (int i = 0; i < 2; i++)
    if (e->side[i].owner == owner) return &e->side[i];
  return NULL;
}

static bool is_side(entry *e, const void *owner) {
  const side *s = side_of(e, owner);
  return s && !s->gone;
}

static void enter_side(entry *e, void *owner) {
  if (!lvd_this_worker()) lvd_os_at_thread_exit(LVD_EXIT_HOOK_NUMBERS, lvd_numbers_leave, owner);
  side **list = sides_of(owner);
  side *s = &e->side[e->sides++];
  *s = (side){owner, lvd_fiber_self(), false, *list, e};
  *list = s;
}

static void forget_side(side *s) {
  if (!s->owner) return;
  side **at = sides_of(s->owner);
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  s->owner = NULL;
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

/* All sides of this process have left, and the other ends were theirs or the other process's. */
static bool is_over(const entry *e) {
  if (e->left == 2) return true;
  return e->left && e->left == e->sides && shared_of(e) && lvd_shared_is_taken(shared_of(e));
}

/* The process that a stream of this caller leads to. Under the lock. */
static lvd_unit *leads_to(void *me) {
  TASKID t = lvd_program_here()->tasks;
  while (t && t->self != me) t = t->next;
  return t && t->leads ? t->leads : lvd_program_last_unit();
}

/* The name that the two processes use for it. */
static void shared_name(const entry *e, char name[32]) {
  snprintf(name, 32, "number %d", (int)(e - numbers()));
}

/* Announces the users of the stream, for deadlock detection here and in the other process. Under
 * the lock. */
static void announce_users(const entry *e) {
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  lvd_user party[2] = {{0}};
  uint32_t parties = 0;
  char name[32];
  for (int i = 0; i < 2; i++)
    if (e->side[i].owner && !e->side[i].gone)
      party[parties++] = (lvd_user){e->side[i].owner, e->side[i].fiber};
  shared_name(e, name);
  if (s) lvd_stream_say_parties(s, party, parties);
  if (e->unit) lvd_unit_expect_stream(e->unit, name, party, s ? 0 : parties);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static const char *name_of_side(const side *s) {
  return s->fiber ? s->fiber->entity.name : "a thread";
}

/* " (it has created 1, 2)": what the caller may have meant. Under the lock. */
static void append_created(const void *me, char *text, size_t size) {
  text_buffer s = {text, size, 0};
  bool any = false;
  text[0] = 0;
  for (const side *its = *sides_of(me); its && s.length + 24 < size; its = its->next) {
    if (its->owner != me || its->gone) continue;
    text_append(&s, "%s%d", any ? ", " : " (it has created ", (int)(its->entry - numbers()));
    any = true;
  }
  if (any) text_append(&s, ")");
}

/* Text: why `me` may not use that end of `e`. Under the lock. */
static void describe_refusal(entry *e, const void *me, bool sender, char *text, size_t size) {
  const side *its = side_of(e, me);
  int number = (int)(e - numbers());
  char created[100];
  if (its && its->gone) {
    snprintf(text, size, "the caller has closed it");
  } else if (its) {
    const side *other = its == &e->side[0] ? &e->side[1] : &e->side[0];
    snprintf(text, size, "the %s end is %s's; one side of a stream puts, the other gets",
             sender ? "sending" : "receiving",
             other->owner ? name_of_side(other) : "the other side");
  } else if (e->sides == 2) {
    snprintf(text, size, "the caller is no side of it; its sides are %s and %s",
             e->side[0].owner ? name_of_side(&e->side[0]) : "one that has returned",
             e->side[1].owner ? name_of_side(&e->side[1]) : "one that has returned");
  } else {
    append_created(me, created, sizeof created);
    snprintf(text, size, "the caller has not created stream %d; stream_create(%d) comes first%s",
             number, number, created);
  }
}

static lvd_status no_number(const char *call, STREAM_ID sID) {
  char in[LVD_MISUSE_IN_BYTES];
  return lvd_misuse(LVD_E_ARGUMENT, "%s(%d)%s: streams have the numbers 0 to %d", call, sID,
                    lvd_misuse_in(in), PB_STREAMS - 1);
}

/* The caller does not own that end. */
static lvd_status not_its_own(const char *call, STREAM_ID sID, bool sender) {
  entry *e = entry_of(sID);
  char in[LVD_MISUSE_IN_BYTES], why[200];
  if (!e) return no_number(call, sID);
  lvd_os_lock(&lvd_program_here()->lock);
  describe_refusal(e, lvd_caller(), sender, why, sizeof why);
  lvd_os_unlock(&lvd_program_here()->lock);
  return lvd_misuse(LVD_E_STATE, "%s(%d)%s: %s", call, sID, lvd_misuse_in(in), why);
}

static lvd_status no_such_element(const char *call, STREAM_ID sID, size_t size) {
  char in[LVD_MISUSE_IN_BYTES];
  lvd_status status = LVD_E_ARGUMENT;
  entry *e = entry_of(sID);
  if (!e) return no_number(call, sID);
  lvd_os_lock(&lvd_program_here()->lock);
  const lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  uint32_t has = s ? s->producer.elem_size : 0;
  lvd_os_unlock(&lvd_program_here()->lock);
  lvd_misuse_in(in);
  if (!size || size > LVD_STREAM_ELEMENT)
    lvd_misuse(status, "%s(%d)%s: an element has 1 to %u bytes, not %zu", call, sID, in,
               LVD_STREAM_ELEMENT, size);
  else if (has)
    lvd_misuse(
        status,
        "%s(%d)%s: an element of %zu bytes; the elements of this stream have %u bytes, as the "
        "first that was put or got: both sides need one type",
        call, sID, in, size, has);
  else
    lvd_misuse(status,
               "%s(%d)%s: an element of %zu bytes; the other process has opened this stream for "
               "elements of another size: both sides need one type",
               call, sID, in, size);
  return status;
}

/* Reports a deadlock: the other side waits for something that waits for the caller. */
static lvd_status deadlocked(const char *call, STREAM_ID sID, bool sender) {
  entry *e = entry_of(sID);
  char in[LVD_MISUSE_IN_BYTES];
  lvd_misuse_in(in);
  lvd_os_lock(&lvd_program_here()->lock);
  const lvd_stream *s = sender || !e ? NULL : lvd_load_relaxed_ptr(&e->stream);
  uint32_t unpushed = s ? lvd_stream_unpushed(s) : 0;
  lvd_os_unlock(&lvd_program_here()->lock);
  if (unpushed)
    return lvd_misuse(LVD_E_DEADLOCK,
                      "%s(%d)%s: %u element%s put and not pushed, and the sender waits; "
                      "stream_push comes after stream_put",
                      call, sID, in, unpushed, unpushed == 1 ? " was" : "s were");
  return lvd_misuse(LVD_E_DEADLOCK, "%s(%d)%s: a deadlock, in which each waits for another", call,
                    sID, in);
}

/* Reports the status of put and get if it is a misuse. The end of the other side, a timeout and the
 * like are not. */
static lvd_status report(const char *call, STREAM_ID sID, size_t size, bool sender,
                         lvd_status status) {
  char in[LVD_MISUSE_IN_BYTES];
  if (status == LVD_E_STATE) return not_its_own(call, sID, sender);
  if (status == LVD_E_ARGUMENT) return no_such_element(call, sID, size);
  if (status == LVD_E_DEADLOCK) return deadlocked(call, sID, sender);
  if (status == LVD_E_LIMIT)
    return lvd_misuse(status, "%s(%d)%s: %.150s", call, sID, lvd_misuse_in(in),
                      lvd_status_text(status));
  return status;
}

/* ---- sides that do not come ------------------------------------------------------------------ */

/* A wait at a stream without a second side has no end, and may still be right: it is
 * reported once it has lasted UNCLAIMED_S seconds. One thread of the program watches, from the
 * first such wait. */
enum { UNCLAIMED_S = 2 };
#define UNCLAIMED_NS (UNCLAIMED_S * UINT64_C(1000000000))

enum { WATCH_LOOK = 1, WATCH_END = 2 };

/* In place of a time: there was a side here, perhaps of an earlier use. Time counts from when it
 * has left. */
enum { HAD_SIDE = 1 };

typedef struct watch {
  lvd_program_state *program;
  lvd_unit *unit; /* that is looked at */
  uint64_t now, next;
  uint32_t lines; /* reported without the lock, since the error output may block */
  char line[8][LVD_RECORD_INLINE_BYTES];
} watch;

/* Returns true if it is to be reported now; otherwise notes when it has to be looked at next. */
static bool is_due(watch *w, uint64_t since_ns) {
  uint64_t due = since_ns + UNCLAIMED_NS;
  if (due <= w->now && w->lines < sizeof w->line / sizeof *w->line) return true;
  if (due < w->next) w->next = due;
  return false;
}

/* Under the program's lock; the streams exist as long as the thread watches. */
static void check_local(watch *w, entry *e, int number) {
  const lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  const lvd_shared_stream *shared = s ? ((const stream *)s)->shared : NULL;
  if (shared && lvd_shared_is_theirs(shared, !e->sends)) {
    lvd_store_relaxed_u32(&e->claimed, 1);
    return;
  }
  if (!is_due(w, e->since_ns)) return;
  e->reported = true;
  const side *waits = e->side[0].owner ? &e->side[0] : &e->side[1];
  snprintf(w->line[w->lines++], sizeof *w->line,
           "stream %d: %s has waited %d s %s, and no other side has created the stream%s%s; "
           "does it have the same number there?",
           number, name_of_side(waits), UNCLAIMED_S, e->sends ? "for room" : "to get",
           e->unit ? " or used it in " : "", e->unit ? lvd_unit_name(e->unit) : "");
}

static void look_at_theirs(const char *name, uint64_t *since_ns, void *argument) {
  watch *w = argument;
  int number;
  if (!*since_ns || sscanf(name, "number %d", &number) != 1 || number < 0 || number >= PB_STREAMS)
    return;
  const entry *here = &w->program->numbers->number[number];
  if (here->sides > here->left) {
    *since_ns = HAD_SIDE;
    w->program->skipped = true;
    return;
  }
  if (*since_ns == HAD_SIDE) *since_ns = w->now;
  if (!is_due(w, *since_ns)) return;
  *since_ns = 0;
  snprintf(w->line[w->lines++], sizeof *w->line,
           "stream %d: %s has used it for %d s, and nothing here has created the stream; does "
           "it have the same number here?",
           number, lvd_unit_name(w->unit), UNCLAIMED_S);
}

static void check_all(watch *w) {
  lvd_program_state *p = w->program;
  w->now = lvd_os_now_ns();
  w->next = UINT64_MAX;
  lvd_os_lock(&p->lock);
  for (int i = 0; i < PB_STREAMS; i++)
    if (p->numbers->number[i].waits && !p->numbers->number[i].reported)
      check_local(w, &p->numbers->number[i], i);
  for (uint32_t i = 0; i < p->units; i++) {
    lvd_link *link = lvd_unit_link(w->unit = p->unit[i]);
    lvd_os_lock(&link->lock);
    lvd_shared_half_opens(link, look_at_theirs, w);
    lvd_os_unlock(&link->lock);
  }
  lvd_os_unlock(&p->lock);
  for (uint32_t i = 0; i < w->lines; i++) lvd_misuse_hint(p, w->line[i]);
  w->lines = 0;
}

static void watch_thread(void *program) {
  watch w = {.program = program};
  lvd_a32 *due = &w.program->watch_due;
  while (lvd_load_relaxed_u32(due) != WATCH_END) {
    uint32_t asked = WATCH_LOOK;
    lvd_cas_relaxed_u32(due, &asked, 0);
    check_all(&w);
    uint64_t now = lvd_os_now_ns();
    int64_t left = w.next == UINT64_MAX ? -1 : w.next > now ? (int64_t)(w.next - now) : 0;
    lvd_os_wait(due, 0, left);
  }
}

/* Under the lock. */
static void request_watch(lvd_program_state *p) {
  uint32_t rests = 0;
  if (p->unwatched) return;
  if (!p->watch) /* without a thread nothing is reported */
    lvd_os_thread_start(&p->watch, -1, "levada/streams", watch_thread, p);
  else if (lvd_cas_relaxed_u32(&p->watch_due, &rests, WATCH_LOOK))
    lvd_os_wake(&p->watch_due);
}

void lvd_numbers_look(lvd_link *link) {
  lvd_program_state *p = link->app->program ? link->app->program : &lvd_program_of_process;
  lvd_os_lock(&p->lock);
  request_watch(p);
  lvd_os_unlock(&p->lock);
}

void lvd_numbers_watch_ends(lvd_program_state *p) {
  lvd_os_lock(&p->lock);
  lvd_os_thread *thread = p->watch;
  p->watch = NULL;
  p->unwatched = true;
  lvd_store_relaxed_u32(&p->watch_due, WATCH_END);
  lvd_os_unlock(&p->lock);
  if (thread) {
    lvd_os_wake(&p->watch_due);
    lvd_os_thread_join(thread);
  }
  lvd_store_relaxed_u32(&p->watch_due, 0);
}

/* The caller, a side of it, is about to wait at that end. Returns true if it waits for a side that
 * has not come. */
static bool begin_wait(entry *e, bool sender) {
  if (LVD_LIKELY(lvd_load_relaxed_u32(&e->claimed))) return false;
  LVD_NO_ABANDON;
  lvd_program_state *p = lvd_program_here();
  lvd_os_lock(&p->lock);
  bool waits = !lvd_load_relaxed_u32(&e->claimed) && e->sides == 1;
  /* The parent knows whether it has created a stream of its child: so it watches that
   * (look_at_theirs). */
  waits &= !e->unit || e->unit != lvd_unit_parent();
  if (waits) {
    if (!e->since_ns) e->since_ns = lvd_os_now_ns();
    e->waits = true;
    e->sends = sender;
    request_watch(p);
  }
  lvd_os_unlock(&p->lock);
  return waits;
}

static void end_wait(entry *e) {
  LVD_NO_ABANDON;
  lvd_os_lock(&lvd_program_here()->lock);
  e->waits = false;
  lvd_os_unlock(&lvd_program_here()->lock);
}

/* All procedures have returned: elements in a stream that never had a second side are lost. */
void lvd_numbers_tell_unread(void) {
  lvd_program_state *p = lvd_program_here();
  for (int i = 0; i < PB_STREAMS; i++) {
    lvd_os_lock(&p->lock);
    const entry *e = &p->numbers->number[i];
    const stream *s = lvd_load_relaxed_ptr(&e->stream);
    bool alone = s && !s->shared && e->sides == 1;
    uint32_t left = alone ? lvd_load_relaxed_u32(&s->channel->tail) -
                                lvd_load_relaxed_u32(&s->channel->consumer[0].head)
                          : 0;
    lvd_os_unlock(&p->lock);
    if (left)
      lvd_misuse(LVD_E_PEER_GONE,
                 "stream %d: %u element%s put, and no other side has created the stream", i, left,
                 left == 1 ? " was" : "s were");
  }
}

/* ---- creating -------------------------------------------------------------------------------- */

/* Text: why the caller cannot create it. Under the lock. */
static void describe_no_side(entry *e, const void *me, char *text, size_t size) {
  const side *its = side_of(e, me);
  if (its && !its->gone)
    snprintf(text, size, "the caller has created it already");
  else if (its)
    snprintf(text, size, "the caller has closed it, and the other side has not yet");
  else
    snprintf(text, size, "two others have created it, %s and %s: a stream has two sides",
             e->side[0].owner ? name_of_side(&e->side[0]) : "one that has returned",
             e->side[1].owner ? name_of_side(&e->side[1]) : "one that has returned");
}

lvd_status stream_create(STREAM_ID sID) {
  LVD_NO_ABANDON;
  entry *e = entry_of(sID);
  char in[LVD_MISUSE_IN_BYTES], why[160];
  if (!e) return no_number("stream_create", sID);
  lvd_status status = pb_boot();
  if (status != LVD_OK) return status;
  void *me = lvd_caller();
  lvd_os_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  if (side_of(e, me) || e->sides == 2) {
    status = LVD_E_STATE;
    describe_no_side(e, me, why, sizeof why);
  } else {
    enter_side(e, me);
    e->since_ns = 0;
    e->waits = e->reported = false;
    lvd_store_relaxed_u32(&e->claimed, e->sides == 2);
  }
  if (status == LVD_OK && e->sides == 1 && !e->bound) e->unit = leads_to(me);
  if (status == LVD_OK) announce_users(e);
  lvd_os_unlock(&lvd_program_here()->lock);
  if (status == LVD_OK) return LVD_OK;
  return lvd_misuse(status, "stream_create(%d)%s: %s", sID, lvd_misuse_in(in), why);
}

/* The call must precede the first element. */
static lvd_status too_late(const char *call, STREAM_ID sID) {
  char in[LVD_MISUSE_IN_BYTES];
  return lvd_misuse(LVD_E_STATE, "%s(%d)%s: this comes before the first element is put or got",
                    call, sID, lvd_misuse_in(in));
}

lvd_status stream_with(STREAM_ID sID, TASKID tid) {
  LVD_NO_ABANDON;
  entry *e = entry_of(sID);
  if (!e) return no_number("stream_with", sID);
  if (!tid) return lvd_misuse(LVD_E_ARGUMENT, "stream_with(%d, NULL): there is no task", sID);
  lvd_os_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  bool released = tid->released, made = released || e->opening || lvd_load_relaxed_ptr(&e->stream);
  if (!made) {
    char name[32];
    shared_name(e, name);
    if (e->unit) lvd_unit_expect_stream(e->unit, name, NULL, 0);
    e->unit = tid->unit;
    e->bound = true;
    announce_users(e);
  }
  lvd_os_unlock(&lvd_program_here()->lock);
  if (released)
    return lvd_misuse(LVD_E_STATE, "stream_with(%d): the task %s was released before", sID,
                      tid->name);
  return made ? too_late("stream_with", sID) : LVD_OK;
}

lvd_status stream_configure(STREAM_ID sID, u32 capacity, u32 threshold) {
  LVD_NO_ABANDON;
  entry *e = entry_of(sID);
  if (!e) return no_number("stream_configure", sID);
  if (capacity > LVD_CHANNEL_CAPACITY || threshold > LVD_CHANNEL_CAPACITY)
    return lvd_misuse(LVD_E_ARGUMENT,
                      "stream_configure(%d, %u, %u): a capacity and a threshold are at most %u",
                      sID, capacity, threshold, LVD_CHANNEL_CAPACITY);
  lvd_os_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  if (!s) {
    e->capacity = capacity;
    e->threshold = threshold;
  }
  lvd_os_unlock(&lvd_program_here()->lock);
  return s ? too_late("stream_configure", sID) : LVD_OK;
}

lvd_status stream_set_timeout(STREAM_ID sID, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  entry *e = entry_of(sID);
  if (!e) return no_number("stream_set_timeout", sID);
  lvd_os_lock(&lvd_program_here()->lock);
  if (is_over(e)) reset(e);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  e->timeout_ns = timeout_ns < 0 ? 0 : timeout_ns ? timeout_ns : 1;
  if (s) s->timeout_ns = timeout_ns;
  lvd_os_unlock(&lvd_program_here()->lock);
  return LVD_OK;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Closes an end that this process has not taken and will not take. */
static void leave_unused(lvd_stream *s, bool sender) {
  if (sender)
    lvd_stream_close_sender(s, LVD_OK);
  else
    lvd_stream_close_receiver(s);
}

static void leave_side(side *its) {
  lvd_program_state *p = lvd_program_here();
  entry *e = its->entry;
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  /* A side that has put and got nothing closes the end that the other side has not taken. */
  if (s && !lvd_stream_close(s)) {
    leave_unused(s, true);
    leave_unused(s, false);
  }
  for (int i = 0; i < 2; i++)
    if (lvd_load_relaxed_ptr(&e->user[i]) == its->owner) lvd_store_relaxed_ptr(&e->user[i], NULL);
  e->left++;
  its->gone = true;
  announce_users(e);
  if (!s && e->sides == 1 && e->unit) {
    char name[32];
    shared_name(e, name);
    lvd_unit_leave_stream(e->unit, name);
    reset(e);
  } else if (is_over(e)) {
    reset(e);
  }
  if (p->skipped) {
    p->skipped = false;
    request_watch(p);
  }
}

void lvd_numbers_leave(void *owner) {
  LVD_NO_ABANDON;
  lvd_os_lock(&lvd_program_here()->lock);
  for (side *s = *sides_of(owner); s;) {
    if (s->owner != owner) {
      s = s->next;
      continue;
    }
    if (!s->gone) leave_side(s);
    forget_side(s);
    s = *sides_of(owner); /* other sides may have gone with it */
  }
  lvd_os_unlock(&lvd_program_here()->lock);
}

lvd_status stream_close(STREAM_ID sID) {
  LVD_NO_ABANDON;
  entry *e = entry_of(sID);
  if (!e) return no_number("stream_close", sID);
  void *me = lvd_caller();
  lvd_os_lock(&lvd_program_here()->lock);
  lvd_status status = is_side(e, me) ? LVD_OK : LVD_E_STATE;
  if (status == LVD_OK) leave_side(side_of(e, me));
  lvd_os_unlock(&lvd_program_here()->lock);
  return status == LVD_OK ? LVD_OK : not_its_own("stream_close", sID, false);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Opens it with the other process, without the lock, since that may take long; other callers wait
 * meanwhile. */
static lvd_status open_shared(entry *e, lvd_stream_options o, lvd_stream **out) {
  char name[32];
  shared_name(e, name);
  o.name = name;
  e->opening = true;
  lvd_os_unlock(&lvd_program_here()->lock);
  lvd_status status = lvd_stream_open(e->unit, &o, out);
  lvd_os_lock(&lvd_program_here()->lock);
  e->opening = false;
  if (e->opened) lvd_event_set(e->opened, 1); /* the waiter keeps the event until it has the lock */
  e->opened = NULL;
  return status;
}

/* Waits while the other side opens it: at most one caller waits. Under the lock, which is released
 * while it waits. */
static lvd_status await_opening(entry *e) {
  lvd_event opened;
  lvd_event_init(&opened);
  e->opened = &opened;
  lvd_os_unlock(&lvd_program_here()->lock);
  lvd_status status = lvd_event_wait(&opened, NULL, e->timeout_ns ? e->timeout_ns : -1);
  lvd_os_lock(&lvd_program_here()->lock);
  if (e->opened == &opened) e->opened = NULL;
  return status;
}

/* The stream, if the caller owns that end of it; null: not known. A caller that is no side does not
 * touch the stream, which may have been freed. */
static lvd_stream *own(STREAM_ID sID, bool sender) {
  entry *e = entry_of(sID);
  const void *me = lvd_caller();
  if (LVD_UNLIKELY(!e || lvd_load_relaxed_ptr(&e->user[sender]) != me)) return NULL;
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  return LVD_LIKELY(lvd_stream_has(s, me, sender)) ? s : NULL;
}

/* Under the lock. */
static lvd_status make_stream(entry *e, size_t size, lvd_stream **out) {
  char name[32];
  snprintf(name, sizeof name, "%d", (int)(e - numbers()));
  lvd_stream_options o = {.name = name,
                          .elem_size = (uint32_t)size,
                          .capacity = e->capacity,
                          .threshold = e->threshold,
                          .timeout_ns = e->timeout_ns};
  if (e->unit && e->sides == 1) return open_shared(e, o, out);
  return lvd_stream_create(lvd_program_here()->app, &o, out);
}

/* Gives the caller, which must be a side, that end of the stream, and creates the stream if there
 * is none. Under the lock, so that a leaving side knows which end the other one owns. */
static lvd_status take_end(STREAM_ID sID, size_t size, bool sender, lvd_stream **out) {
  LVD_NO_ABANDON;
  entry *e = entry_of(sID);
  if (!e || size > LVD_STREAM_ELEMENT) return LVD_E_ARGUMENT;
  void *me = lvd_caller();
  lvd_os_lock(&lvd_program_here()->lock);
  lvd_status status = is_side(e, me) ? LVD_OK : LVD_E_STATE;
  while (e->opening && status == LVD_OK) status = await_opening(e);
  *out = lvd_load_relaxed_ptr(&e->stream);
  bool is_new = status == LVD_OK && !*out;
  if (is_new) status = make_stream(e, size, out);
  if (status == LVD_OK && size != (*out)->producer.elem_size) status = LVD_E_ARGUMENT;
  if (status == LVD_OK) status = lvd_stream_take(*out, sender);
  if (status == LVD_OK) lvd_store_relaxed_ptr(&e->user[sender], me);
  if (is_new && *out) {
    lvd_store_release_ptr(&e->stream, *out);
    announce_users(e);
    if (e->left) leave_unused(*out, !sender); /* the other side has come and gone */
  }
  lvd_os_unlock(&lvd_program_here()->lock);
  return status;
}

/* The stream, if the caller owns that end of it in whatever way; else null. */
static lvd_stream *own_checked(STREAM_ID sID, bool sender) {
  LVD_NO_ABANDON;
  lvd_stream *s = own(sID, sender);
  entry *e = entry_of(sID);
  if (LVD_LIKELY(s) || !e) return s;
  void *me = lvd_caller();
  lvd_os_lock(&lvd_program_here()->lock);
  s = is_side(e, me) ? lvd_load_relaxed_ptr(&e->stream) : NULL;
  if (s && !lvd_stream_has(s, me, sender)) s = NULL;
  if (s) lvd_store_relaxed_ptr(&e->user[sender], me);
  lvd_os_unlock(&lvd_program_here()->lock);
  return s;
}

LVD_COLD static lvd_status put_slowly(lvd_stream *s, STREAM_ID sID, const void *element,
                                      size_t size) {
  lvd_status status = s ? LVD_OK : take_end(sID, size, true, &s);
  if (status == LVD_OK) {
    bool waits = size == s->producer.elem_size && begin_wait(entry_of(sID), true);
    status = lvd_stream_put(s, element, size);
    if (waits) end_wait(entry_of(sID));
  }
  return status == LVD_OK ? LVD_OK : report("stream_put", sID, size, true, status);
}

LVD_COLD static lvd_status get_slowly(lvd_stream *s, STREAM_ID sID, void *element, size_t size) {
  lvd_status status = s ? LVD_OK : take_end(sID, size, false, &s);
  if (status == LVD_OK) {
    bool waits = size == s->consumer.elem_size && begin_wait(entry_of(sID), false);
    status = lvd_stream_get(s, element, size);
    if (waits) end_wait(entry_of(sID));
  }
  return status == LVD_OK ? LVD_OK : report("stream_get", sID, size, false, status);
}

lvd_status srpc_put(STREAM_ID sID, const void *element, size_t size) {
  lvd_stream *s = own(sID, true);
  if (LVD_UNLIKELY(!s || size != s->producer.elem_size ||
                   (int64_t)(s->producer.limit - s->producer.put) < 1))
    return put_slowly(s, sID, element, size);
  return lvd_stream_put(s, element, size);
}

lvd_status srpc_get(STREAM_ID sID, void *element, size_t size) {
  lvd_stream *s = own(sID, false);
  if (LVD_UNLIKELY(!s || size != s->consumer.elem_size ||
                   (int64_t)(s->consumer.limit - s->consumer.got) < 1))
    return get_slowly(s, sID, element, size);
  return lvd_stream_get(s, element, size);
}

/* The caller does not own that end, or not yet: it may have had nothing to put. No misuse is
 * reported if one was before, since this follows from it. */
static lvd_status has_not_begun(const char *call, STREAM_ID sID, bool sender) {
  LVD_NO_ABANDON;
  entry *e = entry_of(sID);
  if (!e) {
    no_number(call, sID);
    return LVD_E_STATE;
  }
  const void *me = lvd_caller();
  lvd_os_lock(&lvd_program_here()->lock);
  const lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  bool may = is_side(e, me) && !(s && lvd_stream_has(s, me, !sender));
  lvd_os_unlock(&lvd_program_here()->lock);
  return may || lvd_misused() ? LVD_E_STATE : not_its_own(call, sID, sender);
}

lvd_status stream_push(STREAM_ID sID) {
  lvd_stream *s = own_checked(sID, true);
  if (!s) return has_not_begun("stream_push", sID, true);
  lvd_stream_push(s);
  return LVD_OK;
}

lvd_status stream_pop(STREAM_ID sID) {
  lvd_stream *s = own_checked(sID, false);
  if (!s) return has_not_begun("stream_pop", sID, false);
  lvd_stream_pop(s);
  return LVD_OK;
}

lvd_status stream_flush(STREAM_ID sID) {
  lvd_stream *s = own_checked(sID, true);
  if (!s) return has_not_begun("stream_flush", sID, true);
  lvd_stream_flush(s);
  return LVD_OK;
}

lvd_stream *stream_handle(STREAM_ID sID) {
  entry *e = entry_of(sID);
  return e ? lvd_load_acquire_ptr(&e->stream) : NULL;
}

/* ---- all streams ----------------------------------------------------------------------------- */

bool lvd_numbers_are_used(const lvd_unit *unit) {
  bool used = false;
  for (int i = 0; i < PB_STREAMS; i++) used |= numbers()[i].unit == unit;
  return used;
}

void lvd_numbers_free(void) {
  lvd_os_lock(&lvd_program_here()->lock);
  memset(lvd_program_here()->numbers, 0, sizeof(struct lvd_numbers));
  lvd_os_unlock(&lvd_program_here()->lock);
}

struct lvd_numbers *lvd_numbers_make(void) {
  return calloc(1, sizeof(struct lvd_numbers));
}
void lvd_numbers_drop(struct lvd_numbers *numbers) { free(numbers); }
