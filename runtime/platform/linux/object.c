/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Private copies of shared objects on Linux. The dynamic loader identifies a file by its inode, and
 * would share the variables of a second program with the first. So each program is copied to a
 * memfd, which also does not change when the file on disk is overwritten. The descriptor stays
 * open, since its number is part of the name by which the loader identifies the copy.
 *
 * By weak references, as in library.c: a static program loads nothing. */
#include "../platform.h"
#include "syscall.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlclose
#pragma weak dlerror
#pragma weak dlinfo

struct lvd_os_object {
  void *library;
  int fd;
  char name[32];
};

static lvd_status cannot(const char *path, const char *text, lvd_status status, char *why,
                         size_t size) {
  if (why) snprintf(why, size, "%s: %s", path, text);
  return status;
}

/* The descriptor of the copy; negative: see errno. */
static int copy_of(int file) {
  struct lvd_sys_statx s;
  if (lvd_sys_stat(file, "", &s) != 0) return -1;
  if (!S_ISREG(s.stx_mode)) {
    errno = S_ISDIR(s.stx_mode) ? EISDIR : EINVAL;
    return -1;
  }
  int fd = lvd_sys_memfd_create("levada-program", MFD_CLOEXEC);
  for (uint64_t left = s.stx_size; fd >= 0 && left > 0;) {
    ssize_t n = lvd_sys_sendfile(fd, file, left);
    if (n > 0) {
      left -= (size_t)n;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    int error = n < 0 ? errno : EIO; /* the file has become shorter */
    lvd_sys_close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

/* True: a segment that the loader would map is missing, as of a file that is being written. The
 * loader would map it all the same, and an access to it would raise SIGBUS. Files that are no
 * objects are refused by the loader. */
static bool is_cut(int fd) {
  struct lvd_sys_statx s;
  ElfW(Ehdr) head;
  if (lvd_sys_stat(fd, "", &s) != 0 ||
      lvd_sys_pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
    return false;
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)))
    return false;
  uint64_t size = s.stx_size;
  for (uint32_t i = 0; i < head.e_phnum; i++) {
    ElfW(Phdr) part;
    uint64_t at = head.e_phoff + (uint64_t)i * sizeof part;
    if (at > size || lvd_sys_pread(fd, &part, sizeof part, (off_t)at) != (ssize_t)sizeof part)
      return true;
    if (part.p_type != PT_LOAD) continue;
    if (part.p_offset > size || part.p_filesz > size - part.p_offset) return true;
  }
  return false;
}

/* What of an object that is loaded is needed here to look at its relocations. */
typedef struct tables {
  const ElfW(Sym) * symbols;
  const char *names;
  const char *relocations[2]; /* of data, and of calls (the PLT) */
  size_t sizes[2];
  size_t entry[2];
} tables;

static tables tables_of(const struct link_map *map) {
  tables t = {.entry = {sizeof(ElfW(Rela)), sizeof(ElfW(Rela))}};
  for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
    /* glibc relocates these addresses in the table itself, except where that is read-only (RISC-V)
     */
    uintptr_t at = d->d_un.d_ptr >= map->l_addr ? d->d_un.d_ptr : map->l_addr + d->d_un.d_ptr;
    switch (d->d_tag) {
    case DT_SYMTAB:
      t.symbols = (const ElfW(Sym) *)at;
      break;
    case DT_STRTAB:
      t.names = (const char *)at;
      break;
    case DT_RELA:
    case DT_REL:
      t.relocations[0] = (const char *)at;
      break;
    case DT_RELASZ:
    case DT_RELSZ:
      t.sizes[0] = d->d_un.d_val;
      break;
    case DT_RELAENT:
    case DT_RELENT:
      t.entry[0] = d->d_un.d_val;
      break;
    case DT_JMPREL:
      t.relocations[1] = (const char *)at;
      break;
    case DT_PLTRELSZ:
      t.sizes[1] = d->d_un.d_val;
      break;
    case DT_PLTREL:
      t.entry[1] = d->d_un.d_val == DT_REL ? sizeof(ElfW(Rel)) : sizeof(ElfW(Rela));
      break;
    default:
      break;
    }
  }
  return t;
}

/* A runtime that was linked into the object is not used: the interface is always that of the
 * process. */
