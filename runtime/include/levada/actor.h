/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Actor: a function that fires as long as it can, with state of its own, ports that are ends of
 * channels, and a name for each of its actions.
 *
 * The runtime calls `run` on one worker at a time, when something it waited for has come. `run`
 * fires as often as it can, and returns
 *   LVD_WAIT   it cannot fire; it has said with lvd_await_* what would change that. The runtime
 *              calls again when any of these has come, and not before.
 *   LVD_YIELD  it could go on, but gives way (lvd_should_yield said so).
 *   LVD_DONE   it will never fire again; its outputs end.
 * Whatever it has put and got is published by the runtime when it returns; it may lvd_push and
 * lvd_pop before, so that others can overlap with it.
 *
 * Generated code and actors written by hand use exactly this. Freestanding; C17 and C++17. */
#ifndef LVD_ACTOR_H
#define LVD_ACTOR_H

#include <levada/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lvd_verdict { LVD_WAIT, LVD_YIELD, LVD_DONE } lvd_verdict;

typedef struct lvd_actor lvd_actor;

typedef struct lvd_port_class {
  const char *name;
  uint32_t elem_size; /* bytes */
} lvd_port_class;

typedef struct lvd_action_class {
  const char *name;
  const char *file; /* where it is written; null: as for the actor */
  uint32_t line;
} lvd_action_class;

/* Outside of natives, `run` may be abandoned at any instruction: it holds no lock and owns nothing
 * but its state. Compiled CAL is so; an action of it that runs past the time limit can be
 * stopped. */
#define LVD_CLASS_ABANDONABLE 1u

/* It may wait in `run`, through lvd_blocking (native.h): `run` is called on a stack of its own, and
 * while it waits the worker goes on with others. What it has put and got by then is published.
 * Compiled CAL is so where it calls native functions or prints. */
#define LVD_CLASS_MAY_WAIT 2u

/* A firing of it that waits in lvd_wait_input (native.h) has changed nothing yet: it may be left there
 * for good, to be begun anew by a new version, or where its application drains. For actors without inputs. */
#define LVD_CLASS_RESTARTS 4u

/* A part of an actor's state. Two versions of a class have it in common if name and type are equal. */
typedef struct lvd_variable {
  const char *name, *type;
  uint32_t offset, size; /* bytes */
  bool text;             /* it consists of pointers to strings */
} lvd_variable;

/* What of its state an actor takes along into a new version (lvd_app_take_over). */
typedef struct lvd_memory {
  uint32_t variables;
  const lvd_variable *variable;
  /* The state of its schedule, if it has one: a uint32_t at the state's beginning, which is `first` for
   * state[0]. Below that it is not in any yet. */
  uint32_t states, first, initial; /* initial: an index of state */
  const char *const *state;
  const bool *texts; /* for each output: its elements are pointers to strings; null: none are */
} lvd_memory;

/* What all instances of an actor have in common. Constant; lives as long as any of them. */
typedef struct lvd_actor_class {
  const char *name;
  const char *file;
  size_t state_size; /* bytes of `state`, zeroed before init */
  uint32_t flags;    /* LVD_CLASS_* */
  uint32_t inputs, outputs, actions;
  const lvd_port_class *input;
  const lvd_port_class *output;
  const lvd_action_class *action;
  void (*init)(lvd_actor *self); /* once, on a worker, before the first run; may be null */
  lvd_verdict (*run)(lvd_actor *self);
  void (*end)(lvd_actor *self); /* once, when the application is unloaded; may be null */
  const lvd_memory *memory;     /* null: a new version of it begins anew */
} lvd_actor_class;

/* One instance, as `run` sees it. */
struct lvd_actor {
  void *state;
  lvd_consumer *in; /* by the order of the class's inputs */
  lvd_producer *out;
  uint64_t *fired;    /* firings of each action; run adds to them */
  const void *params; /* from lvd_actor_desc */
  const lvd_actor_class *cls;
  const lvd_a32 *yield; /* set when something else should have the worker */
  uint32_t action;      /* the action that fires now, for reports; run sets it before it fires */
  const char *native;   /* the native function that run is in, which is not abandoned half way; null
                           outside of any; run sets it */
  /* run has done nothing yet of a firing, as in a guard; run sets it. A source that waits there in
   * lvd_wait_input (native.h) ends there when its application drains. */
  bool looks;
};

