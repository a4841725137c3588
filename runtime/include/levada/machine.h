/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Machine: a processor behind a window, with no application that it is a unit of: booted, given
 * images, told to run them, stopped. An image here is a program that begins, computes, and returns a
 * status; one that serves procedures wants an application (lvd_unit_load).
 *
 * One thread at a time. When a call fails, lvd_window_why() has a sentence on it. */
#ifndef LVD_MACHINE_H
#define LVD_MACHINE_H

#include <levada/process.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_machine lvd_machine;

enum lvd_machine_state {
  LVD_MACHINE_WAITS,  /* nothing has run since it was booted */
  LVD_MACHINE_RUNS,   /* a program */
  LVD_MACHINE_ENDED,  /* the last one has returned `result` */
  LVD_MACHINE_FAILED, /* ... has failed, or hung, or was stopped: `text` */
  LVD_MACHINE_SERVES, /* a program that serves procedures */
  LVD_MACHINE_DEAD    /* the machine has ended, does not answer, or writes nonsense: `text` */
};

typedef struct lvd_machine_report {
  enum lvd_machine_state state;
  uint32_t result;
  char text[200];
} lvd_machine_report;

/* Starts one and waits for its loader. `kind`: "qemu", "qemu32", "native", or a board's, "uio:DEVICE" or
 * "remoteproc:PROCESSOR,..." as in a unit's name. LVD_E_UNKNOWN: there is no such
 * kind, no loader, no emulator, no device; LVD_E_TIME, LVD_E_PEER: it does not begin. */
LVD_API lvd_status lvd_machine_boot(const char *kind, int64_t limit_ns, lvd_machine **out);
/* Reads an image and keeps it for lvd_machine_run. When it fails, the one before is still there. */
LVD_API lvd_status lvd_machine_load(lvd_machine *m, const char *file);
/* Has the loader begin the image anew. LVD_E_STATE: there is none, or something runs. */
LVD_API lvd_status lvd_machine_run(lvd_machine *m, int64_t limit_ns);
/* What it is about; while a program runs, first waits until it rings, or the time has passed, and asks
 * the loader every second whether it is there: call it as often. */
LVD_API void lvd_machine_look(lvd_machine *m, int64_t timeout_ns, lvd_machine_report *out);
/* Ends the program that runs. LVD_E_STATE: none does; LVD_E_TIME: it does not heed it. */
LVD_API lvd_status lvd_machine_stop(lvd_machine *m, int64_t limit_ns);
/* A descriptor that can be read when lvd_machine_look has something to see. */
LVD_API int lvd_machine_bell(const lvd_machine *m);
LVD_API int32_t lvd_machine_process(const lvd_machine *m);
LVD_API void lvd_machine_end(lvd_machine *m); /* may be null */

#ifdef __cplusplus
}
#endif
#endif
