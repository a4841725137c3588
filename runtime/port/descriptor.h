/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Port: the numbers of the descriptors that the runtime gets from the system.
 *
 * 0 to 2 are the program's standard streams, also while it has them closed: the system gives the lowest free number,
 * and what the program then prints would go into a file of ours. So every descriptor goes through here at once, as in
 * gnulib's fd_safer. (No system call gives a number of at least 3 by itself.) */
#ifndef LVD_PORT_DESCRIPTOR_H
#define LVD_PORT_DESCRIPTOR_H

#include <stdio.h>

/* The same open file under a number of at least 3, which closes on exec if it is another one than before. Negative:
 * none was given; or, with errno set, there is no other number, and it is closed. In any context. */
int lvd_port_descriptor(int fd);
/* fopen(path, "r"), closed on exec. Null: see errno. */
FILE *lvd_port_file_read_open(const char *path);

#endif
