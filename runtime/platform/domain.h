/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Port: what the processes of a domain, which do not know of each other, find by name: a file of
 * shared memory, locks that end with their holder, bells, and the news that somebody has died.
 *
 * All names lie in one directory that belongs to the user alone, or to a group whose members share it,
 * so nobody else can put anything there. */
#ifndef LVD_PLATFORM_DOMAIN_H
#define LVD_PLATFORM_DOMAIN_H

#include "platform.h"

/* The user's directory for domains (`group` negative), or the group's, made if there is none.
 * LVD_E_SYSTEM. */
lvd_status lvd_os_directory_open(int64_t group, int *directory);
/* The same, if it is there. LVD_E_UNKNOWN. */
lvd_status lvd_os_directory_find(int64_t group, int *directory);
/* Its number, by name or number. LVD_E_UNKNOWN. */
lvd_status lvd_os_group_find(const char *name, int64_t *group);
/* Is the directory a group's, and which? */
bool lvd_os_directory_group(int directory, int64_t *group);
/* Is what was opened in it of that kind (S_IFREG, ...), and of those alone whose directory it is? */
bool lvd_os_is_trusted(int directory, int descriptor, uint32_t kind);
/* Opens the file `name`, or makes it (empty). What is no file of the directory's owners alone is taken away;
 * and nothing where it is the caller who lacks something. LVD_E_SYSTEM. */
lvd_status lvd_os_file_open(int directory, const char *name, int *file);
/* Has its name been taken away meanwhile? */
bool lvd_os_file_is_removed(int file);
/* The same if it is there and the user's, and changes nothing. LVD_E_UNKNOWN. */
lvd_status lvd_os_file_find(int directory, const char *name, int *file);
/* False: it is shorter. */
bool lvd_os_file_read(int file, size_t at, void *to, size_t size);
bool lvd_os_file_write(int file, size_t at, const void *from, size_t size);
/* Calls `each` for every name in the directory. LVD_E_SYSTEM. */
lvd_status lvd_os_directory_list(int directory, void (*each)(void *what, const char *name),
                                 void *what);
void lvd_os_directory_remove(int directory, const char *name);
/* Makes it zeros, all of it, and as long as said. LVD_E_SYSTEM; LVD_E_LIMIT: the process may have no file
 * as long as that. */
lvd_status lvd_os_file_clear(int file, size_t size);

/* Locks of a file, numbered; each a process's, all threads of it together. They end with the process,
 * and when it closes any descriptor of that file. */
bool lvd_os_file_lock_acquire(int file, uint32_t number, bool wait);
void lvd_os_file_lock_release(int file, uint32_t number);
/* Does another process hold one of `count` from `first` on? */
bool lvd_os_file_lock_is_held(int file, uint32_t first, uint32_t count);
/* The other process that holds one; 0: none does, or none that has a number here. */
int32_t lvd_os_file_lock_holder(int file, uint32_t number);

/* Bells by name. The caller is the only one who listens at `name`; what was left there is taken
 * away. */
lvd_status lvd_os_fifo_create(int directory, const char *name, int *bell);
/* Where it can be rung, negative: there is none. */
int lvd_os_fifo_open(int directory, const char *name);
void lvd_os_fifo_signal(int bell);

/* A descriptor that becomes readable when the process `id` has ended; negative: none. */
int lvd_os_process_exit_fd(int32_t id);
/* Sleeps until one of `count` descriptors (at most 256, negative ones are passed over) is readable,
 * or the time has passed (negative: none); ready[i]: it is. The first is a bell, and is silent then. */
void lvd_os_poll_many(const int *descriptor, bool *ready, uint32_t count, int64_t timeout_ns);

/* A barrier on all cores that run a process which has prepared it, for a side that goes to sleep; false:
 * there is none. */
bool lvd_os_global_barrier_prepare(void);
void lvd_os_global_barrier(void);

/* The calling thread is not the program's own: its signals are for others. */
void lvd_os_block_signals(void);

#endif
