/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Conformance of an implementation of MCAPI: runs every case in a process of its own, prints a line
 * per check (TAP), the choices of the implementation where the standard is silent, and which
 * functions were called and statuses seen.
 *
 *   conformance [threads|processes|fibers|elsewhere] [DOMAIN]
 *       kind of a case's second node (default: threads and processes, in turn); elsewhere: each
 *       node of a case runs once outside this program */
#include "conformance.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- contents of the standard ---------------------------------------------------------------- */

static const char *const functions[] = {"initialize",
                                        "finalize",
                                        "domain_id_get",
                                        "node_id_get",
                                        "node_init_attributes",
                                        "node_get_attribute",
                                        "node_set_attribute",
                                        "endpoint_create",
                                        "endpoint_get_i",
                                        "endpoint_get",
                                        "endpoint_release",
                                        "endpoint_delete",
                                        "endpoint_get_attribute",
                                        "endpoint_set_attribute",
                                        "msg_send_i",
                                        "msg_send",
                                        "msg_recv_i",
                                        "msg_recv",
                                        "msg_available",
                                        "pktchan_connect_i",
                                        "pktchan_recv_open_i",
                                        "pktchan_send_open_i",
                                        "pktchan_send_i",
                                        "pktchan_send",
                                        "pktchan_recv_i",
                                        "pktchan_recv",
                                        "pktchan_available",
                                        "pktchan_release",
#ifndef CONFORM_NO_RELEASE_TEST
                                        "pktchan_release_test",
#endif
                                        "pktchan_recv_close_i",
                                        "pktchan_send_close_i",
                                        "sclchan_connect_i",
                                        "sclchan_recv_open_i",
                                        "sclchan_send_open_i",
                                        "sclchan_send_uint64",
                                        "sclchan_send_uint32",
                                        "sclchan_send_uint16",
                                        "sclchan_send_uint8",
                                        "sclchan_recv_uint64",
                                        "sclchan_recv_uint32",
                                        "sclchan_recv_uint16",
                                        "sclchan_recv_uint8",
                                        "sclchan_available",
                                        "sclchan_recv_close_i",
                                        "sclchan_send_close_i",
#ifndef CONFORM_NO_DISPLAY_STATUS
                                        "display_status",
#endif
#ifndef CONFORM_NO_DEBUG_LEVEL
                                        "set_debug_level",
#endif
                                        "test",
                                        "wait",
                                        "wait_any",
                                        "cancel"};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

