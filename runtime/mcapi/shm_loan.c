/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loans in shared memory: the span of the ring that the next packet will take. It stays where it is,
 * since nothing else is put while it is out. */
#include "ring.h"
#include "transport.h"

static uint32_t lines(size_t size) {
  return 1 + (uint32_t)((size + MC_PACKET_LINE - 1) / MC_PACKET_LINE);
}

lvd_status mc_shm_loan(mc_domain *d, mc_local *local, size_t size, void **at) {
  lvd_producer *p = &local->channel.out;
  uint32_t n = lines(size);
  if (LVD_UNLIKELY(local->channel.many)) mc_shm_audience(d, local);
  if (!mc_has_room(&local->channel, n)) return p->corrupt ? LVD_E_CORRUPT : LVD_E_TIME;
  *at = mc_put_at(&local->channel) + MC_PACKET_LINE;
  return LVD_OK;
}

void mc_shm_send_loan(mc_domain *d, mc_local *local, size_t size) {
  lvd_producer *p = &local->channel.out;
  *(uint32_t *)(void *)mc_put_at(&local->channel) =
      (uint32_t)size; /* the head, as shm_channel.c has it */
  lvd_put_done(p, lines(size));
  lvd_push(p);
  if (LVD_UNLIKELY(local->channel.many))
    mc_shm_ring_audience(d, &local->channel);
  else
    mc_ring(d, local->channel.peer_node);
}
