/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lock of every port whose wait is a futex's (Drepper, Futexes Are Tricky): the word is 0 free,
 * 1 taken, 2 taken and somebody waits.
 *
 * Pairs of orders
 *   unlock: exchange_release 0 -> lock: cas_acquire, exchange_acquire    what was locked is seen */
#include "platform.h"

void lvd_os_lock(lvd_os_mutex *m) {
  uint32_t seen = 0;
  if (lvd_cas_acquire_u32(&m->word, &seen, 1)) return;
  while (lvd_exchange_acquire_u32(&m->word, 2) != 0) lvd_os_wait(&m->word, 2, -1);
}

bool lvd_os_try_lock(lvd_os_mutex *m) {
  uint32_t seen = 0;
  return lvd_cas_acquire_u32(&m->word, &seen, 1);
}

/* The word may be gone after the exchange; its address is still good to wake. */
void lvd_os_unlock(lvd_os_mutex *m) {
  if (lvd_exchange_release_u32(&m->word, 0) == 2) lvd_os_wake(&m->word);
}
