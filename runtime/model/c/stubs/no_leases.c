/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Core leases, for checks without a host: there are none, and no process waits for one. */
#include "src/lease/lease_client.h"

void lvd_lease_enter(lvd_leased *leased, int32_t cpu) { (void)leased, (void)cpu; }
void lvd_lease_leave(lvd_leased *leased) { (void)leased; }
void lvd_lease_end(lvd_leased *leased) { (void)leased; }
void lvd_lease_tick(lvd_leased *leased) { (void)leased; }
bool lvd_lease_is_contended(const lvd_leased *leased) { return leased == NULL; }
void lvd_leases_child_begins(void) {}
