/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runtime: one worker thread per core. Applications are loaded, started, paused, stopped and
 * unloaded while others run.
 *
 * Unless stated otherwise, every function here is thread-safe and may be called by any thread that
 * is not a worker. All functions that return an lvd_status return LVD_E_ARGUMENT for a null handle
 * or an index that is out of range. The *running set* has the workers that may run: all of cores
 * that have not been reserved. */
#ifndef LVD_RUNTIME_H
#define LVD_RUNTIME_H

#include <levada/actor.h>
#include <levada/native.h>
#include <levada/wait.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------ */
/* The runtime                                                                                */
/* ------------------------------------------------------------------------------------------ */

typedef struct lvd_runtime lvd_runtime;

/* A worker runs the ready actor that priority and reserved rates (lvd_app_reserve_rate) select;
 * among equals the one that has been ready longest. With `round_robin`, equals run cyclically in
 * the order of loading, each at most once per round. Fibers are scheduled the same way in both
 * cases. */
typedef struct lvd_runtime_options {
  uint32_t workers; /* 0: as many as the affinity mask and the container's CPU quota allow */
  uint32_t spin_us; /* microseconds that an idle worker polls before it sleeps; 0: 30 */
  bool no_spin;     /* sleep without polling */
  bool no_pin;      /* do not pin workers to cores */
  bool round_robin; /* run equal actors in the order of loading */
  /* ns of CPU time for one action before its application is stopped; 0: no limit */
  uint64_t action_time_limit_ns;
  uint32_t entities; /* maximum number of live actors and fibers; 0: 262144 */
  /* Real-time priority, 1 to LVD_REALTIME_MAX, of the threads that run applications: they run
   * before all threads of the normal scheduling class. 0: normal class. */
  uint32_t realtime;
  /* Limit of console output per application, in bytes per second (lvd_app_throttle_output in
   * native.h), with a burst of one second's output. 0: no limit. */
  uint64_t output_bytes_per_s;
  /* Called with `argument` on a thread of the runtime when a worker gets work after a period in
   * which all were idle (lvd_runtime_is_idle). Must not block or call a function that waits for a
   * worker. May be null. */
  void (*on_wakeup)(void *argument);
  void *argument;
} lvd_runtime_options;

/* The two priorities above it are reserved: the lower for urgent fibers, the higher for threads
 * that serve the workers. */
#define LVD_REALTIME_MAX 97

/* Does the system allow this process a runtime of that real-time priority? Needs root or a
 * sufficient RLIMIT_RTPRIO (`ulimit -r`). */
LVD_API bool lvd_realtime_allowed(uint32_t realtime);

/* Creates a runtime and starts its workers. `options` may be null. On LVD_OK the caller owns *out
 * and frees it with lvd_runtime_destroy. LVD_E_LIMIT: the system does not allow the real-time
 * priority. */
LVD_API lvd_status lvd_runtime_create(const lvd_runtime_options *options, lvd_runtime **out);

/* Stops and unloads all applications, joins the workers, frees the runtime. */
LVD_API void lvd_runtime_destroy(lvd_runtime *rt);

/* Makes the calling thread a service thread: one that controls the runtime or wakes its fibers. If
 * the workers have a real-time priority, the thread gets a higher one, so that computing workers
 * cannot starve it; otherwise nothing changes. Threads that it creates start in the normal class.
 */
LVD_API void lvd_thread_set_service_priority(const lvd_runtime *rt);
/* The real-time priority of service threads of the runtime that has the caller's worker; 0: the
 * normal class, or the caller is not on a worker. For a library that has a service thread but no
 * runtime handle. */
LVD_API uint32_t lvd_service_priority(void);

/* True if all workers have been idle for at least 500 ms, so that no thread of the runtime has a
 * reason to wake up. The next worker that gets work calls `on_wakeup` of the options. */
LVD_API bool lvd_runtime_is_idle(const lvd_runtime *rt);

