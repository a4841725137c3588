/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI within one process: statuses, endpoints, messages, requests; nodes that are threads. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static mcapi_status_t s;
static char buffer[MCAPI_MAX_MESSAGE_SIZE + 1];

bool over_queues(void) {
  const char *name = getenv("LEVADA_MCAPI_TRANSPORT");
  return name && strcmp(name, "pmq") == 0;
}

int test_slots(void) {
  struct rlimit limit = {0};
  long most = 0;
  if (!over_queues()) return 64;
  FILE *f = fopen("/proc/sys/fs/mqueue/msg_max", "r");
  if (!f || fscanf(f, "%ld", &most) != 1) SKIP("there are no message queues");
  fclose(f);
  getrlimit(RLIMIT_MSGQUEUE, &limit);
  return most >= 64 && limit.rlim_max == RLIM_INFINITY ? 64 : 10;
}

double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

mcapi_status_t node_with(mcapi_node_t node, mcapi_uint_t transport, mcapi_uint_t group) {
  mcapi_node_attributes_t a;
  mcapi_info_t info;
  mcapi_status_t status;
  mcapi_node_init_attributes(&a, &status);
  SAYS(status, MCAPI_SUCCESS);
  if (group != LVD_MCAPI_NO_GROUP)
    mcapi_node_set_attribute(&a, LVD_MCAPI_NODE_ATTR_GROUP, &group, sizeof group, &status);
  SAYS(status, MCAPI_SUCCESS);
  if (transport)
    mcapi_node_set_attribute(&a, LVD_MCAPI_NODE_ATTR_TRANSPORT, &transport, sizeof transport,
                             &status);
  SAYS(status, MCAPI_SUCCESS);
  mcapi_initialize(test_domain(), node, &a, NULL, &info, &status);
  return status;
}

void node_is(mcapi_node_t node) {
  mcapi_status_t status = 0;
  mcapi_info_t info;
  mcapi_initialize(test_domain(), node, NULL, NULL, &info, &status);
  SAYS(status, MCAPI_SUCCESS);
  CHECK_EQ(info.mcapi_version, MCAPI_VERSION);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  /* Sanitizers do not support a fork while a thread (the notifier) is starting. */
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
#endif
}

void node_ends(void) {
  mcapi_status_t status = 0;
  mcapi_finalize(&status);
  SAYS(status, MCAPI_SUCCESS);
}

mcapi_endpoint_t endpoint_at(mcapi_port_t port) {
  mcapi_status_t status = 0;
  mcapi_endpoint_t e = mcapi_endpoint_create(port, &status);
  SAYS(status, MCAPI_SUCCESS);
  return e;
}

