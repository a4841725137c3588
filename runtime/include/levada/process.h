/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Process: a unit that is another process of this machine. It is an ordinary program that links
 * this library, registers procedures (LVD_PROCEDURE) and serves:
 *
 *   int main(void) { return lvd_unit_serve(NULL) == LVD_OK ? 0 : 1; }
 *
 * The two share one piece of memory and nothing else. Either may die at any moment: what it had
 * pushed is delivered, then the other side's waits return LVD_E_PEER. What comes from a process is
 * checked before it is used: one that has run wild can hand over wrong data, and no more.
 *
 * Source: "Streaming RPC" (SiPS 2008), section 2.1: pb_load, pb_boot. C17 and C++17. */
#ifndef LVD_PROCESS_H
#define LVD_PROCESS_H

#include <levada/call.h>
#include <levada/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the side that loads -------------------------------------------------------------------- */

typedef struct lvd_unit_options {
  const char *const *argument; /* of the program, behind its name; null-terminated; may be null */
  size_t memory;         /* bytes for streams and for large arguments; 0: 64 MiB, of which only
                                  what is used is taken from the system */
  int64_t time_limit_ns; /* until it serves; 0: 10 s */
  const char *may_call;  /* it may call procedures of this process whose names begin so; null: none,
                                    "": all */
} lvd_unit_options;

/* Starts `exec_name` (in PATH, if there is no slash in it) and makes it a unit for calls and
 * streams of `app`. `options` may be null. For threads, not for fibers, whose core the process
 * would be bound to (LVD_E_STATE). Errors: LVD_E_UNKNOWN: there is no such program; LVD_E_SYSTEM:
 * it cannot be run; LVD_E_TIME: it does not serve; LVD_E_PEER: it has ended before it did;
 * LVD_E_LAYOUT: it was built with another version of the library; LVD_E_MEMORY. */
LVD_API lvd_status lvd_unit_load(lvd_app *app, const char *exec_name,
                                 const lvd_unit_options *options, lvd_unit **out);

/* `exec_name` may be "qemu:" and the file of an image, ELF or raw: a processor behind a window
 * (levada/window.h) is started, its loader runs the image, and the unit is that ("native:": a process of
 * this system in its place). All here is the same for it. Errors besides: LVD_E_ARGUMENT: it is no image
 * that can be run there; LVD_E_LAYOUT: it is for another processor; LVD_E_CORRUPT: it was damaged on its
 * way. Why, in words, for the calling thread: */
LVD_API const char *lvd_window_why(void);

/* Lets it go: its calls are stopped, the process ends, or is killed after two seconds; what it has
 * called here is cancelled, and waited for. While there are calls that have not been waited for, or
 * streams that have not been destroyed: LVD_E_STATE, and nothing is done. lvd_app_unload does the
 * same for all units of the application, whatever is left. */
LVD_API lvd_status lvd_unit_unload(lvd_unit *unit);
/* The same with a time limit (negative: none). LVD_E_TIME, or LVD_E_CANCELLED and LVD_E_STOPPED of
 * the fiber that calls: it is on its way out, of no use any more, and to be unloaded once more.
 * LVD_E_STOPPED, too, when what it had called here has failed: it goes with the application. */
LVD_API lvd_status lvd_unit_unload_for(lvd_unit *unit, int64_t timeout_ns);

/* LVD_OK: it serves. LVD_E_PEER: it is gone; load it again. LVD_E_CORRUPT: it wrote what it cannot
 * have meant, and was killed. */
LVD_API lvd_status lvd_unit_state(const lvd_unit *unit);
/* Its process's number; 0: the unit is a core. */
LVD_API int32_t lvd_unit_process(const lvd_unit *unit);

/* ---- the side that is loaded ---------------------------------------------------------------- */

/* Has another process loaded this one as a unit, and not been served yet? */
LVD_API bool lvd_unit_is_loaded(void);

/* Takes calls, as fibers of `app` (null: one of its own, on all cores), until the parent lets go:
 * LVD_OK; until it is gone: LVD_E_PEER; or until `app` ends otherwise, as lvd_app_wait says. Should
 * a fiber not return within two seconds then, the process is ended. LVD_E_STATE: nobody has loaded
 * this process. */
LVD_API lvd_status lvd_unit_serve(lvd_app *app);

/* The unit that stands for the parent, for streams, and for calls to it as to any unit: an argument
 * and a result may have 256 bytes each (LVD_E_LIMIT), and the procedure's name must be one that the
 * parent lets this process call (lvd_unit_options.may_call; else LVD_E_UNKNOWN from lvd_call_wait).
 * Null: this process does not serve. */
LVD_API lvd_unit *lvd_unit_parent(void);

/* ---- streams between the two ---------------------------------------------------------------- */

/* Opens the stream that is known by options->name (at most 31 bytes) to both processes: each opens
 * it, in whatever order, and who puts has one end, who gets the other. The capacity is of who comes
 * first, the threshold of who gets. LVD_E_ARGUMENT: the other side's elements have another size, the
 * name is longer, or the unit is a core; LVD_E_PEER: it is gone; LVD_E_LIMIT: no memory left between the two
 * (lvd_unit_options.memory); and those of lvd_stream_create. A name can be used again once both
 * sides have opened it; a stream that is destroyed with an end that nobody has taken ends for the
 * other side. Two loaded processes cannot stream to each other. A child asks its parent, and waits
 * for the answer as long as for elements, options->time_limit_ns: LVD_E_TIME. */
LVD_API lvd_status lvd_stream_open(lvd_unit *unit, const lvd_stream_options *options,
                                   lvd_stream **out);

#ifdef __cplusplus
}
#endif
#endif
