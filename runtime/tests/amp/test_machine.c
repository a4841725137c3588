/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Machines without units: running images repeatedly; faults, stops, invalid images, and a machine
 * that dies. */
#include "../support/test.h"

#include <levada/machine.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef LEVADA_REMOTE_CHILD
#define LEVADA_REMOTE_CHILD   ""
#define LEVADA_REMOTE32_CHILD ""
#endif
#ifndef LEVADA_NATIVE_CHILD
#define LEVADA_NATIVE_CHILD ""
#endif

#define LIMIT 300000000000

typedef struct kind {
  const char *name, *serves; /* a program that serves procedures */
  const char *seven, *illegal, *loops;
  size_t seven_size, illegal_size, loops_size;
} kind;

static const kind
    qemu =
        {"qemu", LEVADA_REMOTE_CHILD, "\x13\x05\x70\0\x67\x80\0\0", "\0\0\0\0", "\x6f\0\0\0", 8, 4,
         4},
    qemu32 = {"qemu32",
              LEVADA_REMOTE32_CHILD,
              "\x13\x05\x70\0\x67\x80\0\0",
              "\0\0\0\0",
              "\x6f\0\0\0",
              8,
              4,
              4},
    native = {"native", LEVADA_NATIVE_CHILD, "\xb8\x07\0\0\0\xc3", "\x0f\x0b", "\xeb\xfe", 6, 2, 2};

static const kind *on_machine(const kind *k, const char *emulator) {
  char command[80];
#ifdef LVD_EMULATED
  SKIP("an emulator within an emulator");
#endif
  if (!*LEVADA_REMOTE_CHILD) SKIP("no riscv64-linux-gnu-gcc: there is no loader");
  snprintf(command, sizeof command, "command -v %s >/dev/null", emulator);
  if (system(command) != 0) SKIP("no QEMU for it: install qemu-system-misc");
  return k;
}

static const kind *on_qemu(void) { return on_machine(&qemu, "qemu-system-riscv64"); }
static const kind *on_qemu32(void) { return on_machine(&qemu32, "qemu-system-riscv32"); }

static const kind *on_native(void) {
  if (!*LEVADA_NATIVE_CHILD) SKIP("the machine that is a process is there for x86-64");
  return &native;
}

static lvd_machine *boot(const kind *k) {
  lvd_machine *m;
  lvd_status status = lvd_machine_boot(k->name, LIMIT, &m);
  if (status != LVD_OK) fprintf(stderr, "%s\n", lvd_window_error_text());
  CHECK_EQ(status, LVD_OK);
  return m;
}

static lvd_status load_bytes(lvd_machine *m, const char *bytes, size_t size) {
  char name[] = "/tmp/levada-image-XXXXXX";
  int fd = mkstemp(name);
  CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
  close(fd);
  lvd_status status = lvd_machine_load(m, name);
  unlink(name);
  return status;
}

static void runs(lvd_machine *m) {
  lvd_status status = lvd_machine_run(m, LIMIT);
  if (status != LVD_OK) fprintf(stderr, "%s\n", lvd_window_error_text());
  CHECK_EQ(status, LVD_OK);
}

static lvd_machine_report until_not(lvd_machine *m, enum lvd_machine_state state) {
  lvd_machine_report r;
  do lvd_machine_look(m, 1000000000, &r);
  while (r.state == state);
  return r;
}

static void images(const kind *k) {
  lvd_machine *m = boot(k);
  lvd_machine_report r;
  lvd_machine_look(m, 0, &r);
  CHECK_EQ(r.state, LVD_MACHINE_IDLE);
  CHECK_EQ(lvd_machine_run(m, LIMIT), LVD_E_STATE);
  CHECK(strstr(lvd_window_error_text(), "no image"));
  CHECK_EQ(load_bytes(m, k->seven, k->seven_size), LVD_OK);
  for (int i = 0; i < 20; i++) {
    runs(m);
    r = until_not(m, LVD_MACHINE_RUNNING);
    CHECK_EQ(r.state, LVD_MACHINE_EXITED);
    CHECK_EQ(r.result, 7);
  }
  /* An invalid image leaves the previous one in place. */
  CHECK_EQ(lvd_machine_load(m, "/nowhere/at/all"), LVD_E_NOT_FOUND);
  CHECK(strstr(lvd_window_error_text(), "cannot be opened"));
  CHECK_EQ(load_bytes(m, "", 0), LVD_E_ARGUMENT);
  CHECK_EQ(load_bytes(m, "\177ELF", 4), LVD_E_ARGUMENT);
  char *large = calloc(1, 3 << 20);
  CHECK_EQ(load_bytes(m, large, 3 << 20), LVD_E_ARGUMENT);
  CHECK(strstr(lvd_window_error_text(), "room"));
  free(large);
  runs(m);
  CHECK_EQ(until_not(m, LVD_MACHINE_RUNNING).result, 7);
  lvd_machine_end(m);
}

