/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a case of the conformance program sends from a remote processor: an element of the stream
 * "said" for each call of is_so, says, meet and so on. Calls that wait are answered in the stream
 * "go". */
#ifndef LVD_CONFORM_SAID_H
#define LVD_CONFORM_SAID_H

#include <stdint.h>

enum said_what {
  SAID_CALLED = 1,
  SAID_IS_SO,
  SAID_SAYS,
  SAID_SAYS_EITHER,
  SAID_FAILS,
  SAID_CHOICE,
  SAID_CHOICE_NUMBER,
  SAID_GIVE_UP,
  SAID_MEET, /* answered */
  SAID_NAP   /* answered */
};

typedef struct said {
  uint32_t what, status;     /* of the last call on that side */
  uint32_t one, other, line; /* or the result of a check; or milliseconds */
  uint32_t reserved;
  uint64_t number;
  char text[224];
} said;

/* Argument of the procedure "conform". */
typedef struct said_case {
  uint32_t domain, one;
  char name[96];
} said_case;

#endif
