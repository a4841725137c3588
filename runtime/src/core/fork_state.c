/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a thread knows of its forks (levada/fork.h): the scheduler looks whether any is open. */
#include <levada/fork.h>

LVD_API __thread lvd_fork_thread lvd_forks_here;
