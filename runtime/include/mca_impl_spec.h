/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCA: what is this implementation's, under the name of the header in which the standard's reference implementation has
 * it. C and C++. */
#ifndef MCA_IMPL_SPEC_H
#define MCA_IMPL_SPEC_H

#include "mca.h"

typedef mca_uint32_t mca_request_t;

#endif
