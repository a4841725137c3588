/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A lease for the checker, and the number of processes that run on its core. */
#include "src/lease/core_lease.h"

#include <stdlib.h>
#include <string.h>

#include "platform/platform.h"

typedef struct model_lease {
  lvd_lease lease;
  lvd_a32 inside, wrong;
} model_lease;

void lvd_os_wake_shared(lvd_a32 *word) { lvd_os_wake(word); }

model_lease *model_make(void) {
  model_lease *m = aligned_alloc(LVD_CACHE_LINE, sizeof *m);
  memset(m, 0, sizeof *m);
  m->lease.slots = 3;
  return m;
}
void model_free(model_lease *m) { free(m); }
size_t model_size(void) { return sizeof(model_lease); }

static void come(model_lease *m) {
  if (lvd_add_relaxed_u32(&m->inside, 1)) lvd_store_relaxed_u32(&m->wrong, 1);
}
static void go(model_lease *m) { lvd_add_relaxed_u32(&m->inside, UINT32_MAX); }

/* As lease_client.c does it, without looks at the holder. */
static void wait_for(model_lease *m, uint32_t me) {
  while (!lvd_lease_request(&m->lease, me, 1)) {
    lvd_os_wait(&m->lease.want[me], 1, -1);
    if (lvd_lease_is_held_by(&m->lease, me)) return;
  }
}

/* A process comes, is there, perhaps hands the core over and waits for it again, and goes. */
void model_visit(model_lease *m, uint32_t me, uint32_t hands_over) {
  if (!lvd_lease_take(&m->lease, me, 1)) wait_for(m, me);
  come(m);
  if (hands_over && lvd_lease_has_waiters(&m->lease)) {
    go(m);
    if (lvd_lease_hand_over(&m->lease, me, 2)) wait_for(m, me);
    come(m);
  }
  go(m);
  lvd_lease_give_back(&m->lease, me, 3);
}

/* A second thread of a process that waits: it leaves what it got to the first. */
void model_wait(model_lease *m, uint32_t me) { wait_for(m, me); }

/* It has the core, and is never heard of again. */
void model_hang(model_lease *m, uint32_t me) { lvd_lease_take(&m->lease, me, 1); }
void model_seize(model_lease *m, uint32_t me, uint32_t from) {
  if (!lvd_lease_seize(&m->lease, me, from, 1)) return;
  come(m);
  go(m);
  lvd_lease_give_back(&m->lease, me, 2);
}

uint32_t model_wrong(model_lease *m) {
  return lvd_load_relaxed_u32(&m->wrong) || lvd_load_relaxed_u32(&m->lease.waiting) ||
         lvd_load_relaxed_u32(&m->lease.holder);
}