static void faults(const kind *k) {
  lvd_machine *m = boot(k);
  CHECK_EQ(lvd_machine_stop(m, LIMIT), LVD_E_STATE);
  for (int i = 0; i < 3; i++) {
    CHECK_EQ(load_bytes(m, k->illegal, k->illegal_size), LVD_OK);
    runs(m);
    lvd_machine_report r = until_not(m, LVD_MACHINE_RUNNING);
    CHECK_EQ(r.state, LVD_MACHINE_FAILED);
    CHECK(strstr(r.text, "an illegal instruction"));
    CHECK_EQ(load_bytes(m, k->loops, k->loops_size), LVD_OK);
    runs(m);
    CHECK_EQ(lvd_machine_run(m, LIMIT), LVD_E_STATE);
    CHECK_EQ(lvd_machine_stop(m, LIMIT), LVD_OK);
    lvd_machine_look(m, 0, &r);
    CHECK_EQ(r.state, LVD_MACHINE_FAILED);
    CHECK(strstr(r.text, "was stopped"));
    CHECK_EQ(load_bytes(m, k->seven, k->seven_size), LVD_OK);
    runs(m);
    CHECK_EQ(until_not(m, LVD_MACHINE_RUNNING).result, 7);
  }
  CHECK_EQ(lvd_machine_load(m, k->serves), LVD_OK);
  runs(m);
  CHECK_EQ(until_not(m, LVD_MACHINE_RUNNING).state, LVD_MACHINE_SERVING);
  CHECK_EQ(lvd_machine_stop(m, LIMIT), LVD_OK);
  lvd_machine_end(m);
}

static void dies(const kind *k) {
  lvd_machine *m = boot(k);
  CHECK_EQ(load_bytes(m, k->loops, k->loops_size), LVD_OK);
  runs(m);
  CHECK_EQ(kill(lvd_machine_process(m), SIGKILL), 0);
  lvd_machine_report r = until_not(m, LVD_MACHINE_RUNNING);
  CHECK_EQ(r.state, LVD_MACHINE_DEAD);
  CHECK(strstr(r.text, "has ended"));
  CHECK_EQ(lvd_machine_run(m, LIMIT), LVD_E_PEER_GONE);
  CHECK_EQ(lvd_machine_stop(m, LIMIT), LVD_E_PEER_GONE);
  CHECK(strstr(lvd_window_error_text(), "has ended"));
  lvd_machine_end(m);
}

/* The host is killed while its program waits, with unread signals, or while it computes: the
 * machine ends with it. (This process reaps everything that is left.) */
static void host_dies(const kind *k) {
  CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  for (int round = 0; round < 4; round++) {
    pid_t host = fork();
    CHECK(host >= 0);
    if (host == 0) {
      lvd_machine *m = boot(k);
      CHECK_EQ(round % 2 ? load_bytes(m, k->loops, k->loops_size) : lvd_machine_load(m, k->serves),
               LVD_OK);
      runs(m);
      sleep_ms(100); /* it has signalled by then, or soon */
      raise(SIGKILL);
    }
    int how = 0;
    CHECK_EQ(waitpid(host, &how, 0), host);
    CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    pid_t left = 0;
    for (int i = 0; i < 20000 && (left = waitpid(-1, NULL, WNOHANG)) >= 0; i++)
      if (left == 0) sleep_ms(1);
    CHECK_EQ(left, -1);
  }
}

void test_machine_images_qemu(void) { images(on_qemu()); }
void test_machine_images_qemu32(void) { images(on_qemu32()); }
void test_machine_images_native(void) { images(on_native()); }
void test_machine_faults_qemu(void) { faults(on_qemu()); }
void test_machine_faults_qemu32(void) { faults(on_qemu32()); }
void test_machine_faults_native(void) { faults(on_native()); }
void test_machine_dies_qemu(void) { dies(on_qemu()); }
void test_machine_dies_qemu32(void) { dies(on_qemu32()); }
void test_machine_dies_native(void) { dies(on_native()); }
void test_machine_host_dies_qemu(void) { host_dies(on_qemu()); }
void test_machine_host_dies_qemu32(void) { host_dies(on_qemu32()); }
void test_machine_host_dies_native(void) { host_dies(on_native()); }

void test_machine_bad_starts(void) {
  lvd_machine *m;
  CHECK_EQ(lvd_machine_boot("abacus", LIMIT, &m), LVD_E_NOT_FOUND);
  CHECK(strstr(lvd_window_error_text(), "abacus"));
  CHECK_EQ(lvd_machine_boot("qemu:x", LIMIT, &m), LVD_E_NOT_FOUND);
  const kind *k = on_native();
  setenv("LEVADA_NATIVE_LOADER", "/nowhere/at/all", 1);
  CHECK_EQ(lvd_machine_boot(k->name, LIMIT, &m), LVD_E_NOT_FOUND);
  setenv("LEVADA_NATIVE_LOADER", "/bin/false", 1);
  CHECK_EQ(lvd_machine_boot(k->name, LIMIT, &m), LVD_E_PEER_GONE);
  /* sleeps for as many seconds as the descriptor numbers say */
  setenv("LEVADA_NATIVE_LOADER", "/bin/sleep", 1);
  CHECK_EQ(lvd_machine_boot(k->name, 50000000, &m), LVD_E_TIMEOUT);
}
