/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The listings of "Streaming RPC" (SiPS 2008), sections 2.3 and 3.1 to 3.3, as printed except for
 * errors of the scan, as a program: a source, a sink, and between them a procedure that has the
 * name of a system call. */
#define SRPC_AS_PRINTED
#include <levada/srpc.h>
#include <stdbool.h>
#include <stdio.h>

enum { m = 1000 };
static u32 source_data[m];
static u32 device[m];
static unsigned written;
static void iowrite32(u32 v, void *io_addr) { ((u32 *)io_addr)[written++] = v; }
static void *io_addr = device;
static TASKID rf1;

static void transmitter(void *p) {
  (void)p;
  STREAM_ID sID = 0;
  stream_create(sID);

  int a[m];

  /* Computation, setting data source */
  for (int i = 0; i < m; i++) a[i] = source_data[i];
  for (int i = 0; i < m; i++) {
    stream_put(sID, a[i]);
    stream_push(sID);
  }
}

static void source(void) {
  stream_rpc(rf1, transmitter);
  /* Computation */
}

void pipe(void) {
  STREAM_ID sID = 0;
  STREAM_ID rID = 1;
  stream_create(sID);
  stream_create(rID);
  u32 a;
  while (true) {
    stream_get(sID, a);
    stream_pop(sID);
    /* Compute a */
    a = a * 2;
    stream_put(rID, a);
    stream_push(rID);
  }
}
PB_PROCEDURE(pipe)

static void sink(void) {
  STREAM_ID rID = 1;
  u32 a;
  stream_create(rID);
  for (;;) {
    stream_get(rID, a);
    stream_pop(rID);
    iowrite32(a, io_addr);
  }
}
PB_PROCEDURE(sink)

int main(void) {
  for (int i = 0; i < m; i++) source_data[i] = i + 1;
  pb_load(NULL);
  pb_boot();
  rf1 = pb_create("pipe", 0);
  TASKID s = pb_create("sink", 0);
  pb_rpc(s);
  source();
  pb_wait(s);
  unsigned long sum = 0;
  for (unsigned i = 0; i < written; i++) sum += device[i];
  printf("%u %lu\n", written, sum);
  return pb_finish() != LVD_OK || written != m || sum != 1001000;
}
