/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runtime: one worker per core; applications loaded, started, paused, stopped and unloaded while
 * others run.
 *
 * All calls here are thread-safe, and for threads that are no workers unless they say otherwise. */
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

/* Which of the actors that can fire on a worker goes next is a matter of priority and of promised rates; where
 * these leave a choice, it is the one that could fire first. With `round_robin` it is the next one in the order of
 * loading, behind the one that ran last and round: each has one turn a round. Fibers do as ever. */
typedef struct lvd_runtime_options {
  uint32_t workers;       /* 0: as many as affinity and the container's CPU quota leave */
  uint32_t spin_us;       /* an idle worker looks around for so long before it sleeps; 0: 30 */
  bool no_spin;           /* sleep at once */
  bool no_pin;            /* do not pin workers to cores */
  bool round_robin;       /* actors have their turns in the order of loading */
  uint32_t time_limit_ms; /* CPU time one action may take before its application is stopped;
                             0: no limit */
  uint32_t entities;      /* at most so many actors and fibers at a time; 0: 262144 */
  /* 0: the usual class; else the real-time priority (1 to LVD_REALTIME_MOST) of what runs
   * applications, which so goes before all that is of the usual class. */
  uint32_t realtime;
  /* So many bytes a second an application may print (lvd_app_prints in native.h), and what it has not printed in
   * the last second besides; 0: no limit. */
  uint64_t prints;
  /* Called with `argument`, on a thread of the runtime's, when a worker has something to do after a time in which
   * none had (lvd_runtime_rests): it must not block, nor call what waits for a worker. May be null. */
  void (*awake)(void *argument);
  void *argument;
} lvd_runtime_options;

/* Two above it are needed: the first is that of what is urgent, the second of what serves the workers. */
#define LVD_REALTIME_MOST 97

/* Does the system let this process have a runtime of that real-time priority? */
LVD_API bool lvd_realtime_allowed(uint32_t realtime);

/* `options` may be null. On LVD_OK *out is to be given to lvd_runtime_destroy. LVD_E_LIMIT: the system does not
 * allow its real-time priority. */
LVD_API lvd_status lvd_runtime_create(const lvd_runtime_options *options, lvd_runtime **out);

/* Stops and unloads every application, ends the workers. */
LVD_API void lvd_runtime_destroy(lvd_runtime *rt);

/* The calling thread serves the runtime: it controls what runs there. If the workers have a real-time
 * priority it has a higher one from now on, so that it has its turn whatever they compute; else nothing changes.
 * What it starts is of the usual class. */
LVD_API void lvd_thread_serves(const lvd_runtime *rt);
/* The priority of such a thread, of the runtime whose worker runs the caller; 0: the usual class, or nobody's worker
 * does. For a library whose own thread wakes fibers, and has no runtime. */
LVD_API uint32_t lvd_serving_priority(void);

/* No worker has had anything to do for half a second or more, so that no thread of the runtime's has a reason to wake
 * up: the next who has calls `awake` of the options. */
LVD_API bool lvd_runtime_rests(const lvd_runtime *rt);

/* Workers that there are, whether or not their core is in the running set. */
LVD_API uint32_t lvd_workers(const lvd_runtime *rt);

/* Takes the core of `worker` from the running set: the worker finishes its firing, its entities
 * move to the others, and it sleeps; the call returns when that is so. LVD_E_STATE: it is the last
 * one. lvd_core_give puts it back; entities return when they are moved or placed again. */
LVD_API lvd_status lvd_core_take(lvd_runtime *rt, uint32_t worker);
LVD_API lvd_status lvd_core_give(lvd_runtime *rt, uint32_t worker);
/* Takes it, waiting no longer than this (negative: for ever). LVD_E_TIME: somebody is there still; `why`, which may
 * be null, says who, and all is as it was. */
LVD_API lvd_status lvd_core_take_within(lvd_runtime *rt, uint32_t worker, int64_t timeout_ms,
                                        char *why, size_t why_size);
