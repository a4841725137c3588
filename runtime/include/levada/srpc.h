/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streaming RPC: the interface of the paper, by its own names, on Levada's calls and streams.
 *
 *   pb_load(exec_name); pb_boot();             start-up
 *   TASKID t = pb_create("name", prio);        a procedure, by the name it is registered under
 *   pb_rpc(t); pb_wait(t);                     invocation: asynchronous; its end
 *   pb_signal(t, data); pb_wait_signal(&data)  signals between procedures
 *   stream_create(id); stream_put(id, x); stream_push(id); stream_get(id, x); stream_pop(id)   data
 *   stream_rpc(remote, transmitter)            opens a stream: both run, at the same time
 *   pb_release(t); pb_finish();                release of what was claimed
 *
 * A stream is known by its number, from both sides: each side creates it, and who puts is the
 * sender, who gets the receiver. Elements are of the type of the first that is put or got. A
 * procedure that returns ends its streams, and so does a thread that ends. Where the paper says void, an lvd_status is returned,
 * which may be ignored.
 *
 * Since statuses may be ignored, what cannot have been meant is also told in one line on the error
 * output: a name that no procedure has, a stream that was not created, elements of two sizes
 * (pb_set_diagnostics).
 *
 * One program a process. Everything here is for any thread and for procedures. C17 (with GNU's
 * statement expressions) and C++17.
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

#define PB_STREAMS   1024
#define PB_PROCESSES 64

/* ---- start-up and release ------------------------------------------------------------------- */

/* Null, or the program itself: procedures run on the cores of this process, which is also what
 * happens without this call. Another program, which must be linked with this library, and call
 * pb_boot: it is started, and from then on tasks that it has registered live there, tasks that this
 * one has registered can be created there, and numbers of streams are known to both. At most
 * PB_PROCESSES at a time (LVD_E_LIMIT). When one is gone (LVD_E_PEER from all that waits for it) it
 * can be loaded anew, and tasks be created anew. Threads only. Errors as lvd_unit_load
 * (levada/process.h). */
LVD_API lvd_status pb_load(const char *exec_name);
/* The number of the process that was loaded last; 0: none. */
LVD_API int pb_process(void);
/* Starts the runtime, on all cores there are. Without it, the first call that needs it does. In a
 * process that another one has loaded it runs what that asks for, and returns when it is let go
 * (LVD_E_STOPPED), or when the other is gone (LVD_E_PEER). */
LVD_API lvd_status pb_boot(void);
/* Waits until all procedures have returned, and releases everything. LVD_OK, or why the program
 * failed: LVD_E_DEADLOCK, LVD_E_FAULT. In words pb_why says it, and what loaded processes said when
 * they failed, until the next pb_boot.
 * LVD_E_TIME: some have not returned (pb_time_limit); nothing is released, and it may be called
 * again. */
LVD_API lvd_status pb_finish(void);
LVD_API const char *pb_why(void);
/* On, as it is at first: a call that cannot have been meant as it is (of an unknown name, on no task,
 * on a stream that the caller has not created, with an element of another size, ...), or that ends in
 * a deadlock, prints one line on the error output that says what is wrong: each line once, and at most
 * 32. pb_finish then returns the status of the first of them, unless the program has failed otherwise;
 * a process that would exit with 0 exits with 1, and so does one that calls quick_exit; a program in a
 * host fails. The lines of a loaded process, and of a processor behind a window, are printed by the
 * process that has loaded it, and count there.
 * A stream that no other side has created, and at which a side has waited for two seconds, is named,
 * too. This is a hint: it changes no status.
 * Off: for a program that looks at all statuses. Nothing is printed, and no status is changed. */
LVD_API void pb_set_diagnostics(bool on);
/* The limit of every wait that has none of its own, until pb_finish has returned; negative: none. It
 * bounds pb_wait and pb_release, pb_finish, and what is asked of another process: by pb_create,
 * pb_create_in, pb_signal and pb_release. They return LVD_E_TIME then (pb_create null), and nothing
 * is lost. Streams have a limit each (stream_time_limit). */
LVD_API void pb_time_limit(int64_t timeout_ns);
/* The stacks of the tasks that are started from now on, in bytes, as lvd_fiber_options.stack: rounded up to
 * 16 KiB * 2^k; 0, as at first: 64 KiB. LVD_E_ARGUMENT: more than 8 MiB. */
LVD_API lvd_status pb_stack_size(size_t bytes);
/* The status of the caller's last call that has returned null in place of a task, or that was a misuse. To
 * be asked before the caller waits for anything. */
LVD_API lvd_status pb_status(void);

/* ---- procedures ----------------------------------------------------------------------------- */

/* A procedure `function` becomes known as "function"; at file scope. */
#define PB_PROCEDURE(function)                                                                     \
  __attribute__((constructor)) static void pb_register_##function(void) {                          \
    pb_register(#function, __extension__(void *)(function));                                       \
  }
/* `function`: void f(void) or void f(void *), which is given null. LVD_E_STATE: another one is known by
 * that name. LVD_E_ARGUMENT: a name of 64 bytes or more. */
LVD_API lvd_status pb_register(const char *name, void *function);

/* Makes a task of a registered procedure. It lives in the process that has registered the name: one
 * of those that were loaded, or the one that has loaded this; else here, where the cores take tasks
 * in turn. Null, and pb_status says why: LVD_E_UNKNOWN: nobody has registered it; LVD_E_STATE: more
 * than one of those processes has, and it is not clear which is meant; LVD_E_TIME; LVD_E_MEMORY.
 * LVD_E_PEER: nobody has that is still there, and a process went before it could say whether it has;
 * LVD_E_ARGUMENT: a name of 64 bytes or more, which nobody can have registered.
 * Higher `prio` goes first, -4 ... 3; one beyond these counts as the nearest of them. */
