/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Observing domains from outside, and removing dead processes while others continue. */
#include "test_mcapi.h"

#include <levada/mcapi_observe.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static mcapi_status_t s;
static int ready[2], go[2];

static void tell(int *pipe_) { CHECK_EQ(write(pipe_[1], "", 1), 1); }
static void await(int *pipe_) {
  char c;
  CHECK_EQ(read(pipe_[0], &c, 1), 1);
}

static pid_t start(void (*body)(void)) {
  test_domain();
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  body();
  _exit(0);
}

static void done(mcapi_request_t *r) {
  size_t size;
  SAYS(s == MCAPI_PENDING ? MCAPI_SUCCESS : s, MCAPI_SUCCESS);
  CHECK(mcapi_wait(r, &size, 20000, &s));
}

/* Node 1: one message received and two queued; three packets queued, two scalars. */
static void busy(void) {
  char in[100];
  size_t size;
  mcapi_request_t r[6];
  mcapi_pktchan_send_hndl_t po;
  mcapi_pktchan_recv_hndl_t pi;
  mcapi_sclchan_send_hndl_t so;
  mcapi_sclchan_recv_hndl_t si;
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2), c = endpoint_at(3), d = endpoint_at(4);
  for (int i = 0; i < 3; i++) mcapi_msg_send(a, b, in, 40, 1, &s);
  mcapi_msg_recv(b, in, sizeof in, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_pktchan_connect_i(a, b, &r[0], &s);
  mcapi_pktchan_send_open_i(&po, a, &r[1], &s);
  mcapi_pktchan_recv_open_i(&pi, b, &r[2], &s);
  mcapi_sclchan_connect_i(c, d, &r[3], &s);
  mcapi_sclchan_send_open_i(&so, c, &r[4], &s);
  mcapi_sclchan_recv_open_i(&si, d, &r[5], &s);
  for (int i = 0; i < 6; i++) done(&r[i]);
  static char large[10000];
  for (int i = 0; i < 3; i++) mcapi_pktchan_send(po, large, (size_t)i * 5000, &s);
  for (int i = 0; i < 2; i++) mcapi_sclchan_send_uint32(so, 7, &s);
  SAYS(s, MCAPI_SUCCESS);
  tell(ready);
  await(go);
  node_ends();
}

/* Node 2, which is killed with two endpoints. */
static void doomed(void) {
  node_is(2);
  endpoint_at(1);
  endpoint_at(2);
  tell(ready);
  await(go);
}

static const lvd_mcapi_endpoint_info *endpoint(const lvd_mcapi_domain_info *seen, uint32_t node,
                                               uint32_t port) {
  for (uint32_t i = 0; i < seen->endpoint_count; i++)
    if (seen->endpoint[i].node == node && seen->endpoint[i].port == port) return &seen->endpoint[i];
  return NULL;
}

static bool is_listed(void) {
  uint32_t number[4096], count;
  CHECK_EQ(lvd_mcapi_domains(number, 4096, &count), LVD_OK);
  bool there = false;
  for (uint32_t i = 0; i < count && i < 4096; i++) {
    CHECK(i == 0 || number[i - 1] < number[i]);
    there |= number[i] == test_domain();
  }
  return there;
}

