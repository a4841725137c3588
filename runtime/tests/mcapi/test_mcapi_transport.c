/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The transport of a domain: set by an attribute, by the environment, or by neither. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>
#include <levada/mcapi_observe.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static mcapi_status_t s;
static const mcapi_uint_t SHM = LVD_MCAPI_TRANSPORT_SHM, PMQ = LVD_MCAPI_TRANSPORT_PMQ;

static mcapi_uint_t transport_now(mcapi_node_t node) {
  mcapi_uint_t value = 77;
  mcapi_node_get_attribute(test_domain(), node, LVD_MCAPI_NODE_ATTR_TRANSPORT, &value, sizeof value,
                           &s);
  SAYS(s, MCAPI_SUCCESS);
  return value;
}

/* A message to itself arrives. */
static void carries(void) {
  char in[8];
  size_t size;
  mcapi_endpoint_t e = endpoint_at(1);
  mcapi_msg_send(e, e, "carried", 8, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_msg_recv(e, in, sizeof in, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(strcmp(in, "carried") == 0);
}

/* Joins from another process with a requested transport; returns the status. */
static int of_another(const char *environment, mcapi_uint_t transport) {
  pid_t id = fork();
  CHECK(id >= 0);
  if (!id) {
    if (environment) setenv("LEVADA_MCAPI_TRANSPORT", environment, 1);
    _exit((int)node_with(9, transport, LVD_MCAPI_NO_GROUP));
  }
  int how;
  CHECK(waitpid(id, &how, 0) == id && WIFEXITED(how));
  return WEXITSTATUS(how);
}

static void *of_a_thread(void *transport) {
  mcapi_uint_t t = *(const mcapi_uint_t *)transport;
  mcapi_status_t status = node_with(5, t, LVD_MCAPI_NO_GROUP);
  CHECK_EQ(status, t == PMQ ? MCAPI_ERR_ATTR_INCOMPATIBLE : MCAPI_SUCCESS);
  if (status == MCAPI_SUCCESS) node_ends();
  return NULL;
}

void test_mcapi_transport(void) {
  FORKS_LATE;
  test_domain();
  unsetenv("LEVADA_MCAPI_TRANSPORT");
  /* As the attribute says; a request for another transport fails, no request succeeds. */
  for (mcapi_uint_t t = SHM; t <= PMQ; t++) {
    SAYS(node_with(1, t, LVD_MCAPI_NO_GROUP), MCAPI_SUCCESS);
    CHECK_EQ(transport_now(1), t);
    carries();
    CHECK_EQ(of_another(NULL, 0), MCAPI_SUCCESS);
    CHECK_EQ(of_another(NULL, t), MCAPI_SUCCESS);
    CHECK_EQ(of_another(NULL, SHM + PMQ - t), MCAPI_ERR_ATTR_INCOMPATIBLE);
    CHECK_EQ(of_another(t == SHM ? "shm" : "pmq", 0), MCAPI_SUCCESS);
    CHECK_EQ(of_another(t == SHM ? "pmq" : "shm", 0), MCAPI_ERR_ATTR_INCOMPATIBLE);
    /* the attribute has precedence */
    CHECK_EQ(of_another(t == SHM ? "pmq" : "shm", t), MCAPI_SUCCESS);
    CHECK_EQ(of_another("paper", 0), MCAPI_ERR_NODE_INITFAILED);
    CHECK_EQ(of_another("", 0), MCAPI_SUCCESS);
    if (t == SHM) { /* also another node of this process */
      pthread_t thread;
      for (mcapi_uint_t wish = SHM; wish <= PMQ; wish++) {
        pthread_create(&thread, NULL, of_a_thread, &wish);
        pthread_join(thread, NULL);
      }
    }
    node_ends();
  }
  /* Observed from outside. */
  for (mcapi_uint_t t = SHM; t <= PMQ; t++) {
    int ready[2];
    char c = 'x';
    CHECK_EQ(pipe(ready), 0);
    pid_t id = fork();
    if (!id) {
      SAYS(node_with(1, t, LVD_MCAPI_NO_GROUP), MCAPI_SUCCESS);
      CHECK_EQ(write(ready[1], &c, 1), 1);
      pause();
    }
    CHECK_EQ(read(ready[0], &c, 1), 1);
    lvd_mcapi_domain_info seen;
    CHECK_EQ(lvd_mcapi_domain_snapshot(test_domain(), &seen), LVD_OK);
    CHECK_EQ(seen.transport, t);
    lvd_mcapi_domain_forget(&seen);
    kill(id, SIGKILL);
    CHECK_EQ(waitpid(id, NULL, 0), id);
  }
  /* A file that was left does not decide. */
  SAYS(node_with(1, SHM, LVD_MCAPI_NO_GROUP), MCAPI_SUCCESS);
  CHECK_EQ(transport_now(1), SHM);
  node_ends();
  const mcapi_uint_t none = 3;
  mcapi_node_attributes_t a;
  mcapi_node_init_attributes(&a, &s);
  mcapi_node_set_attribute(&a, LVD_MCAPI_NODE_ATTR_TRANSPORT, &none, sizeof none, &s);
  SAYS(s, MCAPI_ERR_ATTR_VALUE);
  /* Attributes that have not been initialized. */
  mcapi_info_t info;
  memset(&a, 0xa5, sizeof a);
  mcapi_initialize(test_domain(), 1, &a, NULL, &info, &s);
  SAYS(s, MCAPI_SUCCESS);
  node_ends();
}