/* Number of workers, including those that have no core in the running set. */
LVD_API uint32_t lvd_worker_count(const lvd_runtime *rt);

/* Removes the core of `worker` from the running set: the worker finishes its firing, its entities
 * (actors and fibers) migrate to other workers, and it sleeps. Returns when that is done.
 * LVD_E_STATE: it is the last core. lvd_core_release puts the core back; entities return only if
 * they are moved or placed again. */
LVD_API lvd_status lvd_core_reserve(lvd_runtime *rt, uint32_t worker);
/* Returns a reserved core to the running set. LVD_E_STATE: it is in the running set. */
LVD_API lvd_status lvd_core_release(lvd_runtime *rt, uint32_t worker);
/* lvd_core_reserve with a timeout in ns (negative: none). LVD_E_TIMEOUT: an entity has not left in
 * that time; `why` (may be null) names it, and nothing has changed. */
LVD_API lvd_status lvd_core_reserve_timeout(lvd_runtime *rt, uint32_t worker, int64_t timeout_ns,
                                            char *why, size_t why_size);
/* Reserves the core for `app`: actors of `app` stay on it or may be moved to it (lvd_app_move),
 * all other entities leave. In force until lvd_core_release or lvd_app_unload. When another
 * application continues from `app` (lvd_app_upgrade_from), the reservation passes to it. */
LVD_API lvd_status lvd_core_reserve_for(lvd_app *app, uint32_t worker);
/* Reserves for `app`, in the same way, a core that lvd_core_reserve has already removed from the
 * running set. LVD_E_STATE: it is in the running set, or reserved for an application. */
LVD_API lvd_status lvd_core_transfer(lvd_app *app, uint32_t worker);

/* ------------------------------------------------------------------------------------------ */
/* Applications                                                                               */
/* ------------------------------------------------------------------------------------------ */

typedef struct lvd_option {
  const char *name, *value;
} lvd_option;

typedef struct lvd_app_options {
  const char *name; /* null: the name of the network */
  /* worker index of each actor; null: the runtime distributes them */
  const uint32_t *placement;
  const lvd_option *option; /* options that natives can query (lvd_app_option) */
  uint32_t option_count;
  int32_t priority; /* added to the priority of each actor */
  /* elements of channels without a capacity of their own; 0: by element size */
  uint32_t capacity;
  /* Channels keep their capacity. Otherwise, where the application is deadlocked only because a
   * channel is full, the smallest full channel of the cycle of waits grows, and the application
   * continues. Channels with an end of the program (LVD_EXTERNAL) never grow. */
  bool fixed_buffers;
  /* bytes of actor state and channel rings (lvd_app_memory) above which no channel grows; 0: what
   * lvd_app_load allocates, and LVD_GROWTH_BYTES more. lvd_app_load itself does not check it. */
  uint64_t memory_max;
} lvd_app_options;

#define LVD_GROWTH_BYTES (UINT64_C(64) << 20)

typedef enum lvd_app_state {
  LVD_APP_LOADED, /* not started */
  LVD_APP_RUNNING,
  LVD_APP_PAUSED,
  LVD_APP_ENDED, /* lvd_app_wait returns the outcome */
  LVD_APP_ENDING /* no firing begins any more; one may still run, or files may be closing */
} lvd_app_state;

/* Instantiates a network: allocates actor state and channels. Nothing runs before lvd_app_start.
 * `net` must outlive lvd_app_unload; the caller frees *out with that function. Errors:
 * LVD_E_ABI, LVD_E_ARGUMENT (a port unconnected or connected twice, or sizes that differ),
 * LVD_E_MEMORY, LVD_E_LIMIT; `why` (may be null) then receives a sentence, at most why_size bytes.
 */
LVD_API lvd_status lvd_app_load(lvd_runtime *rt, const lvd_network *net,
                                const lvd_app_options *options, lvd_app **out, char *why,
                                size_t why_size);

