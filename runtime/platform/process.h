/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Port: what a process and another one that it has started share: memory, and a bell each way. */
#ifndef LVD_PLATFORM_PROCESS_H
#define LVD_PLATFORM_PROCESS_H

#include "platform.h"

/* ---- processes ---------------------------------------------------------------------------- */

typedef struct lvd_os_process {
  int32_t id;
  int handle; /* negative: the kernel has none, and we look now and then */
  bool parent;
  bool asked; /* it has something to undo: to kill it is to ask it */
  bool known; /* a child that is gone: how it has ended is known, ... */
  int how;    /* ... as waitpid says it */
} lvd_os_process;

/* The caller's own number. */
int32_t lvd_os_process_self(void);

/* Starts `program` (looked for in PATH when there is no slash in it) with the arguments `argument`
 * (null-terminated, without the name; may be null), the environment and `name`=`value` in it (unless
 * `name` is null). Of the
 * descriptors that close on exec it gets the `count` of `keep`, under the same numbers.
 * LVD_E_UNKNOWN: there is no such file; LVD_E_SYSTEM: it cannot be run. */
lvd_status lvd_os_process_start(lvd_os_process *p, const char *program, const char *const *argument,
                                const char *name, const char *value, const int *keep,
                                uint32_t count);
/* Takes a variable out of the environment: no program that is started from now on gets it. */
void lvd_os_unset_variable(const char *name);
/* Is there a program of that name (in PATH when there is no slash in it)? */
bool lvd_os_program_exists(const char *program);
/* Is there a file that the caller may read? */
bool lvd_os_file_is_readable(const char *name);
/* What a file begins with, at most `room` bytes: *size of them. LVD_E_UNKNOWN: it cannot be opened; LVD_E_SYSTEM: it
 * cannot be read. In any context. */
lvd_status lvd_os_file_read_start(const char *name, void *to, size_t room, size_t *size);
/* It is there, and no regular file: to read it may last for ever. */
bool lvd_os_file_is_special(const char *name);
/* The process that has started this one, which was number `id`. LVD_E_PEER: it is gone. */
lvd_status lvd_os_process_parent(lvd_os_process *p, int32_t id);
/* Is the caller's own program the one that `program` names? */
bool lvd_os_process_is_self(const char *program);
/* Has it ended, with all its threads? A child's number may be another's afterwards. */
bool lvd_os_process_has_exited(lvd_os_process *p);
/* Of a child that is gone: by a signal that says that it has failed (SIGABRT, SIGSEGV and their like)? */
bool lvd_os_process_crashed(const lvd_os_process *p);
/* In words, how it has ended; returns their length; 0: this is not known. */
size_t lvd_os_process_exit_text(const lvd_os_process *p, char *text, size_t size);
void lvd_os_process_kill(const lvd_os_process *p); /* it is not gone */
LVD_NORETURN void lvd_os_process_exit(void);       /* the caller's, at once, with a failure */
void lvd_os_process_close(lvd_os_process *p);
/* When the process exits, `call` is called with the status that it exits with, and may exit with another
 * one. Where the C library does not tell the status, it is not called. */
void lvd_os_at_exit(void (*call)(int status));

/* ---- bells -------------------------------------------------------------------------------- */

/* Two ends; who holds one rings at the other. Neither can make the other block. A wire carries
 * bytes, one a ring, as a serial line does. LVD_E_SYSTEM. */
lvd_status lvd_os_socketpair(int bell[2], bool wire);
void lvd_os_socket_signal(int bell);
/* A bell to be rung in the process itself. */
lvd_status lvd_os_eventfd_create(int *bell);
void lvd_os_eventfd_signal(int bell);
void lvd_os_eventfd_clear(int bell); /* as if it had not been rung */
/* Sleeps until one of the two rings, `p` is gone, or the time has passed (negative: none). Returns at
 * times without reason. */
void lvd_os_signal_wait(int bell, int own, const lvd_os_process *p, int64_t timeout_ns);
/* What came over a wire, at most `room` bytes, within the time: how many; 0: the other end is closed;
 * negative: nothing yet. */
long lvd_os_socket_receive(int wire, char *bytes, size_t room, uint64_t timeout_ns);
/* The other end hears that nothing more will come; this one still hears. */
void lvd_os_socket_shutdown(int wire);
void lvd_os_close(int descriptor);
/* From now on no program that this process starts gets it. */
void lvd_os_set_close_on_exec(int descriptor);

/* ---- shared memory ------------------------------------------------------------------------ */

/* Memory that nobody can make smaller, so that no access to it can trap. */
lvd_status lvd_os_shared_create(size_t size, int *memory);
lvd_status lvd_os_shared_size(int memory, size_t *size);
/* The system gives memory for this part now, or LVD_E_MEMORY. */
lvd_status lvd_os_shared_commit(int memory, size_t offset, size_t size);
/* Gives it back; it reads as zeros from then on. */
void lvd_os_shared_decommit(int memory, size_t offset, size_t size);
/* Maps `head` bytes from `offset` on, and behind them the `ring` bytes that follow those, twice in a
 * row (`ring` may be 0). Multiples of lvd_os_ring_granularity. Null: no memory. */
void *lvd_os_shared_map(int memory, size_t offset, size_t head, size_t ring);
/* The same in the place of what is mapped so at `p`, which lasts if it fails; null: at any place. */
void *lvd_os_shared_map_at(void *p, int memory, size_t offset, size_t head, size_t ring);
/* Memory that lvd_os_alloc has given comes to lie at `p`, in the place of what is mapped there: for who reads there
 * meanwhile, at once. False: it cannot. */
bool lvd_os_replace_mapping(void *p, void *own, size_t size);
void lvd_os_shared_unmap(void *p, size_t head, size_t ring);

#endif
