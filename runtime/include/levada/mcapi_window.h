/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI nodes behind a window, where there is no operating system (liblevada-mcapi).
 *
 * A procedure of a unit behind a window (levada/process.h, "qemu:", "native:", ...) calls MCAPI by the
 * standard's names, and is a node of any domain like others. For each such node there is an agent on this
 * side, a fiber, which does its calls: what others see of the node is the agent's, and when the procedure
 * returns, fails, or its processor dies, the node and its endpoints go. C17. */
#ifndef LVD_MCAPI_WINDOW_H
#define LVD_MCAPI_WINDOW_H

#include <levada/process.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_mcapi_far lvd_mcapi_far;

/* Calls `procedure` there with `size` bytes of argument (at most LVD_MCAPI_FAR_ARGUMENT), as one that may
 * be a node. Its program must use MCAPI, or lvd_mcapi_far_wait returns LVD_E_UNKNOWN. *out is to be given
 * to that. LVD_E_ARGUMENT; LVD_E_MEMORY; those of lvd_stream_open, lvd_call_start and lvd_fiber_start. */
#define LVD_MCAPI_FAR_ARGUMENT 128
LVD_API lvd_status lvd_mcapi_far_start(lvd_app *app, lvd_unit *unit, const char *procedure,
                                       const void *argument, size_t size, lvd_mcapi_far **out);
/* Waits until the procedure has returned and the node is no more: what it returned, or why it could not, as
 * lvd_call_wait says. A wait that came to nothing leaves `*returned` false: after LVD_E_TIME and
 * LVD_E_CANCELLED it goes on, and is waited for another time; LVD_E_STOPPED: the application ends. */
LVD_API lvd_status lvd_mcapi_far_wait(lvd_mcapi_far *f, int64_t timeout_ns, bool *returned);
/* The procedure's waits, and its MCAPI calls, end; it has to return by itself. */
LVD_API void lvd_mcapi_far_cancel(lvd_mcapi_far *f);

#ifdef __cplusplus
}
#endif
#endif
