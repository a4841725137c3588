/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Program: a C program as an application of a runtime, on the same workers as other applications.
 *
 * The program is a shared object with a `main` (cc -shared -fPIC -Wl,-Bsymbolic). It is loaded in
 * place of a network, as one actor with a single firing that starts main in a fiber with a stack
 * of 8 MiB. The runtime's workers run its forks; its remote procedures (levada/srpc.h) are fibers
 * of the application; its pb_boot starts nothing, and its pb_finish waits for what it has started.
 * Tasks and stream numbers are private to it; names registered with lvd_procedure_register are
 * shared by the process. The application ends when main and everything that it started have
 * returned; it has failed if main returns a value other than 0.
 *
 *   lvd_program_open(path, argc, argv, &program, why, sizeof why);
 *   lvd_app_load(rt, lvd_program_network(program), ...);
 *   lvd_app_start(app); ... lvd_app_unload(app);
 *   lvd_program_close(program);
 *
 * Not allowed, since the process is shared: exit(), which ends the process; and the functions of
 * levada/srpc.h on threads that the program creates itself, where they act for the program of the
 * process. C17 and C++17. */
#ifndef LVD_PROGRAM_H
#define LVD_PROGRAM_H

#include <levada/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_program lvd_program;

/* Loads a private copy of the shared object at `path`, with its own variables, and runs its
 * constructors. The arguments are copied; argv[0] is the name passed to main. The copy has no
 * path, so a search relative to the object ($ORIGIN) fails. The caller owns *out
 * (lvd_program_close). Errors, with a sentence in `why` (may be null): LVD_E_ARGUMENT: no such
 * file, not a shared object, or no main; LVD_E_MEMORY; LVD_E_LIMIT: it cannot be copied. From any
 * thread. */
LVD_API lvd_status lvd_program_open(const char *path, int argc, const char *const *argv,
                                    lvd_program **out, char *why, size_t why_size);
/* The network to load, once. Owned by the program; valid until lvd_program_close. */
LVD_API const lvd_network *lvd_program_network(const lvd_program *program);
/* Unloads the program. Its application must have been unloaded before. */
LVD_API void lvd_program_close(lvd_program *program);

#ifdef __cplusplus
}
#endif
#endif
