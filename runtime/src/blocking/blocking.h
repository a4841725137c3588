/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls that block, and descriptors that are waited for. */
#ifndef LVD_BLOCKING_H
#define LVD_BLOCKING_H

#include "../sched/sched.h"

void lvd_blocking_end(lvd_runtime *rt);

/* Interrupts the calls of an application that ends, and waits until those of its actors are back. */
void lvd_calls_recall(lvd_app *app);
/* Who waits in lvd_wait_input looks again whether it drains. */
void lvd_inputs_end(lvd_app *app);
/* What `e`, which its worker has in hand, has asked: all of it, or what it asked before it last fired. */
void lvd_fd_watches_withdraw(lvd_entity *e);
void lvd_fd_watches_keep_last(lvd_entity *e);

#endif
