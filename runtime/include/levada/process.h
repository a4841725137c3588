/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Process: a unit that is another process of this machine. It is an ordinary program that links
 * this library, registers procedures (LVD_PROCEDURE) and serves calls:
 *
 *   int main(void) { return lvd_unit_serve(NULL) == LVD_OK ? 0 : 1; }
 *
 * The two processes share one memory segment and nothing else. Either may die at any moment:
 * elements that it has pushed are delivered, then the waits of the other side return
 * LVD_E_PEER_GONE. All data from the other process is validated before use: a faulty process can
 * pass wrong data, but cannot corrupt this one.
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
  /* arguments after the program's name; null-terminated; may be null */
  const char *const *argument;
  /* bytes of the segment, for streams and large arguments; 0: 64 MiB. Pages are committed on use
   * only */
  size_t memory;
  int64_t timeout_ns; /* ns until it must serve; 0: 10 s */
  /* prefix of the names of procedures of this process that it may call; null: none, "": all */
  const char *may_call;
} lvd_unit_options;

/* Starts `exec_name` (searched in PATH if it contains no slash) as a unit for calls and streams of
 * `app`. `options` may be null. The caller owns *out (lvd_unit_unload). Threads only; LVD_E_STATE
 * in a fiber, since the new process would be pinned to the fiber's core. Errors: LVD_E_NOT_FOUND:
 * no such program; LVD_E_SYSTEM: it cannot be executed; LVD_E_TIMEOUT: it does not serve in time;
 * LVD_E_PEER_GONE: it ended before it served; LVD_E_ABI: it was built with another version of the
 * library; LVD_E_MEMORY. */
LVD_API lvd_status lvd_unit_load(lvd_app *app, const char *exec_name,
                                 const lvd_unit_options *options, lvd_unit **out);

/* `exec_name` may also be "qemu:" followed by an image file, ELF or raw: an emulated processor
 * behind a window (levada/window.h) is started, its loader runs the image, and the image is the
 * unit. "native:" does the same in a process of this system. All functions here work alike.
 * Additional errors: LVD_E_ARGUMENT: not an image that can run there; LVD_E_ABI: an image for
 * another processor; LVD_E_CORRUPT: the image was damaged in transfer. lvd_window_error_text
 * describes the calling thread's last error. */
LVD_API const char *lvd_window_error_text(void);

/* Unloads the unit: its calls are stopped and the process ends, or is killed after two seconds;
 * calls that it has made here are cancelled and waited for. LVD_E_STATE, without effect: calls
 * have not been waited for or streams not been destroyed. lvd_app_unload does the same for all
 * units of the application, including any calls and streams left. */
LVD_API lvd_status lvd_unit_unload(lvd_unit *unit);
/* Like lvd_unit_unload, with a timeout in ns (negative: none). After LVD_E_TIMEOUT, or
 * LVD_E_CANCELLED or LVD_E_STOPPED of the calling fiber, the unit is being stopped and unusable;
 * call this again. LVD_E_STOPPED also if a call that it made here has failed: it is freed with the
 * application. */
LVD_API lvd_status lvd_unit_unload_timeout(lvd_unit *unit, int64_t timeout_ns);

/* LVD_OK: it serves. LVD_E_PEER_GONE: it is gone; load it again. LVD_E_CORRUPT: it wrote values
 * that the protocol cannot produce, and was killed. */
LVD_API lvd_status lvd_unit_state(const lvd_unit *unit);
/* Process id of the unit; 0: the unit is a core. */
LVD_API int32_t lvd_unit_process(const lvd_unit *unit);

/* ---- the side that is loaded ---------------------------------------------------------------- */

/* True if another process has loaded this one as a unit and lvd_unit_serve has not run yet. */
LVD_API bool lvd_unit_is_loaded(void);

/* Serves calls, as fibers of `app` (null: an application of its own on all cores), until the parent
 * unloads it (LVD_OK), the parent is gone (LVD_E_PEER_GONE), or `app` ends otherwise (status of
 * lvd_app_wait). If a fiber has not returned two seconds later, the process is ended. LVD_E_STATE:
 * this process was not loaded as a unit. */
LVD_API lvd_status lvd_unit_serve(lvd_app *app);

/* The unit that represents the parent, for streams and calls as to any unit, with two limits:
 * argument and result have at most 256 bytes each (LVD_E_LIMIT), and the parent must permit the
 * procedure's name (lvd_unit_options.may_call; otherwise lvd_call_wait returns LVD_E_NOT_FOUND).
 * Null: this process does not serve. */
LVD_API lvd_unit *lvd_unit_parent(void);

/* ---- streams between the two ---------------------------------------------------------------- */

/* Opens the stream named options->name (at most 31 bytes) between the two processes. Each side
 * opens it, in any order; the side that puts is the sender, the side that gets the receiver. The
 * side that opens first determines the capacity, the receiver the threshold. A name can be reused
 * after both sides have opened it. A stream destroyed while one end was never taken ends for the
 * other side. Two loaded processes cannot stream to each other. A child requests it from its parent
 * and waits at most options->timeout_ns for the reply: LVD_E_TIMEOUT. Errors: LVD_E_ARGUMENT: the
 * other side has another element size, the name is too long, or the unit is a core;
 * LVD_E_PEER_GONE: the unit is gone; LVD_E_LIMIT: the segment is full (lvd_unit_options.memory);
 * and those of lvd_stream_create. */
LVD_API lvd_status lvd_stream_open(lvd_unit *unit, const lvd_stream_options *options,
                                   lvd_stream **out);

#ifdef __cplusplus
}
#endif
#endif