/* Bytes that lvd_app_load would allocate for actor state and channel rings. Same errors. */
LVD_API lvd_status lvd_app_size(lvd_runtime *rt, const lvd_network *net,
                                const lvd_app_options *options, uint64_t *bytes, char *why,
                                size_t why_size);

/* Bytes of its actor state and channel rings, with those that have grown. */
LVD_API uint64_t lvd_app_memory(lvd_app *app);

/* Starts a loaded application and returns at once. */
LVD_API lvd_status lvd_app_start(lvd_app *app);
/* Like lvd_app_start, but paused: nothing runs before lvd_app_resume. Both return LVD_E_STATE if
 * the application was already started or has ended. From any thread. */
LVD_API lvd_status lvd_app_start_paused(lvd_app *app);

/* Sets or clears a rate reservation. An application with a reserved rate runs before others of its
 * priority, as long as that leaves the others 1/16 of the worker's time. The caller enforces the
 * rate's upper bound by lvd_app_pause. From any thread. */
LVD_API lvd_status lvd_app_reserve_rate(lvd_app *app, bool reserved);

/* Pauses the application. No actor of it runs when this returns; the contents of channels are
 * kept. */
LVD_API lvd_status lvd_app_pause(lvd_app *app);
/* Like lvd_app_pause, but waits at most `timeout_ns` ns for firings to finish. LVD_E_TIMEOUT: a
 * firing is still running; it is that actor's last one until lvd_app_resume. */
LVD_API lvd_status lvd_app_pause_timeout(lvd_app *app, int64_t timeout_ns);
/* Resumes a paused application. All three: LVD_E_STATE if it was not started or has ended. */
LVD_API lvd_status lvd_app_resume(lvd_app *app);

/* Drains the application: actors without inputs fire no more, elements in flight are processed,
 * then the application ends. Returns at once. A source that waits for input
 * (lvd_wait_input_restartable in native.h) ends at that point if its firing has had no effect yet
 * (LVD_CLASS_RESTARTABLE, lvd_actor.in_guard); any other firing that waits runs to its end first.
 * LVD_E_NOT_FOUND: every actor has inputs. A C program (program.h) is asked to return
 * (lvd_app_is_draining, lvd_wait_input_restartable in native.h); if it ignores that, it does not
 * end. */
LVD_API lvd_status lvd_app_drain(lvd_app *app);
/* Cancels lvd_app_drain of a C program that has not observed the request yet. LVD_E_STATE: it has
 * observed it, or is not draining. */
LVD_API lvd_status lvd_app_cancel_drain(lvd_app *app);

/* Transfers the state of `old` to `app`. `old` must be paused or not started; `app` must be loaded
 * and not started. Copies actor state (lvd_state_schema) by actor name and class, whatever the
 * parameter values, and channel contents by the ports that the channel connects. Persistent data of
 * natives (lvd_app_persistent_data in native.h) moves when `old` ends.
 *
 * On success: call lvd_app_exit(old), wait until it has ended, then start `app`; do not unload
 * `app` before. Code of `old` and of its predecessors must stay loaded until `app` is unloaded or
 * lvd_app_has_unclaimed_data is false.
 *
 * On failure `old` is unchanged and may be resumed; `app` must be unloaded. LVD_E_STATE: not
 * possible now, for example because an actor is in the middle of a firing, or a channel of `app`
 * is too small for what the old one holds; `why` (may be null) then receives a sentence, at most
 * why_size bytes. LVD_E_MEMORY. */
LVD_API lvd_status lvd_app_upgrade_from(lvd_app *app, lvd_app *old, char *why, size_t why_size);
/* Lists state that actors common to both would not transfer because the class or the type of a
 * variable differs: one line each. Writes at most `size` bytes; returns the full length. */
LVD_API size_t lvd_app_reset_report(const lvd_app *app, const lvd_app *old, char *text,
                                    size_t size);

