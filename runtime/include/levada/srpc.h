/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streaming RPC: the interface of the paper "Streaming RPC" (SiPS 2008), under its own names,
 * implemented by Levada's calls (call.h) and streams (stream.h).
 *
 *   pb_load(exec_name); pb_boot();             start-up
 *   TASKID t = pb_create("name", prio);        a task of a registered procedure
 *   pb_rpc(t); pb_wait(t);                     asynchronous invocation; waits for its end
 *   pb_signal(t, data); pb_wait_signal(&data)  signals between procedures
 *   stream_create(id); stream_put(id, x); stream_push(id); stream_get(id, x); stream_pop(id)
 *   stream_rpc(remote, transmitter)            opens a stream: both run concurrently
 *   pb_release(t); pb_finish();                release of resources
 *
 * Both sides identify a stream by its number: each side creates it; the side that puts is the
 * sender, the side that gets the receiver. The first element put or got determines the element
 * size. When a procedure returns or a thread ends, its streams end. Functions that return void in
 * the paper return an lvd_status here, which may be ignored.
 *
 * Since statuses may be ignored, obvious misuse is also reported, in one line on standard error: a
 * name without a procedure, a stream that was not created, elements of two sizes
 * (pb_set_diagnostics).
 *
 * One program per process. Thread-safety: every function may be called by any thread and any
 * procedure, unless stated otherwise. C17 (with GNU's statement expressions) and C++17.
 *
 * Source: "Streaming RPC" (SiPS 2008), sections 2.1 to 3.3. */
#ifndef LVD_SRPC_H
#define LVD_SRPC_H

#include <levada/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int STREAM_ID; /* 0 ... PB_STREAMS - 1 */
typedef struct srpc_task *TASKID;

#define PB_STREAMS   1024 /* number of stream numbers */
#define PB_PROCESSES 64   /* maximum number of loaded processes at a time */

/* ---- start-up and release ------------------------------------------------------------------- */

/* Loads a program. If `exec_name` is null or names the calling program itself, procedures run on
 * the cores of this process, as without this call. Any other program is started as a process; it
 * must be linked with this library and call pb_boot. Tasks of procedures that it registers run in
 * it, tasks of procedures that are registered here can be created in it, and both processes share
 * the stream numbers. At most PB_PROCESSES at a time (LVD_E_LIMIT). After a process is gone
 * (LVD_E_PEER_GONE from all waits for it), it can be loaded and its tasks created again. May be
 * called by threads only, not by procedures. Errors as for lvd_unit_load (process.h). */
LVD_API lvd_status pb_load(const char *exec_name);
/* The number of the process loaded last; 0: none. */
LVD_API int pb_process(void);
/* Starts the runtime on all available cores; otherwise the first call that needs it does. In a
 * loaded process it serves the requests of the process that loaded it, and returns when that
 * process releases it (LVD_E_STOPPED) or is gone (LVD_E_PEER_GONE). */
LVD_API lvd_status pb_boot(void);
/* Waits until all procedures have returned, and releases all resources. LVD_OK, or why the program
 * failed: LVD_E_DEADLOCK, LVD_E_FAULT. LVD_E_TIMEOUT: some procedures have not returned
 * (pb_set_timeout); nothing is released; call it again. */
LVD_API lvd_status pb_finish(void);
/* Describes why the last pb_finish failed, with what loaded processes reported when they failed.
 * Never null; owned by the library, valid until the next pb_boot. */
LVD_API const char *pb_error_text(void);
/* Sets whether misuse is reported.
 *
 * On (the default): a call that is a misuse (an unknown name, no task, a stream that the caller
 * has not created, an element of another size, ...) or that ends in a deadlock prints one line on
 * standard error, each line once, at most 32 lines. pb_finish then returns the status of the first
 * of them, unless the program has failed otherwise; a process that would exit with 0, also by
 * quick_exit, exits with 1; a program in a host fails. Lines of a loaded process, or of a
 * processor behind a window, are printed by the process that loaded it, and count there. A stream
 * that the other side has not created after a wait of two seconds is reported, too; that is a hint
 * and changes no status.
 *
 * Off: for a program that checks all statuses. Nothing is printed, and no status is changed. */
LVD_API void pb_set_diagnostics(bool on);
/* Sets the timeout in ns (negative: none) of every wait without a timeout of its own, until
 * pb_finish has returned. It bounds pb_wait, pb_release and pb_finish, and requests to another
 * process by pb_create, pb_create_in, pb_signal and pb_release. They then return LVD_E_TIMEOUT
 * (pb_create: null) and can be repeated. Each stream has its own timeout (stream_set_timeout). */
LVD_API void pb_set_timeout(int64_t timeout_ns);
/* Sets the stack size in bytes of tasks that are started from now on. It is rounded up to 16 KiB *
 * 2^k, like lvd_fiber_options.stack; 0 (the default): 64 KiB. LVD_E_ARGUMENT: more than 8 MiB. */
LVD_API lvd_status pb_stack_size(size_t bytes);
/* The status of the caller's last call that returned null instead of a task, or that was a misuse.
 * Valid until the caller's next wait. */
LVD_API lvd_status pb_status(void);

/* ---- procedures ----------------------------------------------------------------------------- */

/* At file scope: registers `function` under the name "function" when the program is loaded. */
#define PB_PROCEDURE(function)                                                                     \
  __attribute__((constructor)) static void pb_register_##function(void) {                          \
    pb_register(#function, __extension__(void *)(function));                                       \
  }
/* Registers `function`: void f(void), or void f(void *), which is passed null. LVD_E_STATE: the
 * name is taken by another function. LVD_E_ARGUMENT: a name of 64 bytes or more. */
LVD_API lvd_status pb_register(const char *name, void *function);

/* Creates a task of a registered procedure in the process that registered the name: a loaded
 * process, or the one that loaded this process; otherwise here, round-robin over the cores. The
 * caller owns it and frees it by pb_release. `prio` is clamped to -4 ... 3; higher runs first. On
 * failure returns null, and pb_status the reason: LVD_E_NOT_FOUND: no process has registered the
 * name; LVD_E_STATE: several of those processes have, which is ambiguous; LVD_E_PEER_GONE: no live
 * process has, and one was lost before it replied; LVD_E_ARGUMENT: a name of 64 bytes or more;
 * LVD_E_TIMEOUT; LVD_E_MEMORY. */
LVD_API TASKID pb_create(const char *p_task, int prio);
/* Like pb_create, but only in the process of this number (pb_process); 0: here. LVD_E_PEER_GONE: no
 * such process. */
LVD_API TASKID pb_create_in(int process, const char *p_task, int prio);
/* Starts the task; returns at once. LVD_E_STATE: it is running. */
LVD_API lvd_status pb_rpc(TASKID tid);
/* Waits until the task has returned; it can then be started again. LVD_E_STATE: it was not
 * started, or another caller already waits for it. After a wait that ends early (LVD_E_CANCELLED
 * and the like) the task is still running and can be waited for. */
LVD_API lvd_status pb_wait(TASKID tid);
/* Like pb_wait, with a timeout in ns (negative: none): LVD_E_TIMEOUT. With 0 it only checks. */
LVD_API lvd_status pb_wait_timeout(TASKID tid, int64_t timeout_ns);
/* Describes why pb_wait returned LVD_E_FAULT: which procedure failed, and how; for a task of
 * another process, as that process reported it. Writes at most `size` bytes including the
 * terminating null; returns the full length in bytes; 0: no failure. */
LVD_API size_t pb_task_error_text(TASKID tid, char *text, size_t size);
/* Cancels the task: its waits return LVD_E_CANCELLED. LVD_E_STATE: it was not started, or has
 * already been waited for. */
LVD_API lvd_status pb_cancel(TASKID tid);
/* Waits for the task if it is running, and frees it; if the wait fails (as for pb_wait), it is not
 * freed. Later uses of the handle return LVD_E_STATE until another task reuses its place; after
 * pb_finish it must not be used. */
LVD_API lvd_status pb_release(TASKID tid);

/* Ends the calling procedure from any call depth: the rest of its callers is skipped (in C++ no
 * destructor runs), and its streams end. Returns only on error, LVD_E_STATE: the caller is not a
 * procedure, or has forks that are not joined. */
LVD_API lvd_status pb_return(void);

/* Signals the task, with 32 bits of data. LVD_E_STATE: it has not yet consumed the previous
 * signal. */
LVD_API lvd_status pb_signal(TASKID tid, u32 data);
/* The calling procedure waits for a signal to its task, at most `timeout_ns` ns (negative: no
 * limit), and stores the signal's data in *data. */
LVD_API lvd_status pb_wait_signal(u32 *data, int64_t timeout_ns);

/* ---- streams -------------------------------------------------------------------------------- */

/* Creates the caller's side of a stream. LVD_E_STATE: the caller, or two others, have already
 * created it. A number is free again when both sides have ended; until then, a side that has closed
 * the stream cannot create it again. LVD_E_ARGUMENT: no such number. */
LVD_API lvd_status stream_create(STREAM_ID sID);
/* Determines that the other side is in the process of this task. Call it before the first element.
 * By default, a stream of a procedure leads to the process that invoked the procedure; that of the
 * transmitter of a stream_rpc, to the process of the remote procedure; any other, to the process
 * loaded last, or to the one that loaded this process. Both sides may always be in one process.
 * LVD_E_STATE: elements have been transferred. */
LVD_API lvd_status stream_with(STREAM_ID sID, TASKID tid);
/* Sets the capacity in elements, and the number of elements that wake the receiver (0: automatic).
 * Call it before the first element. LVD_E_ARGUMENT: more than LVD_CHANNEL_CAPACITY. */
LVD_API lvd_status stream_configure(STREAM_ID sID, u32 capacity, u32 threshold);
/* Sets the timeout in ns (negative: none) of every wait at the stream, including the wait for the
 * other process to open it. */
LVD_API lvd_status stream_set_timeout(STREAM_ID sID, int64_t timeout_ns);
/* Ends the caller's side of the stream before the caller returns. LVD_E_STATE: it has already
 * ended, or the caller has none. */
LVD_API lvd_status stream_close(STREAM_ID sID);

/* The operations; stream_put and stream_get (below) are macros for the first two. They copy `size`
 * bytes. In C, stream_put takes elements of at most LVD_FRAME_MAX bytes; srpc_put takes larger
 * ones, too. LVD_E_STATE, from each: the caller is not a side of the stream (it has not created it,
 * or failed to), or this operation belongs to the other side. push, pop and flush require an
 * earlier put or get by the caller. Other statuses are those of stream.h. */
LVD_API lvd_status srpc_put(STREAM_ID sID, const void *element, size_t size);
LVD_API lvd_status srpc_get(STREAM_ID sID, void *element, size_t size);
LVD_API lvd_status stream_push(STREAM_ID sID);
LVD_API lvd_status stream_pop(STREAM_ID sID);
LVD_API lvd_status stream_flush(STREAM_ID sID);
/* The underlying stream, for spans and lvd_stream_select; null before the first put or get. Owned
 * by the library. */
LVD_API lvd_stream *stream_handle(STREAM_ID sID);

/* Functions behind stream_rpc. */
LVD_API TASKID srpc_rpc_task(void *remote, void *transmitter);
LVD_API TASKID srpc_rpc_function(void *remote, void *transmitter);

#ifdef __cplusplus
}

