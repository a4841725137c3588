/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Machine: a processor behind a window that is not a unit of an application: boot it, load images,
 * run and stop them. An image here is a program that starts, computes, and returns a status; a
 * program that serves procedures needs an application (lvd_unit_load).
 *
 * Thread-safety: one thread at a time per machine. After a failed call, lvd_window_error_text()
 * describes the error. */
#ifndef LVD_MACHINE_H
#define LVD_MACHINE_H

#include <levada/process.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_machine lvd_machine;

enum lvd_machine_state {
  LVD_MACHINE_IDLE,    /* nothing has run since boot */
  LVD_MACHINE_RUNNING, /* a program is running */
  LVD_MACHINE_EXITED,  /* the last program has returned `result` */
  LVD_MACHINE_FAILED,  /* the last program failed, hung, or was stopped: `text` */
  LVD_MACHINE_SERVING, /* a program that serves procedures is running */
  LVD_MACHINE_DEAD     /* the machine has ended, does not reply, or violates the protocol: `text` */
};

typedef struct lvd_machine_report {
  enum lvd_machine_state state;
  uint32_t result;
  char text[200];
} lvd_machine_report;

/* Starts a machine and waits at most `timeout_ns` ns for its loader. `kind`: "qemu", "qemu32",
 * "native", or a board, "uio:DEVICE" or "remoteproc:PROCESSOR,...", as in the name of a unit. The
 * caller owns *out (lvd_machine_end). LVD_E_NOT_FOUND: no such kind, loader, emulator or device;
 * LVD_E_TIMEOUT, LVD_E_PEER_GONE: it does not start. */
LVD_API lvd_status lvd_machine_boot(const char *kind, int64_t timeout_ns, lvd_machine **out);
/* Reads an image file and keeps it for lvd_machine_run. On failure the previous image is kept. */
LVD_API lvd_status lvd_machine_load(lvd_machine *m, const char *file);
/* Lets the loader start the image from its beginning. LVD_E_STATE: no image, or a program is
 * running. */
LVD_API lvd_status lvd_machine_run(lvd_machine *m, int64_t timeout_ns);
/* Reports the state. While a program runs, first waits until it rings, at most `timeout_ns` ns,
 * and probes the loader once per second: so call this at least that often. */
LVD_API void lvd_machine_look(lvd_machine *m, int64_t timeout_ns, lvd_machine_report *out);
/* Ends the running program. LVD_E_STATE: none is running; LVD_E_TIMEOUT: it does not react within
 * `timeout_ns` ns. */
LVD_API lvd_status lvd_machine_stop(lvd_machine *m, int64_t timeout_ns);
/* A file descriptor that is readable when lvd_machine_look has news. Owned by the machine. */
LVD_API int lvd_machine_bell(const lvd_machine *m);
/* Process id of the emulator or native process. */
LVD_API int32_t lvd_machine_process(const lvd_machine *m);
LVD_API void lvd_machine_end(lvd_machine *m); /* may be null */

#ifdef __cplusplus
}
#endif
#endif