void test_mcapi_observe(void) {
  lvd_mcapi_domain_info seen;
  CHECK(pipe(ready) == 0 && pipe(go) == 0);
  CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_E_NOT_FOUND);
  CHECK(!is_listed());
  pid_t id = start(busy);
  await(ready);
  CHECK(is_listed());
  CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_OK);
  CHECK_EQ(seen.processes, 1);
  CHECK_EQ(seen.dead, 0);
  CHECK_EQ(seen.node_count, 1);
  CHECK_EQ(seen.node[0].id, 1);
  CHECK_EQ(seen.node[0].process, (uint32_t)id);
  CHECK(seen.node[0].alive);
  CHECK_EQ(seen.endpoint_count, 4);
  const lvd_mcapi_endpoint_info *a = endpoint(&seen, 1, 1), *b = endpoint(&seen, 1, 2),
                                *d = endpoint(&seen, 1, 4);
  CHECK(a && b && d && a->alive && b->alive);
  CHECK(a->sends && a->connected && a->opened && a->kind == LVD_MCAPI_PACKETS);
  CHECK_EQ(a->peer, b->handle);
  CHECK_EQ(a->peer_port, 2);
  CHECK(!b->sends && b->connected);
  CHECK_EQ(b->messages, 2);
  CHECK_EQ(b->elements, over_queues() ? 4 : 3); /* in message queues one of them is two pieces */
  CHECK_EQ(b->received, 1);
  CHECK_EQ(b->received_bytes, 40);
  CHECK_EQ(d->kind, LVD_MCAPI_SCALARS);
  CHECK_EQ(d->elements, 2);
  lvd_mcapi_domain_forget(&seen);
  /* There is nothing to remove, and observing changes nothing. */
  lvd_mcapi_cleanup_result cleared;
  CHECK_EQ(lvd_mcapi_domain_clean(test_domain(), &cleared), LVD_OK);
  CHECK(!cleared.processes && !cleared.gone);
  tell(go);
  int how;
  CHECK(waitpid(id, &how, 0) == id && WIFEXITED(how) && WEXITSTATUS(how) == 0);
  CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_E_NOT_FOUND);
}

static void path_of(char *out, size_t size, const char *suffix) {
  snprintf(out, size, "/dev/shm/levada-%u.0/mcapi-%u%s", (unsigned)geteuid(),
           (unsigned)test_domain(), suffix);
}

void test_mcapi_clean(void) {
  lvd_mcapi_domain_info seen;
  lvd_mcapi_cleanup_result cleared;
  CHECK(pipe(ready) == 0 && pipe(go) == 0);
  pid_t id = start(doomed);
  await(ready);
  kill(id, SIGKILL);
  waitpid(id, NULL, 0);
  /* No process is there to remove it. */
  CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_OK);
  CHECK(seen.dead == 1 && seen.node_count == 1 && !seen.node[0].alive);
  CHECK(seen.endpoint_count == 2 && !seen.endpoint[0].alive);
  lvd_mcapi_domain_forget(&seen);
  CHECK_EQ(lvd_mcapi_domain_clean(test_domain(), &cleared), LVD_OK);
  CHECK_EQ(cleared.processes, 1);
  CHECK_EQ(cleared.nodes, 1);
  CHECK_EQ(cleared.endpoints, 2);
  CHECK(cleared.gone && !is_listed());
  /* A file of that name that is no domain of ours. */
  char path[64];
  path_of(path, sizeof path, "");
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  CHECK(fd >= 0 && write(fd, "nonsense", 8) == 8);
  close(fd);
  CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_E_ABI);
  CHECK_EQ(lvd_mcapi_domain_clean(test_domain(), &cleared), LVD_OK);
  CHECK(cleared.gone && access(path, F_OK) != 0);
  /* A living process continues. */
  id = start(busy);
  await(ready);
  pid_t other = start(doomed);
  await(ready);
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  CHECK_EQ(lvd_mcapi_domain_clean(test_domain(), &cleared), LVD_OK);
  CHECK(!cleared.gone);
  CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_OK);
  CHECK(seen.processes == 1 && seen.dead == 0 && seen.endpoint_count == 4);
  lvd_mcapi_domain_forget(&seen);
  tell(go);
  int how;
  CHECK(waitpid(id, &how, 0) == id && WIFEXITED(how) && WEXITSTATUS(how) == 0);
  CHECK(!is_listed());
  /* Refused in a member process. */
  node_is(3);
  CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_E_STATE);
  CHECK_EQ(lvd_mcapi_domain_clean(test_domain(), &cleared), LVD_E_STATE);
  node_ends();
}
