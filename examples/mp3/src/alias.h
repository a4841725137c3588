/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Alias reduction: neighbouring subbands leak into each other at their common edge, and eight
 * butterflies for each edge undo what the filter bank will do. */
#ifndef MP3_ALIAS_H
#define MP3_ALIAS_H

#include "mp3.h"

void mp3_alias(mp3_spectrum *spectrum);

#endif
