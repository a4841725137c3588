/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the runtime needs of loaded programs, for checks that have none. */
#include "src/program/program_app.h"
#include "src/sched/sched.h"

const lvd_program *lvd_program_registering(void) { return NULL; }
void lvd_program_part(lvd_app *app) { (void)app; }
void lvd_program_unwatch(lvd_app *app) { (void)app; }
