/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI nodes behind a window, without an operating system (liblevada-mcapi).
 *
 * A procedure of a unit behind a window (levada/process.h, "qemu:", "native:", ...) calls MCAPI by
 * the standard's names, and is a node of any domain. An agent on this side, a fiber per node,
 * executes its calls: other nodes see the agent's node. When the procedure returns or fails, or
 * its processor dies, the node and its endpoints are removed. C17. */
#ifndef LVD_MCAPI_WINDOW_H
#define LVD_MCAPI_WINDOW_H

#include <levada/process.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_mcapi_remote lvd_mcapi_remote;

/* Calls `procedure` there, as one that may be a node, with `size` bytes of argument (at most
 * LVD_MCAPI_REMOTE_ARGUMENT). Its program must use MCAPI; otherwise lvd_mcapi_remote_wait returns
 * LVD_E_NOT_FOUND. The caller owns *out and frees it with lvd_mcapi_remote_wait. Errors:
 * LVD_E_ARGUMENT; LVD_E_MEMORY; those of lvd_stream_open, lvd_call_start and lvd_fiber_start. */
#define LVD_MCAPI_REMOTE_ARGUMENT 128
LVD_API lvd_status lvd_mcapi_remote_start(lvd_app *app, lvd_unit *unit, const char *procedure,
                                          const void *argument, size_t size,
                                          lvd_mcapi_remote **out);
/* Waits at most `timeout_ns` ns (negative: no limit) until the procedure has returned and the node
 * is removed. Returns the procedure's status or the error, as lvd_call_wait does. `*returned` is
 * false if the wait ended early: after LVD_E_TIMEOUT or LVD_E_CANCELLED the procedure goes on, and
 * must be waited for again; LVD_E_STOPPED: the application ends. */
LVD_API lvd_status lvd_mcapi_remote_wait(lvd_mcapi_remote *f, int64_t timeout_ns, bool *returned);
/* The procedure's waits and MCAPI calls end; the procedure must then return. */
LVD_API void lvd_mcapi_remote_cancel(lvd_mcapi_remote *f);

#ifdef __cplusplus
}
#endif
#endif