/* When `old` ends successfully by itself, its persistent data passes to `app`, which must be loaded
 * and not started (null: it is freed with `old`). So a C program continues from another one that
 * drains. The lifetime of the code of `old` is as for lvd_app_upgrade_from. */
LVD_API lvd_status lvd_app_set_data_successor(lvd_app *app, lvd_app *old);

/* True if the application holds persistent data that no native has requested yet. Functions in the
 * code of `old` free that data, so this code must stay loaded. */
LVD_API bool lvd_app_has_unclaimed_data(lvd_app *app);

/* Holds the sources if `hold` is set, else lets them go: while they are held, actors without inputs
 * begin no firing, and all others continue until nothing is left to do. Returns at once. */
LVD_API lvd_status lvd_app_hold_sources(lvd_app *app, bool hold);

/* Stops the application between two firings; lvd_app_wait then returns LVD_E_STOPPED. A system
 * call in which an actor or native blocks for 100 ms or more is interrupted by a signal (EINTR),
 * repeatedly until it returns. */
LVD_API lvd_status lvd_app_stop(lvd_app *app);
/* Like lvd_app_stop, but waits at most `timeout_ns` ns. LVD_E_TIMEOUT: the application ends when
 * the running firing has ended. */
LVD_API lvd_status lvd_app_stop_timeout(lvd_app *app, int64_t timeout_ns);

/* Waits at most `timeout_ns` ns (negative: no limit) until the application has ended. LVD_OK: it
 * ended by itself (quiescent, or lvd_app_exit). LVD_E_FAULT, LVD_E_DEADLOCK, LVD_E_STOPPED: it
 * failed or was stopped. LVD_E_TIMEOUT: it is still running.
 *
 * A quiescent application, in which no actor can fire, is deadlocked if an actor waits for room
 * (unless its channel may grow, see lvd_app_options.fixed_buffers), or if actors wait for elements
 * in a cycle that no input could resolve and either an actor of the cycle has unread elements or no
 * element ever passed through it. An actor that waits for one that has ended has ended as well,
 * whether or not elements are left. */
LVD_API lvd_status lvd_app_wait(lvd_app *app, int64_t timeout_ns);

/* Stops it if it is running, and frees everything that belongs to it. */
LVD_API void lvd_app_unload(lvd_app *app);

/* The state at the time of the call; it may change at any time. */
LVD_API lvd_app_state lvd_app_get_state(lvd_app *app);
/* Owned by the application. */
LVD_API const char *lvd_app_name(const lvd_app *app);
/* Name of the application that runs code on the calling thread, or null. Async-signal-safe: for a
 * handler that reports why the process ends. */
LVD_API const char *lvd_current_app_name(void);
/* Copies to `name` the name of the C program that contains the instruction address `code`; this
 * also identifies threads that the program created. False: no program contains it. */
LVD_API bool lvd_app_name_of_code(lvd_runtime *rt, const void *code, char *name, size_t size);

/* The last value passed to lvd_app_progress; *unit is null if it was never called. */
LVD_API uint64_t lvd_app_get_progress(lvd_app *app, const char **unit);
/* The last arguments of lvd_app_input_progress: returns the input bytes consumed, and sets
 * *total_bytes to the total. Both are 0 if it was never called. */
LVD_API uint64_t lvd_app_get_input_progress(lvd_app *app, uint64_t *total_bytes);

/* Migrates an actor to a worker between two firings. Returns at once. LVD_E_ARGUMENT: no such
 * actor or worker; LVD_E_STATE: the worker's core is not available to this application. */
LVD_API lvd_status lvd_app_move(lvd_app *app, uint32_t actor, uint32_t worker);

/* ------------------------------------------------------------------------------------------ */
/* Channel ends held by the program (LVD_EXTERNAL)                                             */
/* ------------------------------------------------------------------------------------------ */

/* The program's end of channel `channel`, for one thread at a time; wait on it with wait.h. Null
 * if the end is an actor's. Valid until lvd_app_unload. An application with such a producer does
 * not end before lvd_producer_close is called on it. */
