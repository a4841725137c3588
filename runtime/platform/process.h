/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Platform layer: child and parent processes, and what they share: memory, and a way to wake each
 * other. */
#ifndef LVD_PLATFORM_PROCESS_H
#define LVD_PLATFORM_PROCESS_H

#include "platform.h"

/* ---- processes ------------------------------------------------------------------------------- */

typedef struct lvd_os_process {
  int32_t id;
  int pidfd; /* negative: the kernel has none, so the process is polled */
  bool parent;
  bool needs_sigterm; /* ended by SIGTERM instead of SIGKILL, since it has to undo something */
  bool how_is_known;  /* of a child that has exited: `how` is valid */
  int how;            /* as returned by waitpid */
} lvd_os_process;

/* The ID of the calling process. */
int32_t lvd_os_process_self(void);

/* In a child that was just forked: closes the descriptors that are noted (lvd_close_on_fork in
 * levada/native.h). Makes system calls only. */
void lvd_os_close_in_child(void);

/* Starts `program` (searched in PATH if it has no slash) with the null-terminated list `argument`
 * (without the program's name; may be null) and the caller's environment plus `name`=`value` (if
 * `name` is not null). The `count` descriptors in `keep` are inherited under the same numbers.
 * LVD_E_NOT_FOUND: no such file; LVD_E_SYSTEM: it cannot be run. */
lvd_status lvd_os_process_start(lvd_os_process *p, const char *program, const char *const *argument,
                                const char *name, const char *value, const int *keep,
                                uint32_t count);
/* Removes a variable from the environment of the process and of programs that it starts later. */
void lvd_os_unset_variable(const char *name);
/* True: there is such a program (searched in PATH if the name has no slash). */
bool lvd_os_program_exists(const char *program);
/* True: the caller may read the file. */
bool lvd_os_file_is_readable(const char *name);
/* Reads at most `room` bytes from the start of a file; *size is their number. LVD_E_NOT_FOUND: it
 * cannot be opened; LVD_E_SYSTEM: it cannot be read. Async-signal-safe. */
lvd_status lvd_os_file_read_start(const char *name, void *to, size_t room, size_t *size);
/* True: it exists and is no regular file, so reading it may block forever. */
bool lvd_os_file_is_special(const char *name);
/* The parent process, which had the ID `id`. LVD_E_PEER_GONE: it has exited. */
lvd_status lvd_os_process_parent(lvd_os_process *p, int32_t id);
/* True: `program` names the program of the calling process. */
bool lvd_os_process_is_self(const char *program);
/* True: it has exited, with all its threads. The ID of a child may be reused afterwards. */
bool lvd_os_process_has_exited(lvd_os_process *p);
/* Of a child that has exited: true if a signal of a fault ended it (SIGABRT, SIGSEGV and
 * similar). */
bool lvd_os_process_crashed(const lvd_os_process *p);
/* A phrase that says how it has exited; returns its length; 0: unknown. */
size_t lvd_os_process_exit_text(const lvd_os_process *p, char *text, size_t size);
void lvd_os_process_kill(const lvd_os_process *p); /* must not have exited */
/* Ends the calling process immediately, with a failure status. */
LVD_NORETURN void lvd_os_process_exit(void);
void lvd_os_process_close(lvd_os_process *p);
/* `call` is called with the exit status when the process exits, and may exit with another one. If
 * the C library does not tell the status, it is not called. */
void lvd_os_at_exit(void (*call)(int status));
/* The same for quick_exit; the C library does not tell its status. */
void lvd_os_at_quick_exit(void (*call)(void));

/* ---- waking another process, or a thread of this one ----------------------------------------- */

/* A connected pair of sockets; a process that holds one end signals the other. Neither end can make
 * the other block. `stream`: carries bytes, one per signal, like a serial line. LVD_E_SYSTEM. */
lvd_status lvd_os_socketpair(int socket[2], bool stream);
void lvd_os_socket_signal(int socket);
/* An eventfd, to be signalled within the process. */
lvd_status lvd_os_eventfd_create(int *eventfd);
void lvd_os_eventfd_signal(int eventfd);
void lvd_os_eventfd_clear(int eventfd); /* resets it to the initial state */
/* Sleeps until one of the two descriptors is signalled, `p` has exited, or the time has passed. May
 * return early. */
void lvd_os_signal_wait(int socket, int eventfd, const lvd_os_process *p, int64_t timeout_ns);
/* Receives at most `room` bytes from a stream socket within the time: their number; 0: the other
 * end is closed; negative: nothing yet. */
long lvd_os_socket_receive(int socket, char *bytes, size_t room, uint64_t timeout_ns);
/* The other end will read the end of the stream; this end can still receive. */
void lvd_os_socket_shutdown(int socket);
void lvd_os_close(int descriptor);
/* Programs that this process starts do not inherit it. */
void lvd_os_set_close_on_exec(int descriptor);

/* ---- shared memory --------------------------------------------------------------------------- */

/* Memory that no process can shrink, so an access to it cannot trap. */
lvd_status lvd_os_shared_create(size_t size, int *memory);
lvd_status lvd_os_shared_size(int memory, size_t *size);
/* Allocates memory for that range. LVD_E_MEMORY. */
lvd_status lvd_os_shared_commit(int memory, size_t offset, size_t size);
/* Gives its memory back to the system; it reads as zeros afterwards. */
void lvd_os_shared_decommit(int memory, size_t offset, size_t size);
/* Maps `head` bytes from `offset` on, and behind them the next `ring` bytes twice in a row (`ring`
 * may be 0). All are multiples of lvd_os_ring_granularity. Null: no memory. */
void *lvd_os_shared_map(int memory, size_t offset, size_t head, size_t ring);
/* The same in place of such a mapping at `p`, which remains if this fails; null: at any address. */
void *lvd_os_shared_map_at(void *p, int memory, size_t offset, size_t head, size_t ring);
/* Moves memory from lvd_os_alloc to `p`, in place of what is mapped there, atomically for readers.
 * False: failed. */
bool lvd_os_replace_mapping(void *p, void *own, size_t size);
void lvd_os_shared_unmap(void *p, size_t head, size_t ring);

#endif