#define NAME(status)                                                                               \
  { status, #status }
static const struct {
  mcapi_status_t status;
  const char *name;
} statuses[] = {NAME(MCAPI_SUCCESS),
                NAME(MCAPI_PENDING),
                NAME(MCAPI_TIMEOUT),
                NAME(MCAPI_ERR_PARAMETER),
                NAME(MCAPI_ERR_DOMAIN_INVALID),
                NAME(MCAPI_ERR_NODE_INVALID),
                NAME(MCAPI_ERR_NODE_INITFAILED),
                NAME(MCAPI_ERR_NODE_INITIALIZED),
                NAME(MCAPI_ERR_NODE_NOTINIT),
                NAME(MCAPI_ERR_NODE_FINALFAILED),
                NAME(MCAPI_ERR_PORT_INVALID),
                NAME(MCAPI_ERR_ENDP_INVALID),
                NAME(MCAPI_ERR_ENDP_EXISTS),
                NAME(MCAPI_ERR_ENDP_GET_LIMIT),
                NAME(MCAPI_ERR_ENDP_DELETED),
                NAME(MCAPI_ERR_ENDP_NOTOWNER),
                NAME(MCAPI_ERR_ENDP_REMOTE),
                NAME(MCAPI_ERR_ENDP_NOPORTS),
                NAME(MCAPI_ERR_ENDP_LIMIT),
                NAME(MCAPI_ERR_ATTR_INCOMPATIBLE),
                NAME(MCAPI_ERR_ATTR_SIZE),
                NAME(MCAPI_ERR_ATTR_NUM),
                NAME(MCAPI_ERR_ATTR_VALUE),
                NAME(MCAPI_ERR_ATTR_NOTSUPPORTED),
                NAME(MCAPI_ERR_ATTR_READONLY),
                NAME(TOO_LARGE_MESSAGE),
                NAME(MCAPI_ERR_MSG_TRUNCATED),
                NAME(MCAPI_ERR_CHAN_OPEN),
                NAME(MCAPI_ERR_CHAN_TYPE),
                NAME(MCAPI_ERR_CHAN_DIRECTION),
                NAME(MCAPI_ERR_CHAN_CONNECTED),
                NAME(MCAPI_ERR_CHAN_OPENPENDING),
/* A program for 2.000 may be compiled with a header for both. */
#if !defined(CONFORM_2000) || defined(MCAPI_MAX_STATUS_MSG_LEN)
                NAME(MCAPI_ERR_CHAN_CLOSEPENDING),
#endif
                NAME(MCAPI_ERR_CHAN_NOTOPEN),
                NAME(MCAPI_ERR_CHAN_INVALID),
                NAME(TOO_LARGE_PACKET),
                NAME(MCAPI_ERR_SCL_SIZE),
                NAME(MCAPI_ERR_TRANSMISSION),
                NAME(MCAPI_ERR_PRIORITY),
                NAME(MCAPI_ERR_BUF_INVALID),
                NAME(MCAPI_ERR_MEM_LIMIT),
                NAME(MCAPI_ERR_REQUEST_INVALID),
                NAME(MCAPI_ERR_REQUEST_LIMIT),
                NAME(MCAPI_ERR_REQUEST_CANCELLED),
                NAME(MCAPI_ERR_WAIT_PENDING),
                NAME(MCAPI_ERR_GENERAL)};
enum { STATUSES = sizeof statuses / sizeof *statuses };

static int number_of(mcapi_status_t status) {
  for (int i = 0; i < STATUSES; i++)
    if (statuses[i].status == status) return i;
  return -1;
}
static const char *name_of(mcapi_status_t status) {
  int i = number_of(status);
  return i < 0 ? "no status of the standard" : statuses[i].name;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Shared by all processes of a run. */
static struct {
  atomic_flag saying;
  int checks, failed;
  atomic_uint seen[STATUSES], calls[FUNCTIONS];
  atomic_int come; /* arrivals at the barrier */
  atomic_int given_up;
} * run;

static const char *case_name = "all", *way = "";

static void say(const char *format, ...) {
  char line[512];
  va_list values;
  va_start(values, format);
  int n = vsnprintf(line, sizeof line - 1, format, values);
  va_end(values);
  if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
  line[n++] = '\n';
  ssize_t written = write(STDOUT_FILENO, line, (size_t)n);
  (void)written;
}

static void check(int so, const char *what, const char *why, const char *instead, int line) {
  while (atomic_flag_test_and_set(&run->saying)) nap(1);
  int number = ++run->checks;
  run->failed += !so;
  if (so)
    say("ok %d - %s%s: %s", number, case_name, way, what);
  else
    say("not ok %d - %s%s: %s # %s%s (line %d)", number, case_name, way, what, why, instead, line);
  atomic_flag_clear(&run->saying);
}

static void see(void) {
  int i = number_of(s);
  if (i >= 0) atomic_fetch_add(&run->seen[i], 1);
}

void called(const char *name) {
  for (int i = 0; i < FUNCTIONS; i++)
    if (strcmp(functions[i], name) == 0) {
      atomic_fetch_add(&run->calls[i], 1);
      return;
    }
  check(0, name, "", "is no function of the standard's", 0);
}

void is_so(int so, const char *what, int line) { check(so, what, "", "not so", line); }
void says(const char *what, mcapi_status_t expected, int line) {
  see();
  char text[256];
  snprintf(text, sizeof text, "%s: %s", what, name_of(expected));
  check(s == expected, text, "it is ", name_of(s), line);
}
void says_either(const char *what, mcapi_status_t one, mcapi_status_t other, int line) {
  see();
  char text[256];
  snprintf(text, sizeof text, "%s: %s or %s", what, name_of(one), name_of(other));
  check(s == one || s == other, text, "it is ", name_of(s), line);
}
void fails(const char *what, int line) {
  see();
  char text[256];
  snprintf(text, sizeof text, "%s fails", what);
  check(s != MCAPI_SUCCESS && s != MCAPI_PENDING && number_of(s) >= 0, text, "it is ", name_of(s),
        line);
}
void choice(const char *question, mcapi_status_t chosen) {
  int i = number_of(chosen);
  if (i >= 0) atomic_fetch_add(&run->seen[i], 1);
  say("# implementation's choice: %s: %s", question, name_of(chosen));
}
void choice_number(const char *question, unsigned long chosen) {
  say("# implementation's choice: %s: %lu", question, chosen);
}

/* ---- the nodes of a case --------------------------------------------------------------------- */

enum way { THREADS, PROCESSES, FIBERS, ELSEWHERE_ONE, ELSEWHERE };
static const char *const ways[] = {"threads", "processes", "fibers", "the first is elsewhere",
                                   "elsewhere"};
static pid_t other_process;
static int with_other;

void give_up(void) {
  atomic_store(&run->given_up, 1);
  _exit(1);
}

void nap(int ms) {
#ifdef CONFORM_FIBERS
  if (conform_nap(ms)) return;
#endif
  struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

void meet(void) {
  if (!with_other) return;
  int turn = atomic_fetch_add(&run->come, 1) / 2 + 1;
  while (atomic_load(&run->come) < 2 * turn) {
    if (atomic_load(&run->given_up)) _exit(1);
    nap(1);
  }
}

static enum way with;

void kill_other(void) {
#ifdef CONFORM_ELSEWHERE
  if (with == ELSEWHERE) {
    conform_kill_elsewhere();
    return;
  }
#endif
  kill(other_process, SIGKILL);
  waitpid(other_process, NULL, 0);
  other_process = 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static void *thread_two(void *what) {
  ((const conform_case *)what)->two();
  return NULL;
}

#ifdef CONFORM_ELSEWHERE
static void *thread_elsewhere(void *what) {
  if (!conform_elsewhere(((const conform_case *)what)->name, 0)) give_up();
  return NULL;
}

static void elsewhere(const conform_case *c) {
  pthread_t thread;
  void *(*second)(void *) = with == ELSEWHERE ? thread_elsewhere : thread_two;
  if (c->two && pthread_create(&thread, NULL, second, (void *)(uintptr_t)c)) _exit(2);
  if (with == ELSEWHERE)
    c->one();
  else if (!conform_elsewhere(c->name, 1))
    give_up();
  if (c->two) pthread_join(thread, NULL);
  _exit(0);
}
#endif

static void in_process(const conform_case *c) {
  pthread_t thread;
  with_other = c->two != NULL;
#ifdef CONFORM_FIBERS
  if (with == FIBERS) {
    conform_fibers(c->one, c->two);
    _exit(0);
  }
#endif
#ifdef CONFORM_ELSEWHERE
  if (with == ELSEWHERE || with == ELSEWHERE_ONE) elsewhere(c);
#endif
  if (c->two && with == PROCESSES) {
    other_process = fork();
    if (other_process < 0) _exit(2);
    if (other_process == 0) {
      alarm(CONFORM_SECONDS);
      c->two();
      _exit(0);
    }
  } else if (c->two) {
    if (pthread_create(&thread, NULL, thread_two, (void *)(uintptr_t)c)) _exit(2);
  }
  c->one();
  int how = 0;
  if (c->two && with == THREADS) pthread_join(thread, NULL);
  if (other_process > 0) waitpid(other_process, &how, 0);
  _exit(how == 0 ? 0 : 1);
}

static void run_case(const conform_case *c, enum way how_with) {
  char text[40] = "";
  case_name = c->name;
  with = how_with;
  if (c->two || with >= FIBERS) snprintf(text, sizeof text, " (%s)", ways[with]);
  way = text;
  atomic_store(&run->come, 0);
  atomic_store(&run->given_up, 0);
  pid_t child = fork();
  if (child < 0) {
    perror("fork");
    exit(2);
  }
  if (child == 0) {
    setpgid(0, 0);
    alarm(CONFORM_SECONDS);
    in_process(c);
  }
  setpgid(child, child);
  int how = 0;
  waitpid(child, &how, 0);
  kill(-child, SIGKILL); /* the other node, if this one has been given up */
  atomic_flag_clear(&run->saying);
  char why[64] = "it gave up";
  if (WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM)
    snprintf(why, sizeof why, "it was stuck for %d seconds", CONFORM_SECONDS);
  else if (WIFSIGNALED(how))
    snprintf(why, sizeof why, "it was ended by signal %d", WTERMSIG(how));
  check(how == 0, "goes through", why, "", 0);
  way = "";
}

static void summary(void) {
  case_name = "all";
  way = "";
  for (int i = 0; i < FUNCTIONS; i++) {
    char text[64];
    snprintf(text, sizeof text, "mcapi_%s has been called", functions[i]);
    check(run->calls[i] > 0, text, "no case came so far", "", 0);
  }
  int seen = 0;
  for (int i = 0; i < STATUSES; i++) {
    seen += run->seen[i] > 0;
    if (!run->seen[i]) say("# implementation's choice: never seen: %s", statuses[i].name);
  }
  say("# statuses seen: %d of %d", seen, (int)STATUSES);
  say("1..%d", run->checks);
  say("# %d checks, %d failed", run->checks, run->failed);
}

int main(int argc, char **argv) {
  int only = -1, at = 1;
  domain = CONFORM_DOMAIN;
  for (int i = THREADS; i <= ELSEWHERE && argc > 1; i++)
    if (i != ELSEWHERE_ONE && strcmp(argv[1], ways[i]) == 0) only = i, at = 2;
#ifndef CONFORM_FIBERS
  if (only == FIBERS) {
    fputs("this implementation has no fibers, or has not been built with them\n", stderr);
    return 2;
  }
#endif
#ifndef CONFORM_ELSEWHERE
  if (only == ELSEWHERE) {
    fputs("nodes of this implementation are nowhere else, or it has not been built for that\n",
          stderr);
    return 2;
  }
#endif
  char *rest = "";
  if (argc > at) domain = (mcapi_domain_t)strtoul(argv[at++], &rest, 10);
  if (*rest || argc > at) {
    fprintf(stderr, "usage: %s [threads|processes|fibers|elsewhere] [DOMAIN]\n", argv[0]);
    return 2;
  }
  FILE *file = tmpfile();
  if (file && ftruncate(fileno(file), sizeof *run) == 0)
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  if (!run || run == MAP_FAILED) {
    perror("memory that processes share");
    return 2;
  }
  atomic_flag_clear(&run->saying);
  for (size_t i = 0; conform_cases[i]; i++)
    for (const conform_case *c = conform_cases[i]; c->name; c++) {
      if (only == ELSEWHERE) {
        if (!c->processes) run_case(c, ELSEWHERE_ONE);
        if (c->two) run_case(c, ELSEWHERE);
        continue;
      }
      if (only == FIBERS) {
        if (!c->processes) run_case(c, FIBERS);
        continue;
      }
      if (!c->two) run_case(c, THREADS);
      if (c->two && only != PROCESSES && !c->processes) run_case(c, THREADS);
      if (c->two && only != THREADS) run_case(c, PROCESSES);
    }
  summary();
  return run->failed ? 1 : 0;
}