/* The same, for the actors of `app`: they stay there, may be moved there (lvd_app_move), and nothing else
 * is. Until lvd_core_give, or lvd_app_unload. The core of one that it has taken over from (lvd_app_take_over) is
 * handed on. */
LVD_API lvd_status lvd_core_take_for(lvd_app *app, uint32_t worker);
/* The core, which has been taken, and for nobody, is now that of `app` in the same way. */
LVD_API lvd_status lvd_core_pass(lvd_app *app, uint32_t worker);

/* ------------------------------------------------------------------------------------------ */
/* Applications                                                                               */
/* ------------------------------------------------------------------------------------------ */

typedef struct lvd_option {
  const char *name, *value;
} lvd_option;

typedef struct lvd_app_options {
  const char *name;          /* null: the network's */
  const uint32_t *placement; /* a worker for each actor; null: the runtime spreads them */
  const lvd_option *option;  /* what natives can ask for */
  uint32_t option_count;
  int32_t priority;  /* added to each actor's */
  uint32_t capacity; /* for channels that ask for none; 0: by size of element */
} lvd_app_options;

typedef enum lvd_app_state {
  LVD_APP_LOADED, /* not started */
  LVD_APP_RUNNING,
  LVD_APP_PAUSED,
  LVD_APP_ENDED, /* lvd_app_wait says how */
  LVD_APP_ENDING /* nothing of it begins any more; a firing may last, or files be finished */
} lvd_app_state;

/* Makes an instance of a network: its state, its channels. Nothing runs before lvd_app_start.
 * `net` must live until lvd_app_unload. Errors: LVD_E_LAYOUT, LVD_E_ARGUMENT (a port that is not
 * connected, or twice; sizes that differ), LVD_E_MEMORY, LVD_E_LIMIT; `why` (may be null) then has
 * the sentence. */
LVD_API lvd_status lvd_app_load(lvd_runtime *rt, const lvd_network *net,
                                const lvd_app_options *options, lvd_app **out, char *why,
                                size_t why_size);

/* What lvd_app_load would claim for it: state, and the rings of its channels. The same errors. */
LVD_API lvd_status lvd_app_size(lvd_runtime *rt, const lvd_network *net,
                                const lvd_app_options *options, uint64_t *bytes, char *why,
                                size_t why_size);

LVD_API lvd_status lvd_app_start(lvd_app *app);
/* The same, but it is paused from its beginning: nothing of it runs before lvd_app_resume. Both: LVD_E_STATE if it has
 * been started, or has ended. From any thread. */
LVD_API lvd_status lvd_app_start_paused(lvd_app *app);

/* It is promised a rate, or is not any more: it goes before others of its priority, so far as that leaves them a
 * sixteenth. Who promises it keeps it from more than that, with lvd_app_pause. From any thread. */
LVD_API lvd_status lvd_app_promise(lvd_app *app, bool promised);

/* No actor of it runs when lvd_app_pause returns; nothing in its channels is lost. */
LVD_API lvd_status lvd_app_pause(lvd_app *app);
/* The same, waiting for a firing that lasts no longer than this. LVD_E_TIME: it lasts still, and is
 * the last of that actor until lvd_app_resume. */
LVD_API lvd_status lvd_app_pause_within(lvd_app *app, int64_t timeout_ms);
LVD_API lvd_status lvd_app_resume(lvd_app *app);

/* Ends its sources: no actor without inputs fires again, what is in flight comes out, and then it
 * ends by itself. Returns at once. A source that waits for input (lvd_wait_input in native.h) in a
 * firing that has done nothing yet (LVD_CLASS_RESTARTS, lvd_actor.looks), ends there; what one waits for in the middle of any
 * other is waited for still. LVD_E_UNKNOWN: no actor of it is without inputs. A C program (program.h) is asked to return
 * (lvd_app_drains, lvd_wait_input in native.h), and never ends if it does not listen. */
LVD_API lvd_status lvd_app_drain(lvd_app *app);
/* The same taken back, of a C program that has not been told so: LVD_E_STATE if it has, or does not drain. */
LVD_API lvd_status lvd_app_drain_no_more(lvd_app *app);

