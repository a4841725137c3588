/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Core lease: the protocol in shared memory, by which processes take, request, hand over and return
 * a core. The guarantees are in core_lease.h. */
#include "core_lease.h"

#include "../../platform/platform.h"

/* Changes the holder from `holder` (1 + slot; 0: none) to process `to`. False: the holder is
 * another one by now. */
static bool change_holder(lvd_lease *l, uint32_t holder, uint32_t to, uint64_t now) {
  if (!lvd_cas_relaxed_u32(&l->holder, &holder, to + 1)) return false;
  lvd_store_relaxed_u64(&l->since, now);
  return true;
}

/* Whether `process` waits. The compare-and-swap reads the newest value: a process that waits
 * for the whole time that the caller is the holder is found. */
static bool is_waiting(lvd_lease *l, uint32_t process) {
  uint32_t does = 1;
  return lvd_load_relaxed_u32(&l->want[process]) &&
         lvd_cas_relaxed_u32(&l->want[process], &does, 1);
}

/* If `process` waits, ends its wait and wakes its sleeping threads, which then read
 * `holder`. */
static bool end_wait(lvd_lease *l, uint32_t process) {
  if (!lvd_load_relaxed_u32(&l->want[process]) || !lvd_exchange_release_u32(&l->want[process], 0))
    return false;
  lvd_add_relaxed_u32(&l->waiting, UINT32_MAX);
  lvd_os_wake_shared(&l->want[process]);
  return true;
}

/* The i-th slot after `me`, round-robin: so each waiting process gets its turn. */
static uint32_t slot_after(const lvd_lease *l, uint32_t me, uint32_t i) {
  return (me + i) % l->slots;
}

bool lvd_lease_take(lvd_lease *l, uint32_t me, uint64_t now) {
  uint32_t holder = lvd_load_relaxed_u32(&l->holder);
  return holder == me + 1 || (holder == 0 && change_holder(l, 0, me, now));
}

bool lvd_lease_request(lvd_lease *l, uint32_t me, uint64_t now) {
  if (!lvd_exchange_relaxed_u32(&l->want[me], 1)) lvd_add_relaxed_u32(&l->waiting, 1);
  lvd_fence_seq_cst();
  if (!lvd_lease_take(l, me, now)) return false;
  end_wait(l, me); /* another thread of this process may be waiting */
  return true;
}

bool lvd_lease_hand_over(lvd_lease *l, uint32_t me, uint64_t now) {
  if (!lvd_lease_is_held_by(l, me)) return false;
  for (uint32_t i = 1; i < l->slots; i++) {
    if (!is_waiting(l, slot_after(l, me, i))) continue;
    if (!change_holder(l, me + 1, slot_after(l, me, i), now)) return false;
    lvd_add_relaxed_u64(&l->transfers, 1);
    end_wait(l, slot_after(l, me, i));
    return true;
  }
  return false;
}

/* A free lease is not transferred directly: the process that waited may have taken it and
 * released it again. */
void lvd_lease_give_back(lvd_lease *l, uint32_t me, uint64_t now) {
  uint32_t holder = me + 1;
  if (lvd_lease_has_waiters(l) && lvd_lease_hand_over(l, me, now)) return;
  if (!lvd_cas_relaxed_u32(&l->holder, &holder, 0)) return;
  lvd_fence_seq_cst();
  if (!lvd_lease_has_waiters(l)) return;
  for (uint32_t i = 1; i < l->slots; i++)
    if (end_wait(l, slot_after(l, me, i))) return;
}

bool lvd_lease_seize(lvd_lease *l, uint32_t me, uint32_t from, uint64_t now) {
  return change_holder(l, from + 1, me, now);
}