/* Should run return LVD_YIELD soon? One load of a line that hardly ever changes: look once a
 * firing, or once for a bounded loop of firings. */
static inline bool lvd_should_yield(const lvd_actor *self) {
  return LVD_UNLIKELY(lvd_load_relaxed_u32(self->yield) != 0);
}

/* Before LVD_WAIT: wake me when input `port` has `n` elements (n <= its capacity) ... */
static inline void lvd_await_elements(lvd_actor *self, uint32_t port, uint32_t n) {
  self->in[port].await = n;
}
/* ... or when output `port` has room for `n`. Any of what was awaited wakes. */
static inline void lvd_await_room(lvd_actor *self, uint32_t port, uint32_t n) {
  self->out[port].await = n;
}

/* What went wrong in an actor. */
typedef enum lvd_fault_kind {
  LVD_FAULT_NONE,
  LVD_FAULT_INDEX,    /* index out of bounds */
  LVD_FAULT_DIVISION, /* division by zero */
  LVD_FAULT_CHECK,    /* any other check */
  LVD_FAULT_MEMORY,   /* bad memory access */
  LVD_FAULT_ILLEGAL,  /* illegal instruction or trap */
  LVD_FAULT_TIME,     /* an action that ran past the time limit */
  LVD_FAULT_NATIVE,   /* a native function said so */
  LVD_FAULT_STACK     /* a fiber's stack was too small */
} lvd_fault_kind;

/* Stops the application of `self` with a report that names actor, action, file and line. Does not
 * return: the worker goes on with other work. `line` 0 stands for the action's line. From inside
 * run or init only. */
LVD_API LVD_NORETURN LVD_COLD void lvd_actor_fail(lvd_actor *self, lvd_fault_kind kind,
                                                  uint32_t line, const char *format, ...)
    LVD_PRINTF(4, 5);

/* The checks that compiled code makes. `i` unsigned: a negative index is a huge one. */
static inline void lvd_check_index(lvd_actor *self, uint64_t i, uint64_t n, uint32_t line) {
  if (LVD_UNLIKELY(i >= n))
    lvd_actor_fail(self, LVD_FAULT_INDEX, line, "index %lld of a list of %llu", (long long)i,
                   (unsigned long long)n);
}
static inline void lvd_check_divisor(lvd_actor *self, bool nonzero, uint32_t line) {
  if (LVD_UNLIKELY(!nonzero)) lvd_actor_fail(self, LVD_FAULT_DIVISION, line, "division by zero");
}

/* ------------------------------------------------------------------------------------------ */
/* A network of actors: what an application is loaded from. Constant tables; one network can be */
/* loaded any number of times.                                                                 */
/* ------------------------------------------------------------------------------------------ */

typedef struct lvd_actor_desc {
  const char *name; /* unique in the network */
  const lvd_actor_class *cls;
  const void *params; /* handed to the actor; may be null */
  int32_t priority;   /* 0 usual; higher goes first; -4 ... 3 */
} lvd_actor_desc;

typedef struct lvd_port_ref {
  uint32_t actor, port;
} lvd_port_ref;

/* An end that is not an actor's: the program holds it (lvd_app_producer, lvd_app_consumer). */
#define LVD_OUTSIDE UINT32_MAX

typedef struct lvd_channel_desc {
  lvd_port_ref from; /* {LVD_OUTSIDE, 0}: the program puts */
  uint32_t consumers;
  const lvd_port_ref *to;
  uint32_t elem_size;
  uint32_t capacity;  /* elements; 0: as the runtime thinks best */
  uint32_t threshold; /* elements that wake a parked consumer; 0: as the runtime thinks best */
} lvd_channel_desc;

typedef struct lvd_network {
  uint32_t layout; /* LVD_LAYOUT */
  const char *name;
  uint32_t actors, channels;
  const lvd_actor_desc *actor;
  const lvd_channel_desc *channel;
} lvd_network;

#ifdef __cplusplus
}
#endif
#endif