/* `app`, which is loaded and not started, goes on where `old`, which is paused or not started either, is: actors of the same
 * name and class, whatever the values of its parameters, have what they remember (lvd_memory), channels between the same ports what is in them;
 * natives will have what they keep as heirlooms (native.h). Then `old` is to be ended by lvd_app_finish,
 * and `app` to be started when it has ended, and not unloaded before; and the code of `old` lives on as
 * long as `app` is loaded, with that of those before it, if heirlooms of theirs are left. If this fails `old` may be resumed, as it was, and `app` is good for nothing.
 * LVD_E_STATE: not at this moment, as `why` says: an actor is in the middle of a firing, or has more to
 * leave than its new version can take. LVD_E_MEMORY. */
LVD_API lvd_status lvd_app_take_over(lvd_app *app, lvd_app *old, char *why, size_t why_size);
/* What actors that both have do not take along, since their class or the type of a variable is another one: a line for
 * each, as far as it fits; its length in all. */
LVD_API size_t lvd_app_anew(const lvd_app *app, const lvd_app *old, char *text, size_t size);

/* When `old` comes to a good end of its own, its heirlooms are for `app`, which is loaded and not started; null:
 * they end with it. So a C program takes over from another, which drains; what is said above of the code
 * of `old` holds. */
LVD_API lvd_status lvd_app_inherit(lvd_app *app, lvd_app *old);

/* Has it heirlooms that nobody has asked for? They are ended by the code that made them. */
LVD_API bool lvd_app_heirlooms_left(lvd_app *app);

/* While it rests no actor without inputs begins another firing; all others go on. Returns at once. */
LVD_API lvd_status lvd_app_rest(lvd_app *app, bool rests);

/* Ends it now, between two firings; lvd_app_wait then says LVD_E_STOPPED. What an actor or its native sleeps in, in the
 * system, for 100 ms or more, is interrupted (EINTR) until it returns. */
LVD_API lvd_status lvd_app_stop(lvd_app *app);
/* The same, waiting no longer than this. LVD_E_TIME: it ends later, when a firing of it has. */
LVD_API lvd_status lvd_app_stop_within(lvd_app *app, int64_t timeout_ms);

/* Waits until it has ended, at most `timeout_ms` (negative: for ever): LVD_OK by itself (nothing
 * can fire any more, or lvd_app_finish), LVD_E_FAULT, LVD_E_DEADLOCK, LVD_E_STOPPED; LVD_E_TIME if
 * it runs still.
 *
 * When nothing can fire any more it is a deadlock if an actor waits for room, or if actors wait for
 * one another's elements in a circle that no input would open, and either elements lie before one
 * of them or none ever went round. Who waits for an actor that has come to its own end has ended
 * with it, whether or not elements are left over. */
LVD_API lvd_status lvd_app_wait(lvd_app *app, int64_t timeout_ms);

/* Stops it if it runs, and frees all it had. */
LVD_API void lvd_app_unload(lvd_app *app);

LVD_API lvd_app_state lvd_app_get_state(lvd_app *app);
LVD_API const char *lvd_app_name(const lvd_app *app);
/* The name of the application whose code runs on the calling thread; null: none's. May be called in
 * signal context, by who leaves word of why the process ends. */
LVD_API const char *lvd_app_name_here(void);
/* Copies to `name` the name of the C program whose own instructions lie at `code`, as those of a thread that it has started
 * do; false: none's. */
LVD_API bool lvd_app_name_of_code(lvd_runtime *rt, const void *code, char *name, size_t size);

/* What lvd_app_progress was last told; *unit is null if it never was. */
LVD_API uint64_t lvd_app_get_progress(lvd_app *app, const char **unit);
/* The arguments of the last lvd_app_input_progress: returns the bytes of input that were taken, and sets
 * *total_bytes to all there are; both are 0 if it was never called. */
LVD_API uint64_t lvd_app_get_input_progress(lvd_app *app, uint64_t *total_bytes);

