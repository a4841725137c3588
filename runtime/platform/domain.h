/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Platform layer: what unrelated processes of an MCAPI domain find by name: a file of shared
 * memory, locks that end with their holder, FIFOs, and notice of a process's death.
 *
 * All names are in a directory that belongs to the user, or to a group and is shared by its
 * members, so no other user can create anything there. */
#ifndef LVD_PLATFORM_DOMAIN_H
#define LVD_PLATFORM_DOMAIN_H

#include "platform.h"

/* Opens the directory of the user (`group` negative) or of the group; creates it if needed.
 * LVD_E_SYSTEM. */
lvd_status lvd_os_directory_open(int64_t group, int *directory);
/* Opens it if it exists. LVD_E_NOT_FOUND. */
lvd_status lvd_os_directory_find(int64_t group, int *directory);
/* The ID of a group, by name or number. LVD_E_NOT_FOUND. */
lvd_status lvd_os_group_find(const char *name, int64_t *group);
/* True: the directory belongs to a group, *group. */
bool lvd_os_directory_group(int directory, int64_t *group);
/* True: the opened file is of that kind (S_IFREG, ...) and only the directory's owner, or the
 * members of its group, can access it. */
bool lvd_os_is_trusted(int directory, int descriptor, uint32_t kind);
/* Opens the file `name`, or creates an empty one. Anything at that name that is not trusted is
 * removed, but only if this process lacks nothing to open it. LVD_E_SYSTEM. */
lvd_status lvd_os_file_open(int directory, const char *name, int *file);
/* True: the file's name has been removed. */
bool lvd_os_file_is_removed(int file);
/* Opens it if it exists and is trusted; changes nothing. LVD_E_NOT_FOUND. */
lvd_status lvd_os_file_find(int directory, const char *name, int *file);
/* False: the file is shorter. */
bool lvd_os_file_read(int file, size_t at, void *to, size_t size);
bool lvd_os_file_write(int file, size_t at, const void *from, size_t size);
/* Calls `each` for every name in the directory. LVD_E_SYSTEM. */
lvd_status lvd_os_directory_list(int directory, void (*each)(void *what, const char *name),
                                 void *what);
void lvd_os_directory_remove(int directory, const char *name);
/* Sets its size and clears it to zeros. LVD_E_SYSTEM; LVD_E_LIMIT: the process's limit of file
 * sizes is smaller. */
lvd_status lvd_os_file_clear(int file, size_t size);

/* Numbered locks of a file. A process holds them, on behalf of all its threads; they end with the
 * process, and when it closes any descriptor of the file. */
bool lvd_os_file_lock_acquire(int file, uint32_t number, bool wait);
void lvd_os_file_lock_release(int file, uint32_t number);
/* True: another process holds one of the `count` locks from `first` on. */
bool lvd_os_file_lock_is_held(int file, uint32_t first, uint32_t count);
/* The process that holds it; 0: no other process does, or it has no ID in this PID namespace. */
int32_t lvd_os_file_lock_holder(int file, uint32_t number);

/* A FIFO that the caller alone reads; whatever has that name is removed. LVD_E_SYSTEM. */
lvd_status lvd_os_fifo_create(int directory, const char *name, int *fifo);
/* Opens it for signalling; negative: there is none. */
int lvd_os_fifo_open(int directory, const char *name);
void lvd_os_fifo_signal(int fifo);

/* A descriptor that becomes readable when the process `id` exits; negative: none. */
int lvd_os_process_exit_fd(int32_t id);
/* Sleeps until one of `count` descriptors (at most 256; negative ones are ignored) is readable,
 * which ready[i] then tells, or the time has passed. descriptor[0] is a FIFO, which this
 * empties. */
void lvd_os_poll_many(const int *descriptor, bool *ready, uint32_t count, int64_t timeout_ns);

/* A membarrier on all cores that run a process which has prepared it. False: not available. */
bool lvd_os_global_barrier_prepare(void);
void lvd_os_global_barrier(void);

/* Blocks all signals in the calling thread, so that the program's own threads handle them. */
void lvd_os_block_signals(void);

#endif