LVD_API TASKID pb_create(const char *p_task, int prio);
/* The same in the process of this number (pb_process), and nowhere else; 0: here. LVD_E_PEER: there
 * is no such process. */
LVD_API TASKID pb_create_in(int process, const char *p_task, int prio);
/* Starts it; returns at once. LVD_E_STATE: it runs. */
LVD_API lvd_status pb_rpc(TASKID tid);
/* Waits until it has returned; it can be started again. LVD_E_STATE: it was not started, or somebody
 * waits for it already. A wait that ends before (LVD_E_CANCELLED and the like) leaves it as it is:
 * it runs, and can be waited for. */
LVD_API lvd_status pb_wait(TASKID tid);
/* The same with a time limit (negative: none): LVD_E_TIME. With 0 it only looks. */
LVD_API lvd_status pb_wait_for(TASKID tid, int64_t timeout_ns);
/* In words, why pb_wait returned LVD_E_FAULT: which procedure has failed, and how; of a task in another
 * process it is what that has said. Writes at most `size` bytes with the terminating null; returns
 * the length it would have; 0: nothing has failed. */
LVD_API size_t pb_task_why(TASKID tid, char *text, size_t size);
/* Its waits return LVD_E_CANCELLED. LVD_E_STATE: it was not started, or has been waited for. */
LVD_API lvd_status pb_cancel(TASKID tid);
/* Waits for it if it runs, and gives it back; or not, if it could not wait for it (as pb_wait). Who
 * speaks of it afterwards gets LVD_E_STATE, until its place is another task's; after pb_finish nobody
 * may. */
LVD_API lvd_status pb_release(TASKID tid);

/* The procedure that calls returns, from however deep: what its callers have still to do is not done
 * (in C++ no destructor runs), its streams end. Returns only to say LVD_E_STATE: the caller is no
 * procedure, or has forks that are not joined. */
LVD_API lvd_status pb_return(void);

/* Signals the task, with data. LVD_E_STATE: it has not taken the signal before. */
LVD_API lvd_status pb_signal(TASKID tid, u32 data);
/* The procedure that calls waits for a signal; negative time limit: none. */
LVD_API lvd_status pb_wait_signal(u32 *data, int64_t timeout_ns);

/* ---- streams -------------------------------------------------------------------------------- */

/* LVD_E_STATE: the caller has created it already, or two others have. A number is free again when
 * both sides are done with it: who has closed it cannot create it anew before. LVD_E_ARGUMENT: no
 * such number. */
LVD_API lvd_status stream_create(STREAM_ID sID);
/* Before the first element: its other side is in the process where this task lives. Without it, a
 * stream leads to where the procedure that creates it was called from; of the transmitter of a
 * stream_rpc, to where the remote one lives; of all others, to the process that was loaded last, or
 * has loaded this. Both sides may always be in one process. LVD_E_STATE: too late. */
LVD_API lvd_status stream_with(STREAM_ID sID, TASKID tid);
/* Before the first element: how many it holds, and how many wake the receiver (0: as it thinks
 * best). LVD_E_ARGUMENT: more than a channel takes (LVD_CHANNEL_CAPACITY). */
LVD_API lvd_status stream_configure(STREAM_ID sID, u32 capacity, u32 threshold);
/* The limit of every wait on it, also for the other process to open it; negative: none. */
LVD_API lvd_status stream_time_limit(STREAM_ID sID, int64_t timeout_ns);
/* The caller's side ends before it returns. LVD_E_STATE: it has ended already, or is not the
 * caller's. */
LVD_API lvd_status stream_close(STREAM_ID sID);

/* The library's part of the macros; srpc_put also puts an element that is larger than stream_put takes in C
 * (LVD_FRAME_MAX). LVD_E_STATE, from each of them: the caller is no side of the
 * stream (it has not created it, or could not), or the end is the other side's. To push, pop and
 * flush it must have put or got before. */
LVD_API lvd_status srpc_put(STREAM_ID sID, const void *element, size_t size);
LVD_API lvd_status srpc_get(STREAM_ID sID, void *element, size_t size);
LVD_API lvd_status stream_push(STREAM_ID sID);
LVD_API lvd_status stream_pop(STREAM_ID sID);
LVD_API lvd_status stream_flush(STREAM_ID sID);
/* The stream behind the number, for spans and selecting; null: nothing was put or got yet. */
LVD_API lvd_stream *stream_handle(STREAM_ID sID);

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

/* As the paper prints them, for listings that look at no status: with SRPC_AS_PRINTED defined before
 * this header, put and get have no value, and a procedure whose put or get fails returns there
 * (pb_return): one like the paper's pipe, which has no end of its own, ends when its source does.
 * What is no procedure goes on. C only: nothing would run the destructors. */
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

/* Starts `transmitter` and `remote` (a task, or a function), each on a core of its own if there are two:
 * the transmitter here, unless that is the task's. Both at the same time; returns remote's task, to be waited for. Null: neither runs, and pb_status says why, as
 * pb_rpc would. */
#define stream_rpc(remote, transmitter)                                                            \
  _Generic((remote), TASKID                                                                        \
           : srpc_rpc_task, default                                                                \
           : srpc_rpc_function)((void *)(remote), (void *)(transmitter))
#endif

#endif
