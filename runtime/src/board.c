/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Boards that are a program of this system.
 *
 * qemu: a bare-metal riscv64 machine whose memory is the link's, with a serial port as the doorbell.
 * The machine may have two harts, though one is all that runs: with one for certain, QEMU leaves
 * out the guest's fences, and the wake-ups that they are for would be lost now and then. */
#include <stdio.h>
#include <stdlib.h>

#include "window.h"

#ifndef LVD_LOADER
#define LVD_LOADER       ""
#define LVD_LOADER_BUILT ""
#endif

static bool is_there(const char *file) {
  FILE *f = *file ? fopen(file, "rb") : NULL;
  if (f) fclose(f);
  return f != NULL;
}

/* The one that is named, that is installed, or that was built with this library. */
static const char *loader_file(void) {
  const char *loader = getenv("LEVADA_LOADER");
  if (loader && *loader) return loader;
  return is_there(LVD_LOADER) ? LVD_LOADER : LVD_LOADER_BUILT;
}

static lvd_status qemu_start(int memory, size_t size, int bell, lvd_port_process *peer) {
  const char *loader = loader_file(), *qemu = getenv("LEVADA_QEMU");
  if (!qemu || !*qemu) qemu = "qemu-system-riscv64";
  if (!is_there(loader))
    return lvd_window_refuse(LVD_E_UNKNOWN,
                             "the loader %s is not there: build it with riscv64-linux-gnu-gcc, or "
                             "name it in LEVADA_LOADER",
                             loader);
  char object[120], socket[40], megabytes[24];
  snprintf(object, sizeof object,
           "memory-backend-file,id=memory,size=%zu,share=on,mem-path=/proc/self/fd/%d", size,
           memory);
  snprintf(socket, sizeof socket, "socket,id=bell,fd=%d", bell);
  snprintf(megabytes, sizeof megabytes, "%zuM", size >> 20);
  const char *const argument[] = {"-nodefaults",
                                  "-no-user-config",
                                  "-nographic",
                                  "-monitor",
                                  "none",
                                  "-machine",
                                  "virt,memory-backend=memory",
                                  "-smp",
                                  "1,maxcpus=2",
                                  "-m",
                                  megabytes,
                                  "-object",
                                  object,
                                  "-chardev",
                                  socket,
                                  "-serial",
                                  "chardev:bell",
                                  "-bios",
                                  "none",
                                  "-kernel",
                                  loader,
                                  NULL};
  const int keep[2] = {memory, bell};
  lvd_status status = lvd_port_process_start(peer, qemu, argument, "LEVADA_BOARD", "qemu", keep, 2);
  if (status == LVD_E_UNKNOWN)
    return lvd_window_refuse(status,
                             "%s is not there: install qemu-system-misc (Debian) or "
                             "qemu-system-riscv",
                             qemu);
  return status;
}

const lvd_board lvd_board_qemu = {"qemu:", 16 << 20, qemu_start};
