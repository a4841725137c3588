/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What every program for the far processor has: a beginning, which calls its job. */
#ifndef LVD_BACKDOOR_JOB_H
#define LVD_BACKDOOR_JOB_H

#include "../link.h"

int job(const lvd_remote_hal *board, link *l);

#endif
