/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fork state of a thread (levada/fork.h), at this level because the scheduler checks whether
 * forks are open. */
#include <levada/fork.h>

LVD_API __thread lvd_fork_thread lvd_forks_here;
