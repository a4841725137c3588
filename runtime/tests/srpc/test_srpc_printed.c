/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's three patterns ("Streaming RPC", SiPS 2008, section 3) as printed, except for errors
 * of the scan and for what the listings omit ("for (i)", "Computation"). None of them checks a
 * status; the pipe runs without end, and ends when its source does. (It puts to rID, where the
 * listing, which has created that stream for it, says sID.) */
#define SRPC_AS_PRINTED
#include <levada/fork.h>
#include <levada/srpc.h>

#define sink test_sink /* the listing has a procedure of that name */
#include "../support/test.h"
#undef sink

enum { M = 1000 };

static u32 io[M];
static u32 ios;
static void iowrite32(u32 a, u32 *io_addr) { io_addr[ios++] = a; }

/* ---- section 3.1, the source; section 3.2, the sink ------------------------------------------ */

static void transmitter(void *p) {
  (void)p;
  STREAM_ID sID = 0;
  stream_create(sID);
  int a[M];
  /* Computation, setting data source */
  for (int i = 0; i < M; i++) a[i] = 3 * i;
  for (int i = 0; i < M; i++) {
    stream_put(sID, a[i]);
    stream_push(sID);
  }
}

static void sink(void) {
  STREAM_ID rID = 0;
  u32 a;
  stream_create(rID);
  for (int i = 0; i < M; i++) {
    stream_get(rID, a);
    stream_pop(rID);
    iowrite32(a, io);
  }
}

static void source(void) {
  stream_rpc(sink, transmitter);
  /* Computation */
}

void test_srpc_source_and_sink(void) {
  for (int round = 0; round < 3; round++) {
    ios = 0;
    CHECK_EQ(pb_load("levada_tests"), LVD_OK);
    CHECK_EQ(pb_boot(), LVD_OK);
    source();
    CHECK_EQ(pb_finish(), LVD_OK);
    CHECK_EQ(ios, M);
    for (u32 i = 0; i < M; i++) CHECK_EQ(io[i], 3 * i);
  }
}

/* ---- section 3.3, the pipe ------------------------------------------------------------------- */

static void pipe(void) {
  STREAM_ID sID = 0;
  STREAM_ID rID = 1;
  stream_create(sID);
  stream_create(rID);
  u32 a;
  while (true) {
    stream_get(sID, a);
    stream_pop(sID);
    a = a + 1; /* Compute a */
    stream_put(rID, a);
    stream_push(rID);
  }
}
PB_PROCEDURE(pipe)

static void sink_of_pipe(void) {
  STREAM_ID rID = 1;
  u32 a;
  stream_create(rID);
  while (true) {
    stream_get(rID, a);
    stream_pop(rID);
    iowrite32(a, io);
  }
}
PB_PROCEDURE(sink_of_pipe)

void test_srpc_pipe(void) {
  pb_set_diagnostics(false);
  for (int round = 0; round < 3; round++) {
    ios = 0;
    CHECK_EQ(pb_boot(), LVD_OK);
    TASKID piped = pb_create("pipe", 0), sunk = pb_create("sink_of_pipe", 1);
    CHECK(piped && sunk);
    CHECK_EQ(pb_rpc(sunk), LVD_OK);
    CHECK(stream_rpc(piped, transmitter) == piped);
    CHECK_EQ(pb_rpc(piped), LVD_E_STATE); /* it runs */
    CHECK_EQ(pb_wait(sunk), LVD_OK);
    CHECK_EQ(pb_wait(piped), LVD_OK);
    CHECK_EQ(pb_wait(piped), LVD_E_STATE);
    CHECK_EQ(ios, M);
    for (u32 i = 0; i < M; i++) CHECK_EQ(io[i], 3 * i + 1);
    CHECK_EQ(pb_release(piped), LVD_OK);
    CHECK_EQ(pb_finish(), LVD_OK);
  }
}

/* A sink that takes a hundred and leaves: the pipe and the source end, too. */
static void takes_some(void) {
  STREAM_ID rID = 1;
  u32 a;
  stream_create(rID);
  stream_configure(rID, 16, 1);
  while (ios < 100) {
    stream_get(rID, a);
    stream_pop(rID);
    iowrite32(a, io);
  }
}
PB_PROCEDURE(takes_some)

void test_srpc_pipe_without_end(void) {
  CHECK_EQ(pb_boot(), LVD_OK);
  TASKID piped = pb_create("pipe", 0), sunk = pb_create("takes_some", 0);
  CHECK_EQ(stream_configure(0, 16, 1), LVD_OK);
  CHECK_EQ(pb_rpc(sunk), LVD_OK);
  CHECK(stream_rpc(piped, transmitter) == piped);
  CHECK_EQ(pb_finish(), LVD_OK);
  CHECK_EQ(ios, 100);
  for (u32 i = 0; i < 100; i++) CHECK_EQ(io[i], 3 * i + 1);
}

/* ---- leaving --------------------------------------------------------------------------------- */

static int deep;

__attribute__((noinline)) static void descend(int left) {
  deep = left;
  if (left > 0)
    descend(left - 1);
  else
    pb_return();
  deep = -1;
}

static void leaves_from_below(void) { descend(20); }
PB_PROCEDURE(leaves_from_below)

static int one(int x) { return x; }
LVD_FORKABLE(int, one, int)

/* The forked call refers to the frame that would be left. */
static void has_a_fork_open(void) {
  LVD_FORK(first, one, 7);
  CHECK_EQ(pb_return(), LVD_E_STATE);
  CHECK_EQ(LVD_JOIN(first, one), 7);
  deep = 1;
}
PB_PROCEDURE(has_a_fork_open)

void test_srpc_return(void) {
  pb_set_diagnostics(false);
  CHECK_EQ(pb_return(), LVD_E_STATE); /* the caller is no procedure */
  TASKID t = pb_create("leaves_from_below", 0);
  for (int i = 0; i < 3; i++) {
    deep = -3;
    CHECK_EQ(pb_rpc(t), LVD_OK);
    CHECK_EQ(pb_wait(t), LVD_OK);
    CHECK_EQ(deep, 0);
  }
  TASKID forks = pb_create("has_a_fork_open", 0);
  CHECK_EQ(pb_rpc(forks), LVD_OK);
  CHECK_EQ(pb_wait(forks), LVD_OK);
  CHECK_EQ(deep, 1);
  CHECK_EQ(pb_finish(), LVD_OK);
}
