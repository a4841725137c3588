/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program for the far processor defines job(), which job.c calls; the result is its status. */
#ifndef LVD_BACKDOOR_JOB_H
#define LVD_BACKDOOR_JOB_H

#include "../link.h"

int job(const lvd_remote_hal *board, link *l);

#endif
