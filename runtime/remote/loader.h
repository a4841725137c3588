/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loader: what is resident on a processor behind a window, without what differs from machine to
 * machine: takes images, runs them, says how it went. A machine's own part starts it, rings, sleeps,
 * and catches what a program does wrong. */
#ifndef LVD_FAR_LOADER_H
#define LVD_FAR_LOADER_H

#include <levada/window.h>

typedef struct lvd_loader {
  const lvd_far_board *board;
  uint64_t low, high; /* where images may lie */
  void (*follow)(
      void); /* makes the instruction cache follow what was copied; null: there is none */
  /* An image lies in the window, and is about to be copied; null: nothing is to be done. */
  void (*arrived)(void *image, size_t size);
  uint32_t look_ns;       /* for so long it looks for the next command before it sleeps */
  lvd_window_shape shape; /* of the window, once it was there */
  volatile bool running;  /* a program */
  uint32_t done;          /* the last command */
} lvd_loader;

/* Why a program was given up. */
typedef struct lvd_far_trap {
  uint64_t cause, pc, value;
  const char *procedure; /* that ran; null: none */
} lvd_far_trap;

/* The doorbell was rung, which a machine hears in an interrupt: answers whether anybody is there. True:
 * the program that runs is to be stopped, by lvd_loader_give_up. */
bool lvd_loader_rung(lvd_loader *l);
/* What ran is given up: says so in the window, and rings. */
void lvd_loader_give_up(lvd_loader *l, enum lvd_far_state state, const lvd_far_trap *trap);
/* Waits for a window, then for images, for ever. May be begun again after a program was given up. */
LVD_NORETURN void lvd_loader_serve(lvd_loader *l);

#endif
