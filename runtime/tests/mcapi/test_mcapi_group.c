/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A domain shared by the members of a group. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>
#include <levada/mcapi_observe.h>

#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ONE = 54321, OTHER = 54322, STRANGER = 54323, GROUP = 54320 };

static mcapi_status_t s;

static mcapi_uint_t group_now(mcapi_node_t node) {
  mcapi_uint_t value = 77;
  mcapi_node_get_attribute(test_domain(), node, LVD_MCAPI_NODE_ATTR_GROUP, &value, sizeof value,
                           &s);
  SAYS(s, MCAPI_SUCCESS);
  return value;
}

static void is_well(pid_t id) {
  int how;
  CHECK_EQ(waitpid(id, &how, 0), id);
  CHECK(WIFEXITED(how));
  CHECK_EQ(WEXITSTATUS(how), 0);
}

/* By attribute and by environment; separate from the user's own domain of the same number. */
void test_mcapi_group(void) {
  FORKS_LATE;
  char path[64], text[16];
  struct stat st;
  const mcapi_uint_t mine = (mcapi_uint_t)getegid();
  test_domain();
  unsetenv("LEVADA_MCAPI_GROUP");
  umask(077); /* has no effect */
  node_is(1);
  CHECK_EQ(group_now(1), LVD_MCAPI_NO_GROUP);
  pid_t id = fork();
  if (id == 0) {
    SAYS(node_with(1, 0, mine), MCAPI_SUCCESS); /* the node number is free there */
    CHECK_EQ(group_now(1), mine);
    mcapi_endpoint_t e = endpoint_at(5);
    snprintf(path, sizeof path, "/dev/shm/levada-g%u.0", mine);
    CHECK_EQ(stat(path, &st), 0);
    CHECK((st.st_mode & 07777) == 02770 && st.st_gid == mine);
    snprintf(path, sizeof path, "/dev/shm/levada-g%u.0/mcapi-%u", mine, test_domain());
    CHECK_EQ(stat(path, &st), 0);
    CHECK((st.st_mode & 07777) == 0660 && st.st_gid == mine);
    pid_t other = fork();
    if (other == 0) {
      snprintf(text, sizeof text, "%u", mine);
      setenv("LEVADA_MCAPI_GROUP", text, 1);
      lvd_mcapi_domain_info seen;
      CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_OK);
      CHECK_EQ(seen.endpoint_count, 1);
      node_is(2);
      CHECK_EQ(group_now(2), mine);
      mcapi_endpoint_t from = endpoint_at(1), to = endpoint_of(1, 5);
      CHECK_EQ(to, e);
      mcapi_msg_send(from, to, "hello", 6, 0, &s);
      SAYS(s, MCAPI_SUCCESS);
      node_ends();
      _exit(0);
    }
    is_well(other);
    char in[8];
    size_t size;
    mcapi_msg_recv(e, in, sizeof in, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK(strcmp(in, "hello") == 0);
    node_ends();
    CHECK(stat(path, &st) != 0); /* removed */
    _exit(0);
  }
  is_well(id);
  id = fork();
  if (id == 0) {
    SAYS(node_with(2, LVD_MCAPI_TRANSPORT_PMQ, mine), MCAPI_ERR_ATTR_INCOMPATIBLE);
    setenv("LEVADA_MCAPI_GROUP", "no such group", 1);
    mcapi_info_t info;
    mcapi_initialize(test_domain(), 2, NULL, NULL, &info, &s);
    SAYS(s, MCAPI_ERR_NODE_INITFAILED);
    _exit(0);
  }
  is_well(id);
  node_ends();
}

/* Becomes another user, a member of the group or not. */
static void become(uid_t user, gid_t group) {
  const gid_t groups[] = {group};
  CHECK_EQ(setgroups(1, groups), 0);
  CHECK(setgid(user) == 0 && setuid(user) == 0);
}

static pid_t as(uid_t user, gid_t group, void (*body)(void)) {
  test_domain();
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  become(user, group);
  body();
  _exit(0);
}

/* Reports progress, since a busy machine may take any time. */
static int says[2];
static void report_progress(char what) { CHECK_EQ(write(says[1], &what, 1), 1); }
static void hear(char what) {
  char heard = 0;
  CHECK_EQ(read(says[0], &heard, 1), 1);
  CHECK_EQ(heard, what);
}

static void waits(void) {
  SAYS(node_with(2, 0, GROUP), MCAPI_SUCCESS);
  char in[8];
  size_t size;
  mcapi_endpoint_t e = endpoint_at(1);
  report_progress('e');
  mcapi_msg_recv(e, in, sizeof in, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  report_progress('m');
  for (;;) pause();
}

static void talks(void) {
  SAYS(node_with(1, 0, GROUP), MCAPI_SUCCESS);
  mcapi_timeout_t limit = 10000;
  mcapi_endpoint_t from = endpoint_at(1), to = endpoint_of(2, 1);
  mcapi_endpoint_set_attribute(from, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  do mcapi_msg_send(from, to, "again", 6, 0, &s); /* until it is killed */
  while (s == MCAPI_SUCCESS);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  node_ends();
}

static void is_refused(void) { SAYS(node_with(3, 0, GROUP), MCAPI_ERR_NODE_INITFAILED); }

static void is_alone(void) {
  SAYS(node_with(2, 0, GROUP), MCAPI_SUCCESS); /* files that another member left do not matter */
  endpoint_at(1);
  node_ends();
}

/* Two users communicate; one is killed, and the other gets an error. Other users cannot join. */
void test_mcapi_group_users(void) {
  FORKS_LATE;
  if (geteuid() != 0) SKIP("becomes other users");
  CHECK_EQ(pipe(says), 0);
  for (int round = 0; round < 5; round++) {
    pid_t other = as(round % 2 ? ONE : OTHER, GROUP, waits);
    pid_t one = as(round % 2 ? OTHER : ONE, GROUP, talks);
    hear('e');
    hear('m');
    is_well(as(STRANGER, STRANGER, is_refused));
    kill(other, SIGKILL);
    CHECK_EQ(waitpid(other, NULL, 0), other);
    is_well(one);
    other = as(ONE, GROUP, waits); /* no process cleans up after it */
    hear('e');
    kill(other, SIGKILL);
    CHECK_EQ(waitpid(other, NULL, 0), other);
    is_well(as(OTHER, GROUP, is_alone));
  }
  /* Nothing is left. The directory may have been removed, or contain files of another run. */
  char name[32];
  int length = snprintf(name, sizeof name, "mcapi-%u", (unsigned)test_domain());
  DIR *names = opendir("/dev/shm/levada-g54320.0");
  for (struct dirent *e; names && (e = readdir(names));)
    CHECK(strncmp(e->d_name, name, (size_t)length) != 0);
  if (names) closedir(names);
  rmdir("/dev/shm/levada-g54320.0");
}
