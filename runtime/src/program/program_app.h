/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Hosted: what the runtime's registries must know of programs that come and go (levada/program.h). */
#ifndef LVD_HOSTED_H
#define LVD_HOSTED_H

#include <levada/program.h>

/* The program whose are the procedures that the caller registers: the one that is being opened on this thread, by whose
 * constructors, or that runs here; null: none, and so they are the process's own. */
const lvd_program *lvd_program_registering(void);

/* Its procedures are no more. */
void lvd_calls_forget(const lvd_program *hosted);      /* call.c */
void lvd_procedures_forget(const lvd_program *hosted); /* srpc_tasks.c */

/* What the paper's names have made in an application that is unloaded (srpc.c): what looks at its streams
 * ends, before those are freed; then all else is. */
void lvd_program_unwatch(lvd_app *app);
void lvd_program_part(lvd_app *app);

#endif
