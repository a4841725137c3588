/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's API, by programs that check the statuses: lists element by element and gathered
 * ("Streaming RPC", SiPS 2008, section 2.3), and errors. The patterns are in
 * test_srpc_printed.c. */
#include <levada/srpc.h>

#include <sched.h>

#include "../support/test.h"
#include "platform/platform.h"

enum { M = 1000 };

/* ---- section 2.3: one by one, and gathered --------------------------------------------------- */

static bool gathered;
static u32 list[M], there[M];

static void send_list(void *p) {
  (void)p;
  STREAM_ID sID = 7;
  stream_create(sID);
  int m = M;
  for (int i = 0; i < m; i++) {
    stream_put(sID, list[i]);
    if (!gathered) stream_push(sID);
  }
  if (gathered) stream_push(sID);
}

static void receive_list(void) {
  STREAM_ID sID = 7;
  stream_create(sID);
  int m = M;
  for (int i = 0; i < m; i++) {
    stream_get(sID, there[i]);
    if (!gathered) stream_pop(sID);
  }
  if (gathered) stream_pop(sID);
}

void test_srpc_lists(void) {
  for (u32 i = 0; i < M; i++) list[i] = i * i;
  static const u32 capacity[] = {0, 1, 16, M}, threshold[] = {0, 1, 64, 5000};
  for (int g = 0; g < 2; g++)
    for (int c = 0; c < 4; c++)
      for (int t = 0; t < 4; t++) {
        gathered = g != 0;
        memset(there, 0, sizeof there);
        CHECK_EQ(pb_boot(), LVD_OK);
        CHECK_EQ(stream_configure(7, capacity[c], threshold[t]), LVD_OK);
        CHECK(stream_rpc(receive_list, send_list) != NULL);
        CHECK_EQ(pb_finish(), LVD_OK);
        CHECK(memcmp(list, there, sizeof list) == 0);
      }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void twice_by_one_side(void) {
  u32 a = 0;
  u64 wide = 0;
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(stream_create(3), LVD_E_STATE);
  CHECK_EQ(stream_create(PB_STREAMS), LVD_E_ARGUMENT);
  CHECK_EQ(stream_put(4, a), LVD_E_STATE); /* not created */
  CHECK_EQ(stream_put(3, a), LVD_OK);
  CHECK_EQ(stream_put(3, wide), LVD_E_ARGUMENT);
  CHECK_EQ(stream_set_timeout(3, 1000000), LVD_OK);
  while (stream_put(3, a) == LVD_OK) {
  }
  CHECK_EQ(stream_put(3, a), LVD_E_TIMEOUT);
}
PB_PROCEDURE(twice_by_one_side)

static lvd_a32 waited_without_result;

static void waits_for_signal(void) {
  u32 data = 0;
  CHECK_EQ(pb_wait_signal(&data, 1000), LVD_E_TIMEOUT);
  lvd_store_release_u32(&waited_without_result, 1);
  CHECK_EQ(pb_wait_signal(&data, -1), LVD_OK);
  CHECK_EQ(data, 42);
}
PB_PROCEDURE(waits_for_signal)

/* Each waits for the other to begin. */
static void one_of_two(STREAM_ID from, STREAM_ID to) {
  u32 a = 0;
  stream_create(from);
  stream_create(to);
  if (stream_get(from, a) == LVD_OK) stream_put(to, a);
}
static void first_of_two(void) { one_of_two(20, 21); }
static void second_of_two(void) { one_of_two(21, 20); }
PB_PROCEDURE(first_of_two)
PB_PROCEDURE(second_of_two)

void test_srpc_statuses(void) {
  pb_set_diagnostics(false);
  CHECK(pb_create("unregistered", 0) == NULL);
  TASKID t = pb_create("twice_by_one_side", 0), s = pb_create("waits_for_signal", 0);
  CHECK_EQ(pb_wait(t), LVD_E_STATE);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK_EQ(pb_rpc(s), LVD_OK);
  CHECK_EQ(pb_wait_signal(NULL, 0), LVD_E_STATE); /* the caller is no procedure */
  while (!lvd_load_acquire_u32(&waited_without_result)) lvd_fiber_sleep(100000);
  CHECK_EQ(pb_signal(s, 42), LVD_OK);
  CHECK_EQ(pb_wait(s), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_E_STATE);
}

void test_srpc_deadlock(void) {
  pb_set_diagnostics(false);
  TASKID t[2] = {pb_create("first_of_two", 0), pb_create("second_of_two", 0)};
  for (int i = 0; i < 2; i++) CHECK_EQ(pb_rpc(t[i]), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
  CHECK(strstr(pb_error_text(), "first_of_two waits for 1 of the stream 20"));
  CHECK(strstr(pb_error_text(), "second_of_two waits for 1 of the stream 21"));
}

/* The two have created the streams, and taken no sending end; the program waits for one of them. */
void test_srpc_deadlock_while_waiting(void) {
  pb_set_diagnostics(false);
  TASKID t[2] = {pb_create("first_of_two", 0), pb_create("second_of_two", 0)};
  for (int i = 0; i < 2; i++) CHECK_EQ(pb_rpc(t[i]), LVD_OK);
  CHECK_EQ(pb_wait(t[0]), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
  CHECK(strstr(pb_error_text(), "in a cycle"));
  CHECK(strstr(pb_error_text(), "and its other end has no owner; first_of_two has to fill it"));
}

/* The transmitter waits for an answer first. */
static void asks_first(void *unused) {
  (void)unused;
  one_of_two(21, 20);
}

void test_srpc_deadlock_of_transmitter(void) {
  pb_set_diagnostics(false);
  TASKID t = pb_create("first_of_two", 0);
  CHECK(stream_rpc(t, asks_first) == t);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
  CHECK(strstr(pb_error_text(), "transmitter waits for 1 of the stream 21"));
}

static void does_nothing(void) {}
PB_PROCEDURE(does_nothing)
static void sends_nothing(void *unused) { (void)unused; }

/* Use of a task after its release is reported. */
void test_srpc_released(void) {
  pb_set_diagnostics(false);
  TASKID t = pb_create("does_nothing", 0);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_release(t), LVD_OK);
  for (int i = 0; i < 3; i++) {
    CHECK_EQ(pb_release(t), LVD_E_STATE);
    CHECK_EQ(pb_rpc(t), LVD_E_STATE);
    CHECK_EQ(pb_wait(t), LVD_E_STATE);
    CHECK_EQ(pb_cancel(t), LVD_E_STATE);
    CHECK_EQ(pb_signal(t, 1), LVD_E_STATE);
    CHECK_EQ(pb_task_error_text(t, NULL, 0), 0);
    CHECK_EQ(stream_with(9, t), LVD_E_STATE);
    CHECK(stream_rpc(t, sends_nothing) == NULL);
    CHECK_EQ(pb_status(), LVD_E_STATE);
  }
  TASKID u = stream_rpc(does_nothing, sends_nothing);
  CHECK_EQ(pb_wait(u), LVD_OK);
  CHECK_EQ(pb_release(u), LVD_OK);
  CHECK_EQ(pb_release(u), LVD_E_STATE);
  /* The memory of released tasks is reused. */
  for (int i = 0; i < 5000; i++) {
    CHECK_EQ(pb_rpc(t = pb_create("does_nothing", 0)), LVD_OK);
    CHECK_EQ(pb_release(t), LVD_OK);
  }
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* ---- order ----------------------------------------------------------------------------------- */

enum { RANKS = 8, EACH = 4 };
static lvd_a32 gates, may_go;
static struct {
  lvd_a32 count;
  int prio[RANKS * EACH];
} order_of[64];

static void gate(void) {
  lvd_add_relaxed_u32(&gates, 1);
  while (!lvd_load_acquire_u32(&may_go)) lvd_os_relax();
}
PB_PROCEDURE(gate)

static void note_rank(int prio) {
  int core = sched_getcpu();
  CHECK(core >= 0 && core < 64);
  uint32_t at = lvd_add_relaxed_u32(&order_of[core].count, 1);
  order_of[core].prio[at] = prio;
}
#define RANK(name, prio)                                                                           \
  static void name(void) { note_rank(prio); }                                                      \
  PB_PROCEDURE(name)
RANK(rank0, -4)
RANK(rank1, -3)
RANK(rank2, -2)
RANK(rank3, -1)
RANK(rank4, 0)
RANK(rank5, 1)
RANK(rank6, 2)
RANK(rank7, 3)

/* A gate occupies each core while the tasks arrive, lowest priority first; it also shows that the
 * cores get tasks in turn. */
void test_srpc_priorities(void) {
  if (lvd_os_usable_cpus((int[64]){0}, 64) > 64) SKIP("more cores than this test has places for");
  CHECK_EQ(pb_boot(), LVD_OK);
  uint32_t cores = lvd_os_usable_cpus((int[64]){0}, 64), quota = lvd_os_cpu_quota(NULL), all = 0;
  if (quota && quota < cores) cores = quota;
  for (uint32_t i = 0; i < cores; i++) CHECK_EQ(pb_rpc(pb_create("gate", 3)), LVD_OK);
  while (lvd_load_acquire_u32(&gates) < cores) lvd_fiber_sleep(100000);
  for (int rank = 0; rank < RANKS; rank++)
    for (int i = 0; i < EACH; i++) {
      char name[8];
      snprintf(name, sizeof name, "rank%d", rank);
      CHECK_EQ(pb_rpc(pb_create(name, rank - 4)), LVD_OK);
    }
  lvd_fiber_sleep(200000000); /* the tasks just started reach their cores */
  lvd_store_release_u32(&may_go, 1);
  CHECK_EQ(pb_finish(), LVD_OK);
  for (int core = 0; core < 64; core++) {
    uint32_t n = lvd_load_acquire_u32(&order_of[core].count);
    all += n;
    for (uint32_t i = 1; i < n; i++) CHECK(order_of[core].prio[i] <= order_of[core].prio[i - 1]);
  }
  CHECK_EQ(all, RANKS * EACH);
}

/* ---- closing and returning ------------------------------------------------------------------- */

enum { PLAIN = 3, LATE = 5 };

static u32 received;

/* Closes before it returns: it leaves once. */
static void sends_and_closes(void *unused) {
  (void)unused;
  CHECK_EQ(stream_create(PLAIN), LVD_OK);
  for (u32 i = 0; i < M; i++) {
    CHECK_EQ(stream_put(PLAIN, i), LVD_OK);
    CHECK_EQ(stream_push(PLAIN), LVD_OK);
  }
  CHECK_EQ(stream_close(PLAIN), LVD_OK);
  CHECK_EQ(stream_close(PLAIN), LVD_E_STATE);
}

static void receives_slowly(void) {
  u32 a = 0;
  lvd_status status;
  CHECK_EQ(stream_create(PLAIN), LVD_OK);
  while ((status = stream_get(PLAIN, a)) == LVD_OK) {
    CHECK_EQ(a, received++);
    stream_pop(PLAIN);
    if (received % 50 == 1) lvd_fiber_sleep(200000);
  }
  CHECK_EQ(status, LVD_E_EOF);
}
PB_PROCEDURE(receives_slowly)

void test_srpc_close(void) {
  pb_set_diagnostics(false);
  TASKID t = pb_create("receives_slowly", 0);
  for (int round = 0; round < 3; round++) {
    received = 0;
    CHECK(stream_rpc(t, sends_and_closes) == t);
    CHECK_EQ(pb_wait(t), LVD_OK);
    CHECK_EQ(received, M);
  }
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* It has closed, and the other side is still to come: the number is not free. */
static void closes_and_creates(void) {
  u32 a = 17;
  CHECK_EQ(stream_create(LATE), LVD_OK);
  CHECK_EQ(stream_put(LATE, a), LVD_OK);
  CHECK_EQ(stream_close(LATE), LVD_OK);
  CHECK_EQ(stream_close(LATE), LVD_E_STATE);
  CHECK_EQ(stream_put(LATE, a), LVD_E_STATE);
  CHECK_EQ(stream_create(LATE), LVD_E_STATE);
}
PB_PROCEDURE(closes_and_creates)

void test_srpc_close_and_create(void) {
  pb_set_diagnostics(false);
  TASKID t = pb_create("closes_and_creates", 0);
  for (int round = 0; round < 3; round++) {
    u32 a = 0;
    CHECK_EQ(pb_rpc(t), LVD_OK);
    CHECK_EQ(pb_wait(t), LVD_OK);
    CHECK_EQ(stream_create(LATE), LVD_OK);
    CHECK_EQ(stream_get(LATE, a), LVD_OK);
    CHECK_EQ(a, 17);
    CHECK_EQ(stream_get(LATE, a), LVD_E_EOF);
    CHECK_EQ(stream_close(LATE), LVD_OK);
    CHECK_EQ(stream_close(LATE), LVD_E_STATE);
  }
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* The receiver starts after the sender has returned, and may reuse its fiber. */
static void sends_to_late(void) {
  CHECK_EQ(stream_create(LATE), LVD_OK);
  for (u32 i = 0; i < 10; i++) stream_put(LATE, i);
}
static void comes_late(void) {
  u32 a = 0;
  CHECK_EQ(stream_create(LATE), LVD_OK);
  for (u32 i = 0; i < 10; i++) {
    CHECK_EQ(stream_get(LATE, a), LVD_OK);
    CHECK_EQ(a, i);
  }
  CHECK_EQ(stream_get(LATE, a), LVD_E_EOF);
}
PB_PROCEDURE(sends_to_late)
PB_PROCEDURE(comes_late)

void test_srpc_receiver_after_sender(void) {
  /* The cores get tasks in turn: covers all pairs of them. */
  TASKID to[4], from[4];
  CHECK_EQ(pb_boot(), LVD_OK);
  for (int i = 0; i < 4; i++) to[i] = pb_create("sends_to_late", 0);
  for (int i = 0; i < 4; i++) from[i] = pb_create("comes_late", 0);
  for (int i = 0; i < 16; i++) {
    CHECK_EQ(pb_rpc(to[i / 4]), LVD_OK);
    CHECK_EQ(pb_wait(to[i / 4]), LVD_OK);
    CHECK_EQ(pb_rpc(from[i % 4]), LVD_OK);
    CHECK_EQ(pb_wait(from[i % 4]), LVD_OK);
  }
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* ---- waits that end before what they wait for ------------------------------------------------ */

static TASKID awaited;
static lvd_a32 waiting, may_end;
static bool releases;

static void ends_when_told(void) {
  while (!lvd_load_acquire_u32(&may_end)) lvd_fiber_sleep(1000000);
}

/* It is cancelled while it waits. */
static void waits_for_another(void) {
  lvd_store_release_u32(&waiting, 1);
  CHECK_EQ(releases ? pb_release(awaited) : pb_wait(awaited), LVD_E_CANCELLED);
  CHECK_EQ(pb_rpc(awaited), LVD_E_STATE); /* it runs */
}
PB_PROCEDURE(ends_when_told)
PB_PROCEDURE(waits_for_another)

void test_srpc_cancelled_wait(void) {
  pb_set_diagnostics(false);
  awaited = pb_create("ends_when_told", 0);
  TASKID t = pb_create("waits_for_another", 0);
  for (int i = 0; i < 2; i++) {
    releases = i == 1;
    lvd_store_release_u32(&waiting, 0);
    lvd_store_release_u32(&may_end, 0);
    CHECK_EQ(pb_rpc(awaited), LVD_OK);
    CHECK_EQ(pb_rpc(t), LVD_OK);
    while (!lvd_load_acquire_u32(&waiting)) lvd_fiber_sleep(100000);
    lvd_fiber_sleep(5000000);
    if (!releases) CHECK_EQ(pb_wait(awaited), LVD_E_STATE); /* another waits already */
    CHECK_EQ(pb_cancel(t), LVD_OK);
    CHECK_EQ(pb_wait(t), LVD_OK);
    lvd_store_release_u32(&may_end, 1);
    CHECK_EQ(pb_wait(awaited), LVD_OK);
    CHECK_EQ(pb_cancel(awaited), LVD_E_STATE);
  }
  CHECK_EQ(pb_release(awaited), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
}

static void sleeps_briefly(void) { lvd_fiber_sleep(100000); }
PB_PROCEDURE(sleeps_briefly)

static void cancels_always(void *unused) {
  (void)unused;
  while (!lvd_load_acquire_u32(&may_end)) {
    lvd_status status = pb_cancel(awaited);
    CHECK(status == LVD_OK || status == LVD_E_STATE);
    lvd_fiber_sleep(10000);
  }
}

/* ---- timeouts -------------------------------------------------------------------------------- */

void test_srpc_time_limits(void) {
  pb_set_diagnostics(false);
  lvd_store_release_u32(&may_end, 0);
  awaited = pb_create("ends_when_told", 0);
  CHECK_EQ(pb_wait_timeout(awaited, 1000), LVD_E_STATE); /* not started */
  CHECK_EQ(pb_rpc(awaited), LVD_OK);
  CHECK_EQ(pb_wait_timeout(awaited, 1000000), LVD_E_TIMEOUT);
  CHECK_EQ(pb_wait_timeout(awaited, 0), LVD_E_TIMEOUT);
  pb_set_timeout(1000000);
  CHECK_EQ(pb_wait(awaited), LVD_E_TIMEOUT);
  CHECK_EQ(pb_release(awaited), LVD_E_TIMEOUT);
  CHECK_EQ(pb_finish(), LVD_E_TIMEOUT);
  CHECK_EQ(pb_finish(), LVD_E_TIMEOUT);
  pb_set_timeout(-1);
  lvd_store_release_u32(&may_end, 1);
  CHECK_EQ(pb_wait_timeout(awaited, 300000000000), LVD_OK);
  CHECK_EQ(pb_release(awaited), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* ---- both start, or neither ------------------------------------------------------------------ */

static lvd_a32 transmitted;

static void counts(void *unused) {
  (void)unused;
  lvd_add_relaxed_u32(&transmitted, 1);
}

void test_srpc_starts_both(void) {
  pb_set_diagnostics(false);
  lvd_store_release_u32(&may_end, 0);
  TASKID t = pb_create("ends_when_told", 0);
  CHECK(pb_create("unregistered", 0) == NULL);
  CHECK_EQ(pb_status(), LVD_E_NOT_FOUND);
  CHECK(pb_create(NULL, 0) == NULL);
  CHECK_EQ(pb_status(), LVD_E_ARGUMENT);
  CHECK(pb_create_in(1, "ends_when_told", 0) == NULL);
  CHECK_EQ(pb_status(), LVD_E_PEER_GONE);
  CHECK(stream_rpc(t, counts) == t);
  /* It runs already: so its second transmitter must not start. */
  for (int i = 0; i < 100; i++) {
    CHECK(stream_rpc(t, counts) == NULL);
    CHECK_EQ(pb_status(), LVD_E_STATE);
  }
  CHECK(srpc_rpc_function(NULL, (void *)counts) == NULL);
  CHECK_EQ(pb_status(), LVD_E_ARGUMENT);
  lvd_store_release_u32(&may_end, 1);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK(stream_rpc(t, counts) == t);
  CHECK_EQ(pb_finish(), LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&transmitted), 2);
}

/* ---- sides that leave without an element, and callers that are no side
 * --------------------------- */

static void comes_and_goes(void) { CHECK_EQ(stream_create(LATE), LVD_OK); }
PB_PROCEDURE(comes_and_goes)

void test_srpc_receiver_gone(void) {
  TASKID t = pb_create("comes_and_goes", 0);
  u32 a = 1;
  CHECK_EQ(stream_create(LATE), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  for (int i = 0; i < 3; i++) CHECK_EQ(stream_put(LATE, a), LVD_E_PEER_GONE);
  CHECK_EQ(stream_close(LATE), LVD_OK);

  CHECK_EQ(stream_create(LATE), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  for (int i = 0; i < 3; i++) CHECK_EQ(stream_get(LATE, a), LVD_E_EOF);
  CHECK_EQ(stream_close(LATE), LVD_OK);

  /* It comes after the first element; there is room for three more. */
  CHECK_EQ(stream_create(LATE), LVD_OK);
  CHECK_EQ(stream_configure(LATE, 4, 1), LVD_OK);
  CHECK_EQ(stream_put(LATE, a), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  lvd_status status = LVD_OK;
  for (int i = 0; i < 4 && status == LVD_OK; i++) status = stream_put(LATE, a);
  CHECK_EQ(status, LVD_E_PEER_GONE);
  for (int i = 0; i < 3; i++) CHECK_EQ(stream_put(LATE, a), LVD_E_PEER_GONE);
  CHECK_EQ(pb_finish(), LVD_OK);
}

static void is_no_side(void) {
  u32 a = 99;
  CHECK_EQ(stream_create(PLAIN), LVD_E_STATE);
  CHECK_EQ(stream_put(PLAIN, a), LVD_E_STATE);
  CHECK_EQ(stream_push(PLAIN), LVD_E_STATE);
  CHECK_EQ(stream_flush(PLAIN), LVD_E_STATE);
  CHECK_EQ(stream_get(PLAIN, a), LVD_E_STATE);
  CHECK_EQ(stream_pop(PLAIN), LVD_E_STATE);
  CHECK_EQ(stream_close(PLAIN), LVD_E_STATE);
}

static void receives_among_others(void) {
  u32 a = 0;
  TASKID t = pb_create("is_no_side", 0);
  CHECK_EQ(stream_create(PLAIN), LVD_OK);
  CHECK_EQ(stream_get(PLAIN, a), LVD_OK);
  CHECK_EQ(a, 1);
  CHECK_EQ(stream_put(PLAIN, a), LVD_E_STATE); /* the other end is the sender's */
  CHECK_EQ(stream_push(PLAIN), LVD_E_STATE);
  CHECK_EQ(stream_pop(PLAIN), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK_EQ(stream_get(PLAIN, a), LVD_OK);
  CHECK_EQ(a, 2);
  CHECK_EQ(stream_pop(PLAIN), LVD_OK);
  CHECK_EQ(stream_get(PLAIN, a), LVD_E_EOF);
}
PB_PROCEDURE(is_no_side)
PB_PROCEDURE(receives_among_others)

void test_srpc_third_party(void) {
  pb_set_diagnostics(false);
  TASKID t = pb_create("receives_among_others", 0);
  u32 one = 1, two = 2;
  CHECK_EQ(stream_create(PLAIN), LVD_OK);
  CHECK_EQ(stream_put(PLAIN, one), LVD_OK);
  CHECK_EQ(stream_put(PLAIN, two), LVD_OK);
  CHECK_EQ(stream_push(PLAIN), LVD_OK);
  CHECK_EQ(stream_pop(PLAIN), LVD_E_STATE);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  lvd_fiber_sleep(20000000); /* no end comes, however long it waits */
  CHECK_EQ(stream_flush(PLAIN), LVD_OK);
  CHECK_EQ(stream_close(PLAIN), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* ---- invalid streams ------------------------------------------------------------------------- */

void test_srpc_refuses(void) {
  pb_set_diagnostics(false);
  static unsigned char huge[LVD_STREAM_ELEMENT + 1];
  static const STREAM_ID none[] = {-1, PB_STREAMS, INT32_MAX, INT32_MIN};
  u32 x = 0;
  TASKID t = pb_create("sleeps_briefly", 0);
  for (size_t i = 0; i < COUNT(none); i++) {
    CHECK_EQ(stream_create(none[i]), LVD_E_ARGUMENT);
    CHECK_EQ(stream_with(none[i], t), LVD_E_ARGUMENT);
    CHECK_EQ(stream_configure(none[i], 1, 1), LVD_E_ARGUMENT);
    CHECK_EQ(stream_set_timeout(none[i], 1), LVD_E_ARGUMENT);
    CHECK_EQ(stream_close(none[i]), LVD_E_ARGUMENT);
    CHECK_EQ(stream_put(none[i], x), LVD_E_ARGUMENT);
    CHECK_EQ(stream_get(none[i], x), LVD_E_ARGUMENT);
    CHECK_EQ(stream_push(none[i]), LVD_E_STATE);
    CHECK_EQ(stream_pop(none[i]), LVD_E_STATE);
    CHECK_EQ(stream_flush(none[i]), LVD_E_STATE);
    CHECK(stream_handle(none[i]) == NULL);
  }
  CHECK_EQ(stream_with(3, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(srpc_put(3, &x, 0), LVD_E_ARGUMENT);
  CHECK_EQ(srpc_put(3, huge, sizeof huge), LVD_E_ARGUMENT);
  CHECK_EQ(srpc_get(3, huge, (size_t)1 << 32 | 4), LVD_E_ARGUMENT);
  CHECK_EQ(stream_configure(3, LVD_CHANNEL_CAPACITY + 1, 0), LVD_E_ARGUMENT);
  CHECK_EQ(stream_configure(3, UINT32_MAX, 0), LVD_E_ARGUMENT);
  CHECK_EQ(stream_configure(3, 0, UINT32_MAX), LVD_E_ARGUMENT);
  CHECK_EQ(stream_configure(3, LVD_CHANNEL_CAPACITY, 1), LVD_OK);
  CHECK_EQ(stream_put(3, x), LVD_E_LIMIT); /* 4 GiB */
  CHECK_EQ(stream_configure(3, 16, LVD_CHANNEL_CAPACITY), LVD_OK);
  CHECK_EQ(stream_put(3, x), LVD_OK);
  CHECK_EQ(stream_configure(3, 16, 1), LVD_E_STATE);
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* One thread cancels what another starts and waits for. */
void test_srpc_cancelled_by_another(void) {
  lvd_os_thread *thread;
  lvd_store_release_u32(&may_end, 0);
  awaited = pb_create("sleeps_briefly", 0);
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "cancels", cancels_always, NULL), LVD_OK);
  for (int i = 0; i < SCALED(4000); i++) {
    CHECK_EQ(pb_rpc(awaited), LVD_OK);
    CHECK_EQ(pb_wait(awaited), LVD_OK);
  }
  lvd_store_release_u32(&may_end, 1);
  lvd_os_thread_join(thread);
  CHECK_EQ(pb_finish(), LVD_OK);
}
