/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How many blocks of samples have come out. */
#include <levada/native.h>

void tones_done(uint64_t blocks) { lvd_app_progress(lvd_current_app(), "blocks", blocks); }
