/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Mutex for every platform on which lvd_os_wait is a futex (Drepper, Futexes Are Tricky). The word
 * is 0: free; 1: locked; 2: locked, with waiters.
 *
 * Pairs of orders
 *   unlock: exchange_release 0 -> lock: cas_acquire, exchange_acquire    the data that the lock
 *   protects */
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

/* The word's memory may have been freed after the exchange; waking its address is harmless. */
void lvd_os_unlock(lvd_os_mutex *m) {
  if (lvd_exchange_release_u32(&m->word, 0) == 2) lvd_os_wake(&m->word);
}
