/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Call: an asynchronous procedure call on a unit; argument and result are passed by value.
 *
 * A UNIT is a processor that accepts calls: a core of this process, or another process of this
 * machine (levada/process.h). A procedure is identified by its name; it runs as a fiber of the
 * unit, and may wait.
 *
 * Thread-safety: every function may be called by any thread, fiber, or actor that may wait.
 *
 * Source: "Streaming RPC" (SiPS 2008), section 2.1: pb_create, pb_rpc, pb_wait. C17 and C++17. */
#ifndef LVD_CALL_H
#define LVD_CALL_H

#include <levada/fiber.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters of a procedure. The memory is valid until the procedure returns. */
typedef struct lvd_call_frame {
  lvd_app *app;         /* the application that the fiber belongs to */
  const void *argument; /* aligned as by malloc */
  size_t argument_size;
  void *result;       /* output; aligned as by malloc, zeroed */
  size_t result_room; /* bytes available at `result` */
  /* output, bytes; initially 0. If above result_room there is no result, and the call returns
   * LVD_E_LIMIT where the procedure returned LVD_OK */
  size_t result_size;
} lvd_call_frame;

/* Any status may be returned; the caller gets it with the result. */
typedef lvd_status lvd_procedure(lvd_call_frame *frame);

/* Registers a procedure under a name (copied, at most 63 bytes) for the whole process; null
 * unregisters it. LVD_E_STATE: the name is taken by another procedure. */
LVD_API lvd_status lvd_procedure_register(const char *name, lvd_procedure *procedure);
/* Null: the name is not registered. */
LVD_API lvd_procedure *lvd_procedure_find(const char *name);

/* At file scope: registers a function under its own name when the program is loaded. */
#define LVD_PROCEDURE(function)                                                                    \
  __attribute__((constructor)) static void lvd_register_##function(void) {                         \
    lvd_procedure_register(#function, function);                                                   \
  }

/* ---- units ---------------------------------------------------------------------------------- */

typedef struct lvd_unit lvd_unit;

/* The core of a worker of this process, for procedures of `app`. The application owns it. Calls
 * made while that worker has been blocked for 0.1 s run on another one. */
LVD_API lvd_status lvd_unit_core(lvd_app *app, uint32_t worker, lvd_unit **out);
/* A readable name: "worker 1". */
LVD_API const char *lvd_unit_name(const lvd_unit *unit);
/* What a unit's process reported about the fault that ended it, if its calls returned LVD_E_FAULT:
 * the procedure that failed, and why; or the call that ended the process (exit, abort); or, without
 * a report, how the process ended (a signal, an exit status; also after LVD_E_PEER_GONE). The text
 * is that process's own; lvd_app_wait_report includes it. Writes at most `size` bytes including the
 * terminating null; returns the full length; 0: no report, or the unit is a core (see
 * lvd_app_fault). */
LVD_API size_t lvd_unit_error_text(const lvd_unit *unit, char *text, size_t size);

/* ---- calls ---------------------------------------------------------------------------------- */

typedef struct lvd_call lvd_call;

typedef struct lvd_call_options {
  int32_t priority;   /* as in lvd_fiber_options */
  bool urgent;        /* as in lvd_fiber_options */
  size_t stack;       /* bytes, as in lvd_fiber_options */
  size_t result_room; /* bytes; 0: 256 */
} lvd_call_options;

/* Maximum size in bytes of an argument or a result. Pass larger data through a stream. */
#define LVD_CALL_BYTES_MAX (1u << 20)

/* Starts a call of `procedure` on `unit`; returns at once. The argument is copied. `options` may be
 * null. The caller owns *out and frees it with lvd_call_wait. Errors: LVD_E_ARGUMENT;
 * LVD_E_NOT_FOUND: the core has no such procedure (for another process lvd_call_wait returns this);
 * LVD_E_PEER_GONE: the unit is gone; LVD_E_STATE: the application is not running. If no stack can
 * be allocated there, the result of the call is LVD_E_MEMORY, LVD_E_LIMIT or LVD_E_MAPPINGS. */
LVD_API lvd_status lvd_call_start(lvd_unit *unit, const char *procedure, const void *argument,
                                  size_t size, const lvd_call_options *options, lvd_call **out);

/* Waits at most `timeout_ns` ns (negative: no limit) for the end of the call, copies at most *size
 * bytes of the result, sets *size to its full size (both may be null), and frees the call. Returns
 * the procedure's status; LVD_E_FAULT: it failed, or its process did, which includes abort, exit
 * and a fatal signal; LVD_E_PEER_GONE: its unit is gone for another reason; LVD_E_LIMIT: the result
 * exceeds its room. `*returned` (may be null) is false if the wait itself ended early, by
 * LVD_E_TIMEOUT, LVD_E_CANCELLED (of the caller) or LVD_E_STOPPED: the call then goes on. */
LVD_API lvd_status lvd_call_wait(lvd_call *call, void *result, size_t *size, int64_t timeout_ns,
                                 bool *returned);

/* Waits likewise until one of `count` calls (at most LVD_WAIT_ITEMS_MAX) has returned; *which is
 * its index. lvd_call_wait on it then does not block. */
LVD_API lvd_status lvd_call_wait_any(lvd_call *const *call, uint32_t count, int64_t timeout_ns,
                                     uint32_t *which);

/* Cancels the call: waits of the procedure return LVD_E_CANCELLED; the procedure must then return.
 * lvd_call_wait is still required. */
LVD_API void lvd_call_cancel(lvd_call *call);

#ifdef __cplusplus
}
#endif
#endif
