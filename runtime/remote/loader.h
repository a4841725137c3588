/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loader: the resident code on a processor behind a memory window, except for the machine-dependent
 * part. It receives images, runs them and reports the result. The machine's part starts the loader,
 * signals the host, sleeps, and catches faults of programs. */
#ifndef LVD_REMOTE_LOADER_H
#define LVD_REMOTE_LOADER_H

#include <levada/window.h>

typedef struct lvd_loader {
  const lvd_remote_hal *board;
  uint64_t low, high;   /* the range into which images may be loaded */
  void (*follow)(void); /* synchronizes the instruction cache with memory; null: not needed */
  /* An image is in the window and will be copied; null: no action. */
  void (*arrived)(void *image, size_t size);
  uint32_t look_ns;       /* nanoseconds for which it polls for the next command before it sleeps */
  lvd_window_shape shape; /* of the window, once it exists */
  volatile bool running;  /* a program is running */
  uint32_t done;          /* number of the last command that was executed */
} lvd_loader;

/* Why a program was ended. */
typedef struct lvd_remote_trap {
  uint64_t cause, pc, value;
  const char *procedure; /* that was running; null: none */
} lvd_remote_trap;

/* Called by the machine's doorbell interrupt. Answers the host's liveness check. True: the host has
 * ordered the running program to stop; the caller then calls lvd_loader_give_up. */
bool lvd_loader_rung(lvd_loader *l);
/* Ends what was running: writes the reason to the window, and signals the host. */
void lvd_loader_give_up(lvd_loader *l, enum lvd_remote_state state, const lvd_remote_trap *trap);
/* Waits for a window, then executes commands forever. May be called again after a program was given
 * up. */
LVD_NORETURN void lvd_loader_serve(lvd_loader *l);

#endif
