/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The short way of calls that can be done at once (at_once.c). */
#ifndef LVD_MCAPI_AT_ONCE_H
#define LVD_MCAPI_AT_ONCE_H

#include "transport.h"

/* False, or MCAPI_PENDING: nothing has been done, and the long way is to be taken. */
bool mc_packet_out_at_once(uint32_t handle, const void *buffer, size_t size);
bool mc_packet_in_at_once(uint32_t handle, void **buffer, size_t *size);
bool mc_scalar_out_at_once(uint32_t handle, uint64_t value, uint32_t size);
bool mc_scalar_in_at_once(uint32_t handle, uint64_t *value, uint32_t size);
bool mc_message_out_at_once(uint32_t from, uint32_t to, const void *buffer, size_t size,
                            uint32_t priority);
/* MCAPI_ERR_MSG_TRUNCATED: as the standard has it. */
mcapi_status_t mc_message_in_at_once(uint32_t handle, void *buffer, size_t room, size_t *size);

#endif
