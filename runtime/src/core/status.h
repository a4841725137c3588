/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Statuses with a sentence of their own. */
#ifndef LVD_CORE_STATUS_H
#define LVD_CORE_STATUS_H

#include <levada/base.h>

/* LVD_E_LIMIT, which lvd_status_text says as `sentence` (a constant): what is limited, and what raises
 * that. */
lvd_status lvd_limit(const char *sentence);

#endif
