/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The inverse MDCT of a half as a remote procedure, for a unit of any kind: all it keeps from granule to
 * granule it keeps itself. */
#ifndef MP3_INVERSE_H
#define MP3_INVERSE_H

#include "halves.h"

enum { MP3_INVERSES = 2 }; /* halves, each of which one unit may have */

/* "mp3_inverse_begin" (no argument, no result): once, before the first granule, on a unit that is none of
 * the decoder's own process, which has its tables.
 * "mp3_inverse" (an mp3_half, to an mp3_half_subbands). */

#endif
