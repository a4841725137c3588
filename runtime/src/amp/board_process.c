/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Boards that are a process of this system.
 *
 * qemu, qemu32: a bare-metal machine, riscv64 or riscv32, that has the link's memory, and a serial
 * port as the doorbell. QEMU does not notice that the other end of its wire is closed: the agent
 * (remote/linux) does. The machine may have two harts, although one runs: for a machine of exactly
 * one hart QEMU leaves out the guest's fences, and wake-ups that depend on them would sometimes be
 * lost.
 *
 * native: a process of this system that has the window and nothing else in common with us, with the
 * same loader, programs and protocol: for tests without QEMU, and for faults
 * (remote/native/loader.c). */
#include <stdio.h>
#include <stdlib.h>

#include "window.h"

enum { X86_64 = 62, RISCV = 243 }; /* e_machine of ELF */

#ifndef LVD_LOADER
#define LVD_LOADER              ""
#define LVD_LOADER_BUILT        ""
#define LVD_LOADER32            ""
#define LVD_LOADER32_BUILT      ""
#define LVD_NATIVE_LOADER       ""
#define LVD_NATIVE_LOADER_BUILT ""
#endif

bool lvd_board_has(const char *file) { return lvd_os_file_is_readable(file); }

const char *lvd_board_file(const char *variable, const char *installed, const char *built) {
  const char *loader = getenv(variable);
  if (loader && *loader) return loader;
  return lvd_board_has(installed) ? installed : built;
}

/* `variable`: the environment variable that names the loader. */
static lvd_status boot(const char *qemu, const char *loader, const char *variable, int memory,
                       size_t size, int bell, lvd_os_process *peer) {
  const char *agent = lvd_board_agent();
  if (!lvd_board_has(loader))
    return lvd_window_refuse(LVD_E_NOT_FOUND,
                             "the loader %s is not there: build it with riscv64-linux-gnu-gcc, or "
                             "name it in %s",
                             loader, variable);
  if (!lvd_os_program_exists(qemu))
    return lvd_window_refuse(LVD_E_NOT_FOUND,
                             "%s is not there: install qemu-system-misc (Debian) or "
                             "qemu-system-riscv",
                             qemu);
  char object[120], socket[40], megabytes[24], wire[16];
  snprintf(wire, sizeof wire, "%d", bell);
  snprintf(object, sizeof object,
           "memory-backend-file,id=memory,size=%zu,share=on,mem-path=/proc/self/fd/%d", size,
           memory);
  snprintf(socket, sizeof socket, "socket,id=bell,fd=%d", bell);
  snprintf(megabytes, sizeof megabytes, "%zuM", size >> 20);
  const char *const argument[] = {
      "emulator",   wire,          qemu,      "-nodefaults", "-no-user-config",
      "-nographic", "-monitor",    "none",    "-machine",    "virt,memory-backend=memory",
      "-smp",       "1,maxcpus=2", "-m",      megabytes,     "-object",
      object,       "-chardev",    socket,    "-serial",     "chardev:bell",
      "-bios",      "none",        "-kernel", loader,        NULL};
  const int keep[2] = {memory, bell};
  lvd_status status = lvd_os_process_start(peer, agent, argument, "LEVADA_BOARD", "qemu", keep, 2);
  return status == LVD_E_NOT_FOUND ? lvd_board_no_agent(agent) : status;
}

static const char *qemu_of(const char *variable, const char *fallback) {
  const char *qemu = getenv(variable);
  return qemu && *qemu ? qemu : fallback;
}

static const char *qemu(void) { return qemu_of("LEVADA_QEMU", "qemu-system-riscv64"); }

static const char *qemu_loader(void) {
  return lvd_board_file("LEVADA_LOADER", LVD_LOADER, LVD_LOADER_BUILT);
}

static void qemu_describe(char *text, size_t size) {
  snprintf(text, size, "%s, and in it the loader %s", qemu(), qemu_loader());
}

static lvd_status qemu_start(int memory, size_t size, int bell, lvd_os_process *peer) {
  return boot(qemu(), qemu_loader(), "LEVADA_LOADER", memory, size, bell, peer);
}

static const char *qemu32(void) { return qemu_of("LEVADA_QEMU32", "qemu-system-riscv32"); }

static const char *qemu32_loader(void) {
  return lvd_board_file("LEVADA_LOADER32", LVD_LOADER32, LVD_LOADER32_BUILT);
}

static void qemu32_describe(char *text, size_t size) {
  snprintf(text, size, "%s, and in it the loader %s", qemu32(), qemu32_loader());
}

static lvd_status qemu32_start(int memory, size_t size, int bell, lvd_os_process *peer) {
  return boot(qemu32(), qemu32_loader(), "LEVADA_LOADER32", memory, size, bell, peer);
}

const lvd_board lvd_board_qemu = {
    "qemu:", RISCV, 64, "64-bit little-endian RISC-V", 16 << 20, qemu_describe, qemu_start, NULL};
const lvd_board lvd_board_qemu32 = {
    "qemu32:", RISCV,           32,           "32-bit little-endian RISC-V",
    16 << 20,  qemu32_describe, qemu32_start, NULL};

static const char *native_loader(void) {
  return lvd_board_file("LEVADA_NATIVE_LOADER", LVD_NATIVE_LOADER, LVD_NATIVE_LOADER_BUILT);
}

static void native_describe(char *text, size_t size) {
  snprintf(text, size, "the loader %s", native_loader());
}

static lvd_status native_start(int memory, size_t size, int bell, lvd_os_process *peer) {
  (void)size;
  const char *loader = native_loader();
  char of_memory[16], of_bell[16];
  snprintf(of_memory, sizeof of_memory, "%d", memory);
  snprintf(of_bell, sizeof of_bell, "%d", bell);
  const char *const argument[] = {of_memory, of_bell, NULL};
  const int keep[2] = {memory, bell};
  lvd_status status =
      lvd_os_process_start(peer, loader, argument, "LEVADA_BOARD", "native", keep, 2);
  if (status == LVD_E_NOT_FOUND)
    return lvd_window_refuse(status,
                             "the loader %s is not there: it is built for x86-64; name another in "
                             "LEVADA_NATIVE_LOADER",
                             loader);
  return status;
}

const lvd_board lvd_board_native = {"native:", X86_64,          64,           "64-bit x86",
                                    0,         native_describe, native_start, NULL};