mcapi_endpoint_t endpoint_of(mcapi_node_t node, mcapi_port_t port) {
  mcapi_status_t status = 0;
  mcapi_endpoint_t e = mcapi_endpoint_get(test_domain(), node, port, 20000, &status);
  SAYS(status, MCAPI_SUCCESS);
  return e;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void nothing_works(void) {
  mcapi_request_t r = 0;
  mcapi_endpoint_t e = 0;
  size_t size;
  mcapi_uint_t value;
#define NOT(call)                                                                                  \
  do {                                                                                             \
    s = 0;                                                                                         \
    call;                                                                                          \
    SAYS(s, MCAPI_ERR_NODE_NOTINIT);                                                               \
  } while (0)
  NOT(mcapi_finalize(&s));
  NOT(mcapi_domain_id_get(&s));
  NOT(mcapi_node_id_get(&s));
  NOT(mcapi_node_get_attribute(1, 1, MCAPI_NODE_ATTR_TYPE, &value, sizeof value, &s));
  NOT(mcapi_endpoint_create(1, &s));
  NOT(mcapi_endpoint_get_i(1, 1, 1, &e, &r, &s));
  NOT(mcapi_endpoint_get(1, 1, 1, 0, &s));
  NOT(mcapi_endpoint_release(1, &s));
  NOT(mcapi_endpoint_delete(1, &s));
  NOT(mcapi_endpoint_get_attribute(1, MCAPI_ENDP_ATTR_TYPE, &value, sizeof value, &s));
  NOT(mcapi_endpoint_set_attribute(1, MCAPI_ENDP_ATTR_TYPE, &value, sizeof value, &s));
  NOT(mcapi_msg_send_i(1, 1, buffer, 1, 0, &r, &s));
  NOT(mcapi_msg_send(1, 1, buffer, 1, 0, &s));
  NOT(mcapi_msg_recv_i(1, buffer, 1, &r, &s));
  NOT(mcapi_msg_recv(1, buffer, 1, &size, &s));
  NOT(mcapi_msg_available(1, &s));
  void *packet;
  uint32_t handle;
  NOT(mcapi_pktchan_connect_i(1, 2, &r, &s));
  NOT(mcapi_pktchan_recv_open_i(&handle, 1, &r, &s));
  NOT(mcapi_pktchan_send_open_i(&handle, 1, &r, &s));
  NOT(mcapi_pktchan_send_i(1, buffer, 1, &r, &s));
  NOT(mcapi_pktchan_send(1, buffer, 1, &s));
  NOT(mcapi_pktchan_recv_i(1, &packet, &r, &s));
  NOT(mcapi_pktchan_recv(1, &packet, &size, &s));
  NOT(mcapi_pktchan_available(1, &s));
  NOT(mcapi_pktchan_release(buffer, &s));
  NOT(mcapi_pktchan_release_test(buffer, &s));
  NOT(mcapi_pktchan_recv_close_i(1, &r, &s));
  NOT(mcapi_pktchan_send_close_i(1, &r, &s));
  NOT(mcapi_sclchan_connect_i(1, 2, &r, &s));
  NOT(mcapi_sclchan_recv_open_i(&handle, 1, &r, &s));
  NOT(mcapi_sclchan_send_open_i(&handle, 1, &r, &s));
  NOT(mcapi_sclchan_send_uint64(1, 1, &s));
  NOT(mcapi_sclchan_send_uint32(1, 1, &s));
  NOT(mcapi_sclchan_send_uint16(1, 1, &s));
  NOT(mcapi_sclchan_send_uint8(1, 1, &s));
  NOT(mcapi_sclchan_recv_uint64(1, &s));
  NOT(mcapi_sclchan_recv_uint32(1, &s));
  NOT(mcapi_sclchan_recv_uint16(1, &s));
  NOT(mcapi_sclchan_recv_uint8(1, &s));
  NOT(mcapi_sclchan_available(1, &s));
  NOT(mcapi_sclchan_recv_close_i(1, &r, &s));
  NOT(mcapi_sclchan_send_close_i(1, &r, &s));
  NOT(mcapi_test(&r, &size, &s));
  NOT(mcapi_wait(&r, &size, 0, &s));
  NOT(mcapi_wait_any(1, (mcapi_request_t *[]){&r}, &size, 0, &s));
  NOT(mcapi_cancel(&r, &s));
}

void test_mcapi_nodes(void) {
  mcapi_info_t info;
  nothing_works();
  mcapi_initialize(MCAPI_DOMAIN_INVALID, 1, NULL, NULL, &info, &s);
  SAYS(s, MCAPI_ERR_DOMAIN_INVALID);
  mcapi_initialize(test_domain(), MCAPI_NODE_INVALID, NULL, NULL, &info, &s);
  SAYS(s, MCAPI_ERR_NODE_INVALID);
  mcapi_initialize(test_domain(), 1, NULL, NULL, NULL, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  for (int round = 0; round < 3; round++) {
    node_is(5);
    mcapi_initialize(test_domain(), 5, NULL, NULL, &info, &s);
    SAYS(s, MCAPI_ERR_NODE_INITIALIZED);
    mcapi_initialize(test_domain(), 6, NULL, NULL, &info, &s); /* this thread is node 5 already */
    SAYS(s, MCAPI_ERR_NODE_INITIALIZED);
    CHECK_EQ(mcapi_domain_id_get(&s), test_domain());
    CHECK_EQ(mcapi_node_id_get(&s), 5);
    mcapi_node_attr_type_t type = 99;
    mcapi_node_get_attribute(test_domain(), 5, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(type, MCAPI_NODE_ATTR_TYPE_REGULAR);
    mcapi_node_get_attribute(test_domain(), 6, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &s);
    SAYS(s, MCAPI_ERR_NODE_INVALID);
    mcapi_node_get_attribute(test_domain(), 5, 77, &type, sizeof type, &s);
    SAYS(s, MCAPI_ERR_ATTR_NUM);
    mcapi_node_get_attribute(test_domain(), 5, MCAPI_NODE_ATTR_TYPE, &type, 1, &s);
    SAYS(s, MCAPI_ERR_ATTR_SIZE);
    node_ends();
    nothing_works();
  }
  char text[MCAPI_MAX_STATUS_SIZE];
  for (mcapi_status_t i = MCAPI_SUCCESS; i < MCAPI_STATUSCODE_END; i++)
    CHECK(mcapi_display_status(i, text, sizeof text) == text && strncmp(text, "MCAPI_", 6) == 0);
  CHECK(!mcapi_display_status(0, text, sizeof text));
  CHECK(!mcapi_display_status(MCAPI_STATUSCODE_END, text, sizeof text));
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static mcapi_uint_t attribute(mcapi_endpoint_t e, mcapi_uint_t number) {
  mcapi_uint_t value = 0;
  mcapi_endpoint_get_attribute(e, number, &value, sizeof value, &s);
  SAYS(s, MCAPI_SUCCESS);
  return value;
}
static mcapi_status_t set(mcapi_endpoint_t e, mcapi_uint_t number, mcapi_uint_t value) {
  mcapi_endpoint_set_attribute(e, number, &value, sizeof value, &s);
  return s;
}

void test_mcapi_endpoints(void) {
  mcapi_uint_t value = 0;
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(0), b = endpoint_at(MCAPI_PORT_ANY),
                   c = endpoint_at(MCAPI_PORT_ANY);
  CHECK(a != b && b != c && a != c && a && b && c);
  mcapi_endpoint_create(0, &s);
  SAYS(s, MCAPI_ERR_ENDP_EXISTS);
  mcapi_endpoint_create(0x80000000u, &s);
  SAYS(s, MCAPI_ERR_PORT_INVALID);
  CHECK_EQ(endpoint_of(1, 0), a);
  CHECK_EQ(attribute(a, MCAPI_ENDP_ATTR_GET_COUNT), 1);
  mcapi_endp_attr_get_source_t source;
  mcapi_endpoint_get_attribute(a, MCAPI_ENDP_ATTR_GET_SOURCE, &source, sizeof source, &s);
  CHECK(source.domain_id == test_domain() && source.node_id == 1);
  mcapi_endpoint_release(a, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_endpoint_release(a, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  double start = seconds();
  mcapi_endpoint_get(test_domain(), 1, 9, 50, &s);
  SAYS(s, MCAPI_TIMEOUT);
  CHECK(seconds() - start > 0.045);
  mcapi_endpoint_get(test_domain(), 1, 9, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS(s, MCAPI_TIMEOUT);
  mcapi_endpoint_get(test_domain() + 1, 1, 0, 0, &s);
  SAYS(s, MCAPI_ERR_DOMAIN_INVALID);
  mcapi_endpoint_get(test_domain(), MCAPI_NODE_INVALID, 0, 0, &s);
  SAYS(s, MCAPI_ERR_NODE_INVALID);
  mcapi_endpoint_get(test_domain(), 1, MCAPI_PORT_ANY, 0, &s);
  SAYS(s, MCAPI_ERR_PORT_INVALID);

  CHECK_EQ(attribute(a, MCAPI_ENDP_ATTR_TYPE), MCAPI_ENDP_ATTR_TYPE_MESSAGE);
  CHECK_EQ(attribute(a, MCAPI_ENDP_ATTR_TIMEOUT), MCAPI_TIMEOUT_INFINITE);
  CHECK_EQ(attribute(a, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS), 64);
  SAYS(set(a, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, 7), MCAPI_SUCCESS);
  CHECK_EQ(attribute(a, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS), 7);
  SAYS(set(a, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, 0), MCAPI_ERR_ATTR_VALUE);
  SAYS(set(a, MCAPI_ENDP_ATTR_TYPE, 1), MCAPI_ERR_ATTR_READONLY);
  SAYS(set(a, MCAPI_ENDP_ATTR_END, 1), MCAPI_ERR_ATTR_NUM);
  SAYS(set(12345, MCAPI_ENDP_ATTR_TIMEOUT, 1), MCAPI_ERR_ENDP_INVALID);
  mcapi_endpoint_get_attribute(a, MCAPI_ENDP_ATTR_TYPE, &value, 1, &s);
  SAYS(s, MCAPI_ERR_ATTR_SIZE);
  mcapi_endpoint_get_attribute(a, MCAPI_ENDP_ATTR_TYPE, NULL, sizeof value, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);

  mcapi_endpoint_delete(a, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_endpoint_delete(a, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_msg_send(b, a, "x", 1, 0, &s); /* it was an endpoint: messages to it are dropped */
  SAYS(s, MCAPI_SUCCESS);
  CHECK(endpoint_at(0) != a); /* handles are not reused */
  uint32_t more = 0;
  for (;; more++) {
    mcapi_endpoint_create(MCAPI_PORT_ANY, &s);
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS(s, MCAPI_ERR_ENDP_LIMIT);
  CHECK(more > 500);
  node_ends();
  node_is(1);
  endpoint_at(0);
  node_ends();
}

/* ---- messages -------------------------------------------------------------------------------- */

void test_mcapi_messages(void) {
  static char in[MCAPI_MAX_MESSAGE_SIZE];
  size_t size = 0;
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2);
  static const size_t sizes[] = {0, 1, 63, 64, 65, 4000, 4096, 5000, MCAPI_MAX_MESSAGE_SIZE};
  for (size_t i = 0; i < COUNT(sizes); i++) {
    memset(buffer, (int)(1 + i), sizes[i]);
    mcapi_msg_send(a, b, buffer, sizes[i], 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (i + 2 == COUNT(sizes)) CHECK_EQ(mcapi_msg_available(b, &s), i + 1);
  }
  CHECK_EQ(mcapi_msg_available(b, &s), COUNT(sizes));
  for (size_t i = 0; i < COUNT(sizes); i++) {
    memset(buffer, (int)(1 + i), sizes[i]);
    mcapi_msg_recv(b, in, sizeof in, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(size, sizes[i]);
    CHECK(memcmp(in, buffer, size) == 0);
  }
  /* Priority 0 is received first; messages of equal priority in order. */
  static const char order[] = "bdfaceg";
  for (const char *at = "abcdefg"; *at; at++) {
    mcapi_msg_send(a, b, at, 1, (*at - 'a') % 2 ? 2 : 6, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  for (size_t i = 0; i < 7; i++) {
    mcapi_msg_recv(b, in, 1, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(in[0], order[i]);
  }
  mcapi_msg_send(a, b, "123456", 6, 0, &s);
  mcapi_msg_recv(b, in, 4, &size, &s);
  SAYS(s, MCAPI_ERR_MSG_TRUNCATED);
  CHECK(size == 4 && memcmp(in, "1234", 4) == 0);

  mcapi_msg_send(a, b, buffer, sizeof buffer, 0, &s);
  SAYS(s, MCAPI_ERR_MSG_SIZE);
  CHECK(s == MCAPI_ERR_MSG_LIMIT); /* name of the status in MCAPI 2.000 */
  mcapi_msg_send(a, b, NULL, 1, 0, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  mcapi_msg_send(a, b, buffer, 1, 8, &s);
  SAYS(s, MCAPI_ERR_PRIORITY);
  mcapi_msg_send(0, b, buffer, 1, 0, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_msg_send(a, ~0u, buffer, 1, 0, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_msg_recv(b, NULL, 1, &size, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  mcapi_msg_recv(b, in, 1, NULL, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  mcapi_msg_recv(77, in, 1, &size, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);

  /* A full and an empty queue. */
  set(a, MCAPI_ENDP_ATTR_TIMEOUT, 30);
  set(b, MCAPI_ENDP_ATTR_TIMEOUT, 30);
  for (int i = 0; i < test_slots(); i++) {
    mcapi_msg_send(a, b, &i, sizeof i, 3, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  CHECK_EQ(attribute(b, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS), 0);
  mcapi_msg_send(a, b, "", 1, 3, &s);
  SAYS(s, MCAPI_TIMEOUT);
  SAYS(set(a, MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT), MCAPI_SUCCESS);
  mcapi_msg_send(a, b, "", 1, 3, &s);
  SAYS(s, MCAPI_ERR_MEM_LIMIT);
  for (int i = 0, got; i < test_slots(); i++) {
    mcapi_msg_recv(b, &got, sizeof got, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(got, i);
  }
  mcapi_msg_recv(b, in, 1, &size, &s);
  SAYS(s, MCAPI_TIMEOUT);
  node_ends();
}

/* ---- requests -------------------------------------------------------------------------------- */

void test_mcapi_requests(void) {
  mcapi_request_t r[3], never = 0;
  char in[3][8];
  size_t size;
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2), later = 0;
  for (int i = 0; i < 3; i++) {
    mcapi_msg_recv_i(b, in[i], 8, &r[i], &s);
    SAYS(s, MCAPI_PENDING);
  }
  CHECK(!mcapi_test(&r[0], &size, &s));
  SAYS(s, MCAPI_PENDING);
  CHECK(!mcapi_wait(&r[0], &size, 20, &s));
  SAYS(s, MCAPI_TIMEOUT);
  mcapi_cancel(&r[1], &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_cancel(&r[1], &s);
  SAYS(s, MCAPI_ERR_REQUEST_INVALID);
  CHECK(!mcapi_wait(&r[1], &size, MCAPI_TIMEOUT_INFINITE, &s));
  SAYS(s, MCAPI_ERR_REQUEST_INVALID);
  mcapi_msg_send(a, b, "first", 6, 0, &s);
  mcapi_msg_send(a, b, "second", 7, 0, &s);
  /* The first request gets the first message, whichever request is waited for first. */
  CHECK(mcapi_wait(&r[2], &size, MCAPI_TIMEOUT_INFINITE, &s));
  SAYS(s, MCAPI_SUCCESS);
  CHECK(size == 7 && strcmp(in[2], "second") == 0);
  CHECK(mcapi_test(&r[0], &size, &s));
  CHECK(size == 6 && strcmp(in[0], "first") == 0);
  CHECK(!mcapi_test(&r[0], &size, &s));
  SAYS(s, MCAPI_ERR_REQUEST_INVALID);
  CHECK(!mcapi_test(NULL, &size, &s));
  SAYS(s, MCAPI_ERR_REQUEST_INVALID);

  mcapi_endpoint_get_i(test_domain(), 1, 3, &later, &r[0], &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_msg_recv_i(b, in[0], 8, &r[1], &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_request_t *both[] = {&r[0], &r[1]};
  mcapi_wait_any(2, both, &size, 20, &s);
  SAYS(s, MCAPI_TIMEOUT);
  mcapi_msg_send(a, b, "third", 6, 0, &s);
  CHECK_EQ(mcapi_wait_any(2, both, &size, MCAPI_TIMEOUT_INFINITE, &s), 1);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(size, 6);
  mcapi_endpoint_t c = endpoint_at(3);
  both[1] = &r[0];
  CHECK_EQ(mcapi_wait_any(1, both, &size, MCAPI_TIMEOUT_INFINITE, &s), 0);
  CHECK_EQ(later, c);
  both[0] = &never;
  mcapi_wait_any(1, both, &size, 0, &s);
  SAYS(s, MCAPI_ERR_REQUEST_INVALID);

  /* Sends that wait for room keep their order; deleting the endpoint completes them. */
  const int slots = test_slots();
  for (int i = 0; i < slots; i++) mcapi_msg_send(a, b, &i, sizeof i, 0, &s);
  for (int i = 0; i < 3; i++) {
    int *out = (int *)(void *)in[i];
    *out = slots + i;
    mcapi_msg_send_i(a, b, out, sizeof *out, 0, &r[i], &s);
    SAYS(s, MCAPI_PENDING);
  }
  for (int i = 0, got = -1; i < slots + 3; i++) {
    mcapi_msg_recv(b, &got, sizeof got, &size, &s);
    CHECK_EQ(got, i);
    if (i == 0) CHECK(!mcapi_test(&r[2], &size, &s)); /* but the first of the three proceeds */
    if (i == slots - 1) CHECK(mcapi_wait(&r[2], &size, MCAPI_TIMEOUT_INFINITE, &s));
  }
  CHECK(mcapi_test(&r[0], &size, &s) && mcapi_test(&r[1], &size, &s));
  mcapi_msg_recv_i(b, in[0], 8, &r[0], &s);
  mcapi_endpoint_delete(b, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(!mcapi_wait(&r[0], &size, MCAPI_TIMEOUT_INFINITE, &s));
  SAYS(s, MCAPI_ERR_ENDP_DELETED);
  uint32_t count = 0;
  for (mcapi_request_t many;; count++) {
    mcapi_msg_recv_i(a, in[0], 8, &many, &s);
    if (s != MCAPI_PENDING) break;
  }
  SAYS(s, MCAPI_ERR_REQUEST_LIMIT);
  CHECK(count >= 1000);
  node_ends();
}

/* ---- nodes that are threads ------------------------------------------------------------------ */

enum { THREADS = 4, EACH = SCALED(2000) };

/* Each has an endpoint at any port, sends its handle to node 0, and replies to what arrives
 * there. */
static void *answer(void *argument) {
  mcapi_node_t me = (mcapi_node_t)(uintptr_t)argument;
  mcapi_status_t status;
  node_is(me);
  CHECK_EQ(mcapi_node_id_get(&status), me);
  mcapi_endpoint_t mine = endpoint_at(MCAPI_PORT_ANY), first = endpoint_of(0, 1);
  mcapi_msg_send(mine, first, &mine, sizeof mine, 0, &status);
  SAYS(status, MCAPI_SUCCESS);
  for (uint32_t i = 0; i < EACH; i++) {
    uint32_t got = 0;
    size_t size;
    mcapi_msg_recv(mine, &got, sizeof got, &size, &status);
    SAYS(status, MCAPI_SUCCESS);
    CHECK(size == sizeof got && got == i);
    got += me << 24;
    mcapi_msg_send(mine, first, &got, sizeof got, 0, &status);
    SAYS(status, MCAPI_SUCCESS);
  }
  mcapi_endpoint_delete(first, &status);
  SAYS(status, MCAPI_ERR_ENDP_NOTOWNER);
  node_ends();
  return NULL;
}

void test_mcapi_threads(void) {
  pthread_t t[THREADS + 1];
  mcapi_endpoint_t other[THREADS + 1];
  size_t size;
  node_is(0);
  for (uintptr_t i = 1; i <= THREADS; i++)
    CHECK_EQ(pthread_create(&t[i], NULL, answer, (void *)i), 0);
  /* they wait for an endpoint that does not exist yet */
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  mcapi_endpoint_t first = endpoint_at(1);
  for (int i = 1; i <= THREADS; i++) {
    mcapi_msg_recv(first, &other[i], sizeof *other, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  uint32_t next[THREADS + 1] = {0};
  for (uint32_t i = 0; i < EACH; i++) {
    for (int k = 1; k <= THREADS; k++) {
      mcapi_msg_send(first, other[k], &i, sizeof i, 0, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    for (int k = 1; k <= THREADS; k++) {
      uint32_t got;
      mcapi_msg_recv(first, &got, sizeof got, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK(got >> 24 >= 1 && got >> 24 <= THREADS);
      CHECK_EQ(got & 0xffffff, next[got >> 24]++);
    }
  }
  for (int i = 1; i <= THREADS; i++) pthread_join(t[i], NULL);
  node_ends();
}

/* ---- a wait behind a request that no thread waits for ---------------------------------------- */

static uint32_t filled; /* messages for the reader */

static void *read_late(void *argument) {
  mcapi_status_t status;
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1);
  uint32_t n;
  while (!(n = __atomic_load_n(&filled, __ATOMIC_ACQUIRE)))
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* the other thread sleeps by now */
  for (uint32_t i = 0; i < n; i++) {
    uint32_t got;
    size_t size;
    mcapi_msg_recv(mine, &got, sizeof got, &size, &status);
    SAYS(status, MCAPI_SUCCESS);
    CHECK_EQ(got, i);
  }
  node_ends();
  return argument;
}

void test_mcapi_line_of_sends(void) {
  pthread_t reader;
  mcapi_request_t last;
  size_t size;
  uint32_t n = 0, got;
  node_is(0);
  mcapi_endpoint_t mine = endpoint_at(1), other = endpoint_at(2);
  CHECK_EQ(pthread_create(&reader, NULL, read_late, NULL), 0);
  mcapi_endpoint_t full = endpoint_of(1, 1);
  for (;;) {
    mcapi_msg_send_i(mine, full, &n, sizeof n, 0, &last, &s);
    if (s == MCAPI_PENDING) break;
    SAYS(s, MCAPI_SUCCESS);
    CHECK(mcapi_wait(&last, &size, MCAPI_TIMEOUT_INFINITE, &s));
    n++;
  }
  uint32_t number = n; /* unchanged until it is sent */
  __atomic_store_n(&filled, number + 1, __ATOMIC_RELEASE);
  /* The other endpoint has room, but the one for the earlier request has not. */
  mcapi_msg_send(mine, other, &number, sizeof number, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(mcapi_wait(&last, &size, MCAPI_TIMEOUT_INFINITE, &s));
  mcapi_msg_recv(other, &got, sizeof got, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(got, number);
  CHECK_EQ(pthread_join(reader, NULL), 0);
  node_ends();
}
