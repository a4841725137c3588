/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Actor: a function that fires as long as it can, with private state, ports that are channel ends,
 * and a name for each action.
 *
 * The runtime calls `run` on one worker at a time, after an item that the actor waited for has
 * arrived. `run` fires as often as it can, and returns
 *   LVD_RUN_WAIT   it cannot fire, and has declared the wake conditions with lvd_await_*; the
 *                  runtime calls it again once one of them holds, and not before.
 *   LVD_RUN_YIELD  it could continue, but yields (lvd_should_yield returned true).
 *   LVD_RUN_DONE   it will never fire again; its outputs end.
 * The runtime publishes everything put and got when `run` returns. `run` may call lvd_push and
 * lvd_pop earlier, so that other actors can overlap with it.
 *
 * Generated code and hand-written actors use the same interface. Freestanding; C17 and C++17. */
#ifndef LVD_ACTOR_H
#define LVD_ACTOR_H

#include <levada/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lvd_run_result { LVD_RUN_WAIT, LVD_RUN_YIELD, LVD_RUN_DONE } lvd_run_result;

typedef struct lvd_actor lvd_actor;

typedef struct lvd_port_class {
  const char *name;
  uint32_t elem_size; /* bytes */
} lvd_port_class;

typedef struct lvd_action_class {
  const char *name;
  const char *file; /* source file; null: that of the actor */
  uint32_t line;
} lvd_action_class;

/* Outside of natives, `run` may be abandoned at any instruction: it holds no lock and owns nothing
 * but its state. Compiled CAL has this flag. Only an actor with this flag can be stopped when an
 * action exceeds the time limit (lvd_runtime_options.action_time_limit_ns). */
#define LVD_CLASS_ABANDONABLE 1u

/* `run` may block, through lvd_run_blocking (native.h): it is called on a stack of its own, and
 * while it waits the worker runs other work. What it has put and got before is published. Compiled
 * CAL has this flag where it calls native functions or prints. */
#define LVD_CLASS_CAN_BLOCK 2u

/* A firing that waits in lvd_wait_input_restartable (native.h) has had no effect yet, so it may be
 * discarded: a new version repeats it, and an application that drains does not. For actors without
 * inputs. */
#define LVD_CLASS_RESTARTABLE 4u

/* A variable of an actor's state. An upgrade copies it if both versions of the class have a
 * variable of this name and type. */
typedef struct lvd_state_var {
  const char *name, *type;
  uint32_t offset, size; /* in the state, bytes */
  bool text;             /* it consists of pointers to strings */
} lvd_state_var;

/* The state that an actor transfers to a new version (lvd_app_upgrade_from). */
typedef struct lvd_state_schema {
  uint32_t variables;
  const lvd_state_var *variable;
  /* The state of the action schedule (FSM), if there is one: a uint32_t at the start of the
   * actor's state; the value `first` stands for state[0], a lower value for no state entered yet.
   */
  uint32_t states, first, initial; /* initial: an index of `state` */
  const char *const *state;
  /* per output: true if its elements are pointers to strings; null: none are */
  const bool *texts;
} lvd_state_schema;

/* What all instances of an actor share. Constant; must outlive all of them. */
typedef struct lvd_actor_class {
  const char *name;
  const char *file;
  size_t state_size; /* bytes of `state`, zeroed before init */
  uint32_t flags;    /* set of LVD_CLASS_* */
  uint32_t inputs, outputs, actions;
  const lvd_port_class *input;
  const lvd_port_class *output;
  const lvd_action_class *action;
  void (*init)(lvd_actor *self); /* once, on a worker, before the first run; may be null */
  lvd_run_result (*run)(lvd_actor *self);
  void (*end)(lvd_actor *self);         /* once, at unload of the application; may be null */
  const lvd_state_schema *state_schema; /* null: a new version starts with fresh state */
} lvd_actor_class;

/* One instance, as `run` sees it. */
struct lvd_actor {
  void *state;
  lvd_consumer *in; /* in the order of the class's inputs; `out` likewise */
  lvd_producer *out;
  uint64_t *fired;    /* firings per action; run increments them */
  const void *params; /* from lvd_actor_desc */
  const lvd_actor_class *cls;
  const lvd_a32 *yield; /* not 0: other work wants the worker */
  /* index of the action that fires, for reports; run sets it before a firing */
  uint32_t action;
  /* the native function that run is in (never abandoned half-way), or null; run sets it */
  const char *native;
  /* The current firing has had no effect yet, as in a guard; run sets it. A source that waits in
   * lvd_wait_input_restartable (native.h) meanwhile ends there if its application drains. */
  bool in_guard;
};

