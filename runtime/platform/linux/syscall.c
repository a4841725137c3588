/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the kernel provides to a process without a system call: the auxiliary vector, and code that
 * reads the clocks (vDSO, an ELF image in memory; its symbols are in vdso(7)). Without a vDSO,
 * system calls are made. */
#include "../process.h"

#include "syscall.h"

#include <elf.h>
#include <levada/atomic.h>
#include <link.h>
#include <sys/prctl.h>

#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif

/* ---- auxiliary vector ------------------------------------------------------------------------ */

/* Emulators provide the file. A process that is not dumpable cannot read its own, and uses prctl
 * (Linux 6.4). */
static size_t read_auxiliary(ElfW(auxv_t) * word, size_t size) {
  int error = errno, fd = lvd_sys_open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
  long got = fd >= 0 ? lvd_sys_read(fd, word, size) : LVD_SYS(SYS_prctl, PR_GET_AUXV, word, size);
  if (fd >= 0) lvd_sys_close(fd);
  errno = error; /* callable in a signal handler */
  LVD_SYS_WROTE(word, size);
  return got < 0 ? 0 : (size_t)got < size ? (size_t)got : size;
}

unsigned long lvd_sys_auxiliary(unsigned long type) {
  ElfW(auxv_t) word[64];
  size_t count = read_auxiliary(word, sizeof word) / sizeof *word;
  for (size_t i = 0; i < count; i++)
    if (word[i].a_type == type) return word[i].a_un.a_val;
  return 0;
}

/* An madvise of no bytes is accepted only at a page boundary. */
size_t lvd_sys_page_size(void) {
  static lvd_a64 known;
  uint64_t size = lvd_load_relaxed_u64(&known);
  if (size) return size;
  for (size = 4096; lvd_sys_enter(SYS_madvise, (long)size, 0, MADV_NORMAL, 0, 0, 0) == -EINVAL;)
    size *= 2;
  lvd_store_relaxed_u64(&known, size);
  return size;
}

/* ---- vDSO ------------------------------------------------------------------------------------ */

#if defined(__aarch64__)
#define CLOCK "__kernel_clock_gettime"
#define CPU   "__kernel_getcpu"
#else
#define CLOCK "__vdso_clock_gettime"
#define CPU   "__vdso_getcpu"
#endif

typedef int clock_code(clockid_t clock, struct timespec *out);
typedef long cpu_code(unsigned *cpu, unsigned *node, void *unused);

/* Number of symbols. With a GNU hash table only, it follows from the end of the last chain. */
static size_t symbols_of(const uint32_t *hash, const uint32_t *gnu_hash) {
  if (hash) return hash[1];
  if (!gnu_hash) return 0;
  uint32_t buckets = gnu_hash[0], first = gnu_hash[1], words = gnu_hash[2], last = 0;
  const uint32_t *bucket = gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *chain = bucket + buckets;
  for (uint32_t i = 0; i < buckets; i++)
    if (bucket[i] > last) last = bucket[i];
  if (last < first) return first;
  while (!(chain[last - first] & 1)) last++;
  return last + 1;
}

/* Null: there is no vDSO, or no such function in it. */
static void *code_named(const char *name) {
  uintptr_t image = lvd_sys_auxiliary(AT_SYSINFO_EHDR), base = 0;
  const ElfW(Dyn) *d = NULL;
  if (!image) return NULL;
  const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)image;
  const ElfW(Phdr) *part = (const ElfW(Phdr) *)(image + head->e_phoff);
  bool loads = false;
  for (uint32_t i = 0; i < head->e_phnum; i++) {
    if (part[i].p_type == PT_LOAD && !loads) {
      loads = true;
      base = image + part[i].p_offset - part[i].p_vaddr;
    }
    if (part[i].p_type == PT_DYNAMIC) d = (const ElfW(Dyn) *)(image + part[i].p_offset);
  }
  const ElfW(Sym) *symbol = NULL;
  const char *names = NULL;
  const uint32_t *hash = NULL, *gnu_hash = NULL;
  for (; d && d->d_tag != DT_NULL; d++) {
    void *at = (void *)(base + d->d_un.d_ptr);
    if (d->d_tag == DT_SYMTAB) symbol = at;
    if (d->d_tag == DT_STRTAB) names = at;
    if (d->d_tag == DT_HASH) hash = at;
    if (d->d_tag == DT_GNU_HASH) gnu_hash = at;
  }
  size_t count = symbol && names ? symbols_of(hash, gnu_hash) : 0;
  for (size_t i = 0; i < count; i++)
    if (symbol[i].st_shndx != SHN_UNDEF && strcmp(names + symbol[i].st_name, name) == 0)
      return (void *)(base + symbol[i].st_value);
  return NULL;
}

static int call_clock(clockid_t clock, struct timespec *out) {
  return (int)lvd_sys_enter(SYS_clock_gettime, clock, (long)out, 0, 0, 0, 0);
}
static long call_cpu(unsigned *cpu, unsigned *node, void *unused) {
  return lvd_sys_enter(SYS_getcpu, (long)cpu, (long)node, (long)unused, 0, 0, 0);
}

/* Null until the first call, which may be in a signal handler or a constructor. Concurrent first
 * calls find the same code. */
static lvd_aptr read_clock, read_cpu;

int lvd_sys_clock_gettime(clockid_t clock, struct timespec *out) {
  clock_code *code = (clock_code *)lvd_load_relaxed_ptr(&read_clock);
  if (!code) {
    code = (clock_code *)code_named(CLOCK);
    if (!code) code = call_clock;
    lvd_store_relaxed_ptr(&read_clock, (void *)code);
  }
  int result = code(clock, out);
  LVD_SYS_WROTE(out, sizeof *out);
  return (int)lvd_sys_result(result);
}

int lvd_sys_getcpu(void) {
  cpu_code *code = (cpu_code *)lvd_load_relaxed_ptr(&read_cpu);
  if (!code) {
    code = (cpu_code *)code_named(CPU);
    if (!code) code = call_cpu;
    lvd_store_relaxed_ptr(&read_cpu, (void *)code);
  }
  unsigned cpu = 0;
  long result = code(&cpu, NULL, NULL);
  LVD_SYS_WROTE(&cpu, sizeof cpu);
  return lvd_sys_result(result) < 0 ? -1 : (int)cpu;
}

/* ---- descriptors ---------------------------------------------------------------------------- */

/* A word for each number; what is above is not noted. */
static lvd_a32 not_for_children[1 << 20];
static lvd_a32 below; /* what is noted is below this */

void lvd_close_on_fork(int fd, bool on) {
  size_t count = sizeof not_for_children / sizeof *not_for_children;
  if (fd < 0 || (size_t)fd >= count) return;
  uint32_t known = lvd_load_relaxed_u32(&below), wanted = (uint32_t)fd + 1;
  if (!on && wanted > known) return;
  lvd_store_relaxed_u32(&not_for_children[fd], on);
  while (known < wanted && !lvd_cas_relaxed_u32(&below, &known, wanted)) {
  }
}

void lvd_os_close_in_child(void) {
  uint32_t end = lvd_load_relaxed_u32(&below);
  for (uint32_t fd = 0; fd < end; fd++) {
    if (!lvd_load_relaxed_u32(&not_for_children[fd])) continue;
    lvd_store_relaxed_u32(&not_for_children[fd], 0);
    LVD_SYS(SYS_close, fd);
  }
}
