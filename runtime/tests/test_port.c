/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the port reads from the system. */
#include "port/port.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *folder, const char *name, const char *text) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  CHECK(f && fputs(text, f) >= 0);
  fclose(f);
}

/* A mock of the control groups' file system: the root group's files are read too. */
void test_port_quota(void) {
  char root[] = "/tmp/levada-test-XXXXXX", cpu[64], path[80];
  CHECK(mkdtemp(root));
  CHECK_EQ(lvd_port_quota(root), 0);
  write_file(root, "cpu.max", "max 100000\n");
  CHECK_EQ(lvd_port_quota(root), 0);
  write_file(root, "cpu.max", "250000 100000\n");
  CHECK_EQ(lvd_port_quota(root), 2); /* rounded down: no worker is stopped half way */
  write_file(root, "cpu.max", "50000 100000\n");
  CHECK_EQ(lvd_port_quota(root), 1);
  write_file(root, "cpu.max", "nonsense\n");
  CHECK_EQ(lvd_port_quota(root), 0);
  snprintf(path, sizeof path, "%s/cpu.max", root);
  unlink(path);
  snprintf(cpu, sizeof cpu, "%s/cpu", root);
  mkdir(cpu, 0700);
  write_file(cpu, "cpu.cfs_quota_us", "300000\n");
  write_file(cpu, "cpu.cfs_period_us", "100000\n");
  uint32_t v1 = lvd_port_quota(root);
  CHECK(v1 == 3 || v1 == 0); /* 0: this system has no cpu hierarchy of version 1 */
  write_file(cpu, "cpu.cfs_quota_us", "-1\n");
  CHECK_EQ(lvd_port_quota(root), 0);
  snprintf(path, sizeof path, "rm -r %s", root);
  CHECK_EQ(system(path), 0);
  int32_t list[4];
  uint32_t n = lvd_port_cpus(list, 4);
  CHECK(n >= 1 && list[0] >= 0);
}