/* Should run return LVD_RUN_YIELD soon? Loads one rarely changing cache line: check once per
 * firing, or once per bounded loop of firings. */
static inline bool lvd_should_yield(const lvd_actor *self) {
  return LVD_UNLIKELY(lvd_load_relaxed_u32(self->yield) != 0);
}

/* Call before returning LVD_RUN_WAIT: wakes this actor when input `port` has `n` elements. A
 * channel with a smaller capacity grows if it may (lvd_app_options.fixed_buffers), once its
 * producer waits for room. */
static inline void lvd_await_elements(lvd_actor *self, uint32_t port, uint32_t n) {
  self->in[port].await = n;
}
/* The same for room for `n` elements on output `port`. If several conditions are awaited, the first
 * that holds wakes the actor. */
static inline void lvd_await_room(lvd_actor *self, uint32_t port, uint32_t n) {
  self->out[port].await = n;
}

/* The kind of an actor's fault. */
typedef enum lvd_fault_kind {
  LVD_FAULT_NONE,
  LVD_FAULT_INDEX,    /* index out of bounds */
  LVD_FAULT_DIVISION, /* division by zero */
  LVD_FAULT_CHECK,    /* any other check */
  LVD_FAULT_MEMORY,   /* bad memory access */
  LVD_FAULT_ILLEGAL,  /* illegal instruction or trap */
  LVD_FAULT_TIME,     /* an action exceeded the time limit */
  LVD_FAULT_NATIVE,   /* reported by a native function */
  LVD_FAULT_STACK     /* overflow of a fiber's stack */
} lvd_fault_kind;

/* Fails the application of `self` with a report of actor, action, file and line (0: the action's
 * line). Does not return; the worker runs other work. Only from within run or init. */
LVD_API LVD_NORETURN LVD_COLD void lvd_actor_fail(lvd_actor *self, lvd_fault_kind kind,
                                                  uint32_t line, const char *format, ...)
    LVD_PRINTF(4, 5);

/* Checks in compiled code; they fail the application like lvd_actor_fail. `i` is unsigned, so a
 * negative index is a large one. */
static inline void lvd_check_index(lvd_actor *self, uint64_t i, uint64_t n, uint32_t line) {
  if (LVD_UNLIKELY(i >= n))
    lvd_actor_fail(self, LVD_FAULT_INDEX, line, "index %lld of a list of %llu", (long long)i,
                   (unsigned long long)n);
}
static inline void lvd_check_divisor(lvd_actor *self, bool nonzero, uint32_t line) {
  if (LVD_UNLIKELY(!nonzero)) lvd_actor_fail(self, LVD_FAULT_DIVISION, line, "division by zero");
}

/* ------------------------------------------------------------------------------------------ */
/* A network of actors: constant tables, from which any number of applications are loaded     */
/* (lvd_app_load)                                                                             */
/* ------------------------------------------------------------------------------------------ */

typedef struct lvd_actor_desc {
  const char *name; /* unique in the network */
  const lvd_actor_class *cls;
  const void *params; /* passed to the actor; may be null */
  int32_t priority;   /* 0 normal; higher runs first; -4 ... 3 */
} lvd_actor_desc;

typedef struct lvd_port_ref {
  uint32_t actor, port;
} lvd_port_ref;

/* A channel end that is not an actor's but held by the program (lvd_app_producer,
 * lvd_app_consumer). */
#define LVD_EXTERNAL UINT32_MAX

typedef struct lvd_channel_desc {
  lvd_port_ref from; /* {LVD_EXTERNAL, 0}: the program puts */
  uint32_t consumers;
  const lvd_port_ref *to;
  uint32_t elem_size; /* bytes */
  uint32_t capacity;  /* elements; 0: automatic */
  uint32_t threshold; /* elements that wake a parked consumer; 0: automatic */
  /* elements at load, less than the capacity, for tests; 0: the capacity. Where the channel is full
   * at a deadlock, it grows to the capacity, and in a cycle of waits beyond it. */
  uint32_t initial;
} lvd_channel_desc;

typedef struct lvd_network {
  uint32_t abi_version; /* LVD_ABI_VERSION */
  const char *name;
  uint32_t actors, channels;
  const lvd_actor_desc *actor;
  const lvd_channel_desc *channel;
} lvd_network;

#ifdef __cplusplus
}
#endif
#endif
