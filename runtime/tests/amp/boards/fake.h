/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Included first into the platform layer's device sources: redirects their system calls to
 * fake.c. */
#ifndef LVD_FAKE_H
#define LVD_FAKE_H

#include "../../../platform/linux/syscall.h"

#include <sys/ioctl.h>

#define lvd_sys_open(path, flags)            open(path, flags, 0)
#define lvd_sys_mmap                         mmap
#define lvd_sys_ioctl(fd, request, argument) ioctl(fd, request, argument)

#endif