#ifdef SRPC_AS_PRINTED
#error "SRPC_AS_PRINTED is for C: procedures that are left so run no destructors"
#endif
template <class T> static inline lvd_status stream_put(STREAM_ID sID, const T &x) {
  static_assert(__is_trivially_copyable(T), "elements of a stream are copied as bytes");
  return srpc_put(sID, &x, sizeof x);
}
template <class T> static inline lvd_status stream_get(STREAM_ID sID, T &x) {
  static_assert(__is_trivially_copyable(T), "elements of a stream are copied as bytes");
  return srpc_get(sID, &x, sizeof x);
}
template <class F> static inline TASKID stream_rpc(TASKID remote, F transmitter) {
  return srpc_rpc_task(remote, (void *)transmitter);
}
template <class R, class F> static inline TASKID stream_rpc(R remote, F transmitter) {
  return srpc_rpc_function((void *)remote, (void *)transmitter);
}

#else

/* The forms printed in the paper, for listings that check no status: with SRPC_AS_PRINTED defined
 * before this header, put and get have no value, and a procedure returns at a put or get that
 * fails (pb_return). So a procedure like the paper's pipe, which loops for ever, ends when its
 * source does. A caller that is not a procedure continues. C only: no destructors would run. */
#ifdef SRPC_AS_PRINTED
#define SRPC_STATUS_(status) ((void)((status) == LVD_OK || pb_return()))
#else
#define SRPC_STATUS_(status) (status)
#endif
#define stream_put(sID, x)                                                                         \
  __extension__({                                                                                  \
    LVD_STATIC_ASSERT(sizeof(x) <= LVD_FRAME_MAX,                                                  \
                      "stream_put copies the element into the caller's frame, which may be 4096 "  \
                      "bytes at most: put a larger one with srpc_put(sID, &x, sizeof x)");         \
    __typeof__(x) srpc_x_ = (x);                                                                   \
    SRPC_STATUS_(srpc_put((sID), &srpc_x_, sizeof srpc_x_));                                       \
  })
#define stream_get(sID, x) SRPC_STATUS_(srpc_get((sID), &(x), sizeof(x)))

/* Starts `transmitter` and `remote` (a task or a function) concurrently, on different cores if
 * there are two; the transmitter runs in this process unless it is a task of another one. Returns
 * the task of `remote`, for pb_wait. Null: neither was started; pb_status has the reason, as for
 * pb_rpc. */
#define stream_rpc(remote, transmitter)                                                            \
  _Generic((remote), TASKID                                                                        \
           : srpc_rpc_task, default                                                                \
           : srpc_rpc_function)((void *)(remote), (void *)(transmitter))
#endif

#endif
