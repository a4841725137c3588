/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Machine: QEMU's riscv64 `virt`, as a program behind a window sees it. Its memory is one file: the
 * first OWN_SIZE bytes are the far side's own, the window is the rest. */
#ifndef LVD_FAR_MACHINE_H
#define LVD_FAR_MACHINE_H

#define LVD_VIRT_MEMORY   0x80000000u
#define LVD_VIRT_OWN_SIZE 0x01000000u /* 16 MiB */
#define LVD_VIRT_WINDOW   (LVD_VIRT_MEMORY + LVD_VIRT_OWN_SIZE)
#define LVD_VIRT_PROGRAM  0x80020000u /* where programs may lie, up to the window */

#endif