static bool is_interface(const char *name) {
  static const char *const prefixes[] = {"lvd_", "pb_", "stream_", "srpc_"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
  return false;
}

/* A function or variable of the object that the object itself does not use, since the process has
 * another of the same name, and the loader looks there first: as pipe() of a program that is linked
 * without -Bsymbolic. A weak one is defined to be replaced. NULL: there is none. */
static const char *replaced(void *library) {
  struct link_map *map = NULL;
  if (!dlinfo || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map) return NULL;
  tables t = tables_of(map);
  if (!t.symbols || !t.names) return NULL;
  for (int i = 0; i < 2; i++)
    for (size_t at = 0; t.relocations[i] && at < t.sizes[i]; at += t.entry[i]) {
      /* REL and RELA begin with the same two members */
      const ElfW(Rel) *r = (const ElfW(Rel) *)(t.relocations[i] + at);
      size_t number =
          sizeof(ElfW(Addr)) == 8 ? (size_t)((uint64_t)r->r_info >> 32) : r->r_info >> 8;
      const ElfW(Sym) *s = &t.symbols[number];
      unsigned binding = s->st_info >> 4, type = s->st_info & 15;
      if (number == 0 || s->st_shndx == SHN_UNDEF || binding != STB_GLOBAL) continue;
      if (type != STT_FUNC && type != STT_OBJECT) continue;
      const char *name = t.names + s->st_name;
      if (is_interface(name)) continue;
      const void *first = dlsym(RTLD_DEFAULT, name);
      if (first && (uintptr_t)first != map->l_addr + s->st_value) return name;
    }
  return NULL;
}

lvd_status lvd_os_object_open(const char *path, lvd_os_object **out, char *why, size_t size) {
  if (!dlopen || !dlsym || !dlclose || !dlerror)
    return cannot(path, "a statically linked program cannot load others", LVD_E_ARGUMENT, why,
                  size);
  int file = lvd_sys_open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return cannot(path, strerror(errno), LVD_E_ARGUMENT, why, size);
  int fd = copy_of(file), error = errno;
  lvd_sys_close(file);
  if (fd < 0)
    return cannot(path, strerror(error),
                  error == EISDIR || error == EINVAL ? LVD_E_ARGUMENT : LVD_E_LIMIT, why, size);
  if (is_cut(fd)) {
    lvd_sys_close(fd);
    return cannot(path, "the file is truncated: a segment is missing", LVD_E_ARGUMENT, why, size);
  }
  lvd_os_object *o = calloc(1, sizeof *o);
  if (!o) {
    lvd_sys_close(fd);
    return cannot(path, "no memory", LVD_E_MEMORY, why, size);
  }
  o->fd = fd;
  snprintf(o->name, sizeof o->name, "/proc/self/fd/%d", fd);
  if (!(o->library = dlopen(o->name, RTLD_NOW | RTLD_LOCAL))) {
    const char *text = dlerror(), *rest = text ? strstr(text, o->name) : NULL;
    if (rest) text = rest + strlen(o->name); /* the message contains the name of the copy */
    if (text && strncmp(text, ": ", 2) == 0) text += 2;
    cannot(path, text ? text : "it cannot be loaded", LVD_E_ARGUMENT, why, size);
    free(o);
    lvd_sys_close(fd);
    return LVD_E_ARGUMENT;
  }
  const char *name = replaced(o->library);
  if (name) {
    char text[200];
    snprintf(text, sizeof text,
             "its own `%s` would not be used, since the process has another of that name: link it "
             "with -Wl,-Bsymbolic (levada cc --plugin does)",
             name);
    cannot(path, text, LVD_E_ARGUMENT, why, size);
    lvd_os_object_close(o);
    return LVD_E_ARGUMENT;
  }
  *out = o;
  return LVD_OK;
}

void *lvd_os_object_symbol(lvd_os_object *o, const char *name) { return dlsym(o->library, name); }

typedef struct code_of {
  const char *name;
  uintptr_t from, to;
} code_of;

static int note_code(struct dl_phdr_info *info, size_t size, void *argument) {
  code_of *c = argument;
  (void)size;
  if (!info->dlpi_name || strcmp(info->dlpi_name, c->name) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    c->from = info->dlpi_addr + part->p_vaddr;
    c->to = c->from + part->p_memsz;
  }
  return 1;
}

void lvd_os_object_code_range(const lvd_os_object *o, uintptr_t *from, uintptr_t *to) {
  code_of c = {.name = o->name};
  dl_iterate_phdr(note_code, &c);
  *from = c.from;
  *to = c.to;
}

/* Some objects stay loaded (C++ with unique symbols, -z nodelete). Their descriptor stays open, so
 * that no other copy gets the same number and name. */
void lvd_os_object_close(lvd_os_object *o) {
  dlclose(o->library);
  void *stays = dlopen(o->name, RTLD_NOW | RTLD_NOLOAD);
  if (stays)
    dlclose(stays);
  else
    lvd_sys_close(o->fd);
  free(o);
}