LVD_API lvd_producer *lvd_app_producer(lvd_app *app, uint32_t channel);
LVD_API lvd_consumer *lvd_app_consumer(lvd_app *app, uint32_t channel, uint32_t index);

/* ------------------------------------------------------------------------------------------ */
/* Observation: counters, faults, and the wait report                                         */
/* ------------------------------------------------------------------------------------------ */

typedef struct lvd_actor_counters {
  const char *name;
  uint32_t worker; /* index of its current worker */
  /* index of the worker that it will run on next: it differs from `worker` after lvd_app_move, or
   * when the runtime moves it off a blocked worker */
  uint32_t target;
  uint64_t firings;
  uint64_t activations; /* calls of run */
  uint64_t busy_ns;     /* ns spent in run, without those in which its worker waited for its core */
  uint64_t longest_ns;  /* the longest call of run in ns, measured likewise */
  /* duration of the current call of run in ns, once it has lasted for some ms; else 0 */
  uint64_t runs_ns;
  bool waits;          /* it waits for a channel or for input from outside, or has ended */
  bool waits_external; /* it waits for input from outside in the middle of a firing */
} lvd_actor_counters;

typedef struct lvd_channel_counters {
  lvd_port_ref from, to;    /* one record for each consumer */
  uint32_t capacity, fill;  /* capacity and fill in elements */
  uint32_t loaded_capacity; /* capacity at load; less than `capacity`: the channel has grown */
  uint32_t awaited;         /* elements that the consumer waits for; 0: it does not wait */
  uint64_t put, got;        /* elements since creation */
  uint64_t wakes;           /* times the consumer was woken */
  /* times the producer found it full, the consumer found it empty, and waited */
  uint64_t full, empty;
} lvd_channel_counters;

typedef struct lvd_worker_counters {
  int32_t cpu;                /* the core it is pinned to; -1: none */
  bool available;             /* its core is in the running set */
  uint64_t busy_ns, sleep_ns; /* ns running actors, ns asleep; the rest is polling */
  uint64_t activations, sleeps, wakes_sent;
  /* wall-clock ns for which the current activation has occupied it; 0: idle */
  uint64_t runs_ns;
  /* ns for which other programs had the core while an activation was runnable; not part of the
   * other times */
  uint64_t preempted_ns;
} lvd_worker_counters;

/* Reads all counters of an application, running or ended: fills at most *actors and *channels
 * records and sets both to the number that exist. */
LVD_API lvd_status lvd_app_counters(lvd_app *app, lvd_actor_counters *actor, uint32_t *actors,
                                    lvd_channel_counters *channel, uint32_t *channels);
/* CPU time in ns of the application's fibers, including forked calls and procedures. Sampled every
 * 4 ms; unbiased. */
LVD_API uint64_t lvd_app_fibers_busy_ns(lvd_app *app);
/* The same for the fibers on one worker, in ns. */
LVD_API uint64_t lvd_app_fibers_busy_on(lvd_app *app, uint32_t worker);
/* Reads the counters of a worker. LVD_E_ARGUMENT: no such worker. */
LVD_API lvd_status lvd_worker_counters_read(lvd_runtime *rt, uint32_t worker,
                                            lvd_worker_counters *out);

typedef struct lvd_fault {
  lvd_fault_kind kind;
  const char *actor, *action, *file;
  uint32_t line;
  char message[256];
} lvd_fault;

/* The fault that ended the application; false if there was none. Its strings are valid until
 * lvd_app_unload. */
LVD_API bool lvd_app_fault(lvd_app *app, lvd_fault *out);

/* Describes why the application does not progress (or, if it does, what waits for what): each
 * waiting entity with the full or empty channel that it waits for, a cycle of waits first, then
 * the ready entities that wait for a worker. Writes at most `size` bytes including the terminating
 * null; returns the full length. */
LVD_API size_t lvd_app_wait_report(lvd_app *app, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
