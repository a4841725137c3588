/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LVD_MODEL_ARENA_H
#define LVD_MODEL_ARENA_H

#include "platform/platform.h"

/* Forgets all memory and threads: an execution begins. */
void model_arena_reset(void);
/* Memory that begins with a page. */
void *model_pages(size_t size);

#endif
