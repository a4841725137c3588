/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the runtime's registries must know of C programs that are opened and closed
 * (levada/program.h). */
#ifndef LVD_PROGRAM_PROGRAM_APP_H
#define LVD_PROGRAM_PROGRAM_APP_H

#include <levada/program.h>

/* The program that owns the procedures the caller registers: the one that is being opened on this
 * thread, in a constructor, or that runs here; null: the process itself. */
const lvd_program *lvd_program_registering(void);

/* Removes its procedures. */
void lvd_calls_forget(const lvd_program *hosted);      /* call.c */
void lvd_procedures_forget(const lvd_program *hosted); /* srpc_tasks.c */

/* Frees what the paper's API has made in an application that is unloaded (srpc.c): first what
 * watches its streams, before these are freed; then all else. */
void lvd_program_unwatch(lvd_app *app);
void lvd_program_part(lvd_app *app);

#endif
