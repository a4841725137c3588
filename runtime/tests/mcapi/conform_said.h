/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a case of the conformance program says from behind a window: an element of the stream "said" for each
 * of its calls of is_so, says, meet and so on. Those that wait are answered in the stream "go". */
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
  SAID_MEET, /* is answered */
  SAID_NAP   /* ... too */
};

typedef struct said {
  uint32_t what, status;     /* of the last call there */
  uint32_t one, other, line; /* or what is so; or milliseconds */
  uint32_t reserved;
  uint64_t number;
  char text[224];
} said;

/* The argument of the procedure "conform". */
typedef struct said_case {
  uint32_t domain, one;
  char name[96];
} said_case;

#endif
