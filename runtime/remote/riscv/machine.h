/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory map of QEMU's riscv64 `virt` machine, as seen by a program behind a window. The memory is
 * one file: the first LVD_VIRT_OWN_SIZE bytes are private to the remote processor, the rest is the
 * window. */
#ifndef LVD_REMOTE_MACHINE_H
#define LVD_REMOTE_MACHINE_H

#define LVD_VIRT_MEMORY   0x80000000u
#define LVD_VIRT_OWN_SIZE 0x01000000u /* 16 MiB */
#define LVD_VIRT_WINDOW   (LVD_VIRT_MEMORY + LVD_VIRT_OWN_SIZE)
#define LVD_VIRT_PROGRAM  0x80020000u /* programs are loaded from here up to the window */

#endif
