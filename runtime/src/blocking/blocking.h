/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Blocking calls and waits for descriptors. */
#ifndef LVD_BLOCKING_H
#define LVD_BLOCKING_H

#include "../sched/sched.h"

void lvd_blocking_end(lvd_runtime *rt);

/* Interrupts the calls of an application that ends, and waits until those of its actors have
 * returned. */
void lvd_calls_recall(lvd_app *app);
/* The application drains: waits in lvd_wait_input_restartable check that. */
void lvd_inputs_end(lvd_app *app);
/* Withdraws the fd watches of `e`, which its worker holds: all, or those from before its last
 * firing. */
void lvd_fd_watches_withdraw(lvd_entity *e);
void lvd_fd_watches_keep_last(lvd_entity *e);

#endif
