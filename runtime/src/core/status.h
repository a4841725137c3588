/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Statuses with a text of their own. */
#ifndef LVD_CORE_STATUS_H
#define LVD_CORE_STATUS_H

#include <levada/base.h>

/* Returns LVD_E_LIMIT and makes lvd_status_text describe it as `sentence` (a constant), which
 * says what is limited and how to raise the limit. */
lvd_status lvd_limit(const char *sentence);

#endif
