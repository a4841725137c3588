/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCA: implementation-defined types, in the header name that the standard's reference
 * implementation uses. C and C++. */
#ifndef MCA_IMPL_SPEC_H
#define MCA_IMPL_SPEC_H

#include "mca.h"

typedef mca_uint32_t mca_request_t;

#endif