/* Moves an actor to a worker, between two of its firings. Returns at once. */
LVD_API lvd_status lvd_app_move(lvd_app *app, uint32_t actor, uint32_t worker);

/* ------------------------------------------------------------------------------------------ */
/* Ends of channels that the program holds (LVD_OUTSIDE)                                       */
/* ------------------------------------------------------------------------------------------ */

/* The program's end of channel `channel`, for one thread at a time, to wait on with wait.h; null if
 * it is an actor's. Good until lvd_app_unload. An application with such a producer does not end
 * before lvd_end is called on it. */
LVD_API lvd_producer *lvd_app_producer(lvd_app *app, uint32_t channel);
LVD_API lvd_consumer *lvd_app_consumer(lvd_app *app, uint32_t channel, uint32_t index);

/* ------------------------------------------------------------------------------------------ */
/* What happened: counters, faults, and why nothing moves                                      */
/* ------------------------------------------------------------------------------------------ */

typedef struct lvd_actor_counters {
  const char *name;
  uint32_t worker; /* where it is */
  uint32_t target; /* where it shall be: by lvd_app_move, or given away by a stuck worker */
  uint64_t firings;
  uint64_t activations; /* calls of run */
  uint64_t busy_ns; /* time spent in run, but not what its worker waited for its core meanwhile */
  uint64_t longest_ns; /* the longest run, in the same way */
  uint64_t runs_ns;    /* the run that it is in until now, once it lasts for milliseconds; else 0 */
  bool waits;          /* at the moment: for a channel, or for what is outside; or it has ended */
  bool outside;        /* for what is outside, in the middle of a firing */
} lvd_actor_counters;

typedef struct lvd_channel_counters {
  lvd_port_ref from, to; /* one record for each consumer */
  uint32_t capacity, fill;
  uint32_t awaited;     /* elements that the consumer waits for here; 0: it does not */
  uint64_t put, got;    /* elements ever */
  uint64_t wakes;       /* consumer woken */
  uint64_t full, empty; /* times the producer, the consumer found it so and waited */
} lvd_channel_counters;

typedef struct lvd_worker_counters {
  int32_t cpu;                /* the core it is pinned to; -1: none */
  bool given;                 /* its core is in the running set */
  uint64_t busy_ns, sleep_ns; /* running actors; asleep; the rest is looking around */
  uint64_t activations, sleeps, wakes_sent;
  uint64_t runs_ns; /* for how long what runs there has kept it, by the clock; 0: nothing does */
  uint64_t
      lost_ns; /* for which what ran had no core, which other programs had: in no other of these times */
} lvd_worker_counters;

/* Reads all counters of an application, while it runs or after: fills at most *actors and *channels
 * records and sets both to how many there are. */
LVD_API lvd_status lvd_app_counters(lvd_app *app, lvd_actor_counters *actor, uint32_t *actors,
                                    lvd_channel_counters *channel, uint32_t *channels);
/* CPU time of its fibers, calls of forks and procedures included; in steps of 4 ms, and right on the
 * average. */
LVD_API uint64_t lvd_app_fibers_busy_ns(lvd_app *app);
/* That of those on one worker's core. */
LVD_API uint64_t lvd_app_fibers_busy_on(lvd_app *app, uint32_t worker);
LVD_API lvd_status lvd_worker_counters_read(lvd_runtime *rt, uint32_t worker,
                                            lvd_worker_counters *out);

typedef struct lvd_fault {
  lvd_fault_kind kind;
  const char *actor, *action, *file;
  uint32_t line;
  char message[256];
} lvd_fault;

/* The fault that ended the application; false if none did. */
LVD_API bool lvd_app_fault(lvd_app *app, lvd_fault *out);

/* Says in words why nothing moves (or what waits for what, if something does): who waits for whom,
 * the full or empty channel named, a cycle of waits first; and who could go on, and waits for its turn on
 * a worker. Writes at most `size` bytes with the
 * terminating null; returns the length it would have. */
LVD_API size_t lvd_app_why(lvd_app *app, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
