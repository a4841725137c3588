/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Call: a procedure that runs on a unit, asynchronously, with its argument and its result by value.
 *
 * A UNIT is a processor that takes work: a core of this process, or another process of this machine
 * (levada/process.h). A procedure is known by its name; it runs as a fiber of the unit, and may
 * wait.
 *
 * All calls here are for any thread, fiber or actor that may wait.
 *
 * Source: "Streaming RPC" (SiPS 2008), section 2.1: pb_create, pb_rpc, pb_wait. C17 and C++17. */
#ifndef LVD_CALL_H
#define LVD_CALL_H

#include <levada/fiber.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a procedure is given. Its memory lives until the procedure returns. */
typedef struct lvd_frame {
  lvd_app *app;         /* whose fiber it is */
  const void *argument; /* aligned as by malloc */
  size_t argument_size;
  void *result;       /* to be written; aligned likewise, zeroed */
  size_t result_room; /* bytes there are */
  size_t result_size; /* to be set; 0 at first; beyond result_room: there is no result, and the call
                         returns LVD_E_LIMIT where the procedure returned LVD_OK */
} lvd_frame;

/* Any status may be returned; it reaches the caller with the result. */
typedef lvd_status lvd_procedure(lvd_frame *frame);

/* Makes a procedure known by a name (copied, at most 63 bytes) to the whole process; null takes it
 * back. LVD_E_STATE: the name is another's. */
LVD_API lvd_status lvd_procedure_register(const char *name, lvd_procedure *procedure);
/* Null: nobody has registered it. */
LVD_API lvd_procedure *lvd_procedure_find(const char *name);

/* At file scope: registers a function under its own name when the program is loaded. */
#define LVD_PROCEDURE(function)                                                                    \
  __attribute__((constructor)) static void lvd_register_##function(void) {                         \
    lvd_procedure_register(#function, function);                                                   \
  }

/* ---- units ---------------------------------------------------------------------------------- */

typedef struct lvd_unit lvd_unit;

/* The core of a worker of this process, for procedures of `app`. Lives as long as `app`. What is called there while that
 * worker is held up, by what does not come back to it for 0.1 s, is made on another. */
LVD_API lvd_status lvd_unit_core(lvd_app *app, uint32_t worker, lvd_unit **out);
/* In words: "worker 1". */
LVD_API const char *lvd_unit_name(const lvd_unit *unit);
/* What a process said of the fault that ended it, when its calls returned LVD_E_FAULT: which procedure
 * failed, and why; or what it called that ended the process, exit or abort; or how the process ended, if
 * it said nothing (LVD_E_PEER, too: a signal, an exit status). Writes at most `size` bytes with the terminating null; returns the length it
 * would have; 0: it has said nothing, or the unit is a core (whose faults lvd_app_fault has). The
 * words are that process's own; lvd_app_why has them, too. */
LVD_API size_t lvd_unit_why(const lvd_unit *unit, char *text, size_t size);

/* ---- calls ---------------------------------------------------------------------------------- */

typedef struct lvd_call lvd_call;

typedef struct lvd_call_options {
  int32_t priority;   /* as for fibers */
  bool urgent;        /* as for fibers */
  size_t stack;       /* as for fibers */
  size_t result_room; /* bytes; 0: 256 */
} lvd_call_options;

/* The most that an argument or a result may have. What is larger goes through a stream. */
#define LVD_CALL_MOST (1u << 20)

/* Calls `procedure` on `unit`; returns at once. The argument is copied. `options` may be null. *out
 * is to be given to lvd_call_wait. Errors: LVD_E_ARGUMENT; LVD_E_UNKNOWN: no such procedure there
 * (of a core; what another process knows is not known here, so there lvd_call_wait returns it);
 * LVD_E_PEER: the unit is gone; LVD_E_STATE: the application does not run. That no stack can be had
 * there (LVD_E_MEMORY, LVD_E_LIMIT, LVD_E_MAPPINGS) is what the call returns. */
LVD_API lvd_status lvd_call_start(lvd_unit *unit, const char *procedure, const void *argument,
                                  size_t size, const lvd_call_options *options, lvd_call **out);

/* Waits until it has returned, copies at most *size bytes of the result and sets *size to how many
 * it has (both may be null), and gives the call back. Returns what the procedure returned;
 * LVD_E_FAULT, if it failed, or its process did, which abort, exit and a fatal signal of its own end;
 * LVD_E_PEER, if its unit is gone otherwise; LVD_E_LIMIT: the result is larger than its room. On LVD_E_TIME, LVD_E_CANCELLED (of
 * the caller) and LVD_E_STOPPED of a wait that came to nothing `*returned` is false and the call
 * goes on; null: not asked for. */
LVD_API lvd_status lvd_call_wait(lvd_call *call, void *result, size_t *size, int64_t timeout_ns,
                                 bool *returned);

/* Waits until one of `count` (at most LVD_WANTS) has returned; *which is its index; then
 * lvd_call_wait gives its result without waiting. */
LVD_API lvd_status lvd_call_wait_any(lvd_call *const *call, uint32_t count, int64_t timeout_ns,
                                     uint32_t *which);

/* The procedure's waits return LVD_E_CANCELLED; it has to return by itself. lvd_call_wait is due as
 * ever. */
LVD_API void lvd_call_cancel(lvd_call *call);

#ifdef __cplusplus
}
#endif
#endif
