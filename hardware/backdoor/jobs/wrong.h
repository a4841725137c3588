/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The errors that jobs/wrong.c can commit. */
#ifndef LVD_BACKDOOR_WRONG_H
#define LVD_BACKDOOR_WRONG_H
enum wrong {
  WRONG_ILLEGAL,
  WRONG_LOAD,
  WRONG_STORE,
  WRONG_JUMP,
  WRONG_ALIGNED,
  WRONG_HANG,
  WRONG_NOT
};
#define WRONG_ADDRESS 0x40001230u
#endif
