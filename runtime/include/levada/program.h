/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Program: a C program as an application of a runtime, beside others, on the same workers.
 *
 * The program is a shared object with a `main` (cc -shared -fPIC -Wl,-Bsymbolic). It is loaded as what is otherwise a
 * network: with one actor, whose one firing starts main, a fiber with a stack of 8 MiB. Its forks are
 * taken by the runtime's workers, its remote procedures (levada/srpc.h) are fibers of the
 * application, its pb_boot starts nothing, and its pb_finish waits for what it has started. Tasks and
 * numbers of streams are its own, whatever other programs call theirs; names that are registered with
 * lvd_procedure_register are the process's. The application has ended when main has returned, and all
 * that it has started; it has failed when main returns anything but 0.
 *
 *   lvd_program_open(path, argc, argv, &program, why, sizeof why);
 *   lvd_app_load(rt, lvd_program_network(program), ...); lvd_app_start(app); ... lvd_app_unload(app);
 *   lvd_program_close(program);
 *
 * What it may not do, since the process is not its own: exit(), which ends the process, and the
 * paper's names on threads that it makes itself, which are the process's program. C17 and C++17. */
#ifndef LVD_PROGRAM_H
#define LVD_PROGRAM_H

#include <levada/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_program lvd_program;

/* Loads a copy of the shared object at `path`, with variables of its own, and runs its constructors.
 * The arguments are copied; argv[0] is what main is told to be called. A copy is at no path: what the
 * object looks for beside itself ($ORIGIN) it does not find. *out is to be given to lvd_program_close.
 * Errors, with a sentence in `why` (may be null): LVD_E_ARGUMENT: there is no such file, it is no
 * shared object, or has no main; LVD_E_MEMORY; LVD_E_LIMIT: it cannot be copied. Any thread. */
LVD_API lvd_status lvd_program_open(const char *path, int argc, const char *const *argv,
                                    lvd_program **out, char *why, size_t why_size);
/* To be loaded once; lives until lvd_program_close. */
LVD_API const lvd_network *lvd_program_network(const lvd_program *program);
/* Its application has been unloaded. */
LVD_API void lvd_program_close(lvd_program *program);

/* The application that the calling fiber or actor is part of, to start fibers in and to open streams;
 * null on a thread that is no worker. */
LVD_API lvd_app *lvd_app_here(void);

#ifdef __cplusplus
}
#endif
#endif
