/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cores and threads on Linux: the affinity and CPU quota of the process, and pinned threads. */
#include "../platform.h"
#include "syscall.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads the start of a file; empty on failure. Does not allocate, since signal handlers call it. */
static void read_start(const char *path, char *text, size_t size) {
  int fd = lvd_sys_open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  for (ssize_t n; fd >= 0 && length < size - 1; length += (size_t)n)
    if ((n = lvd_sys_read(fd, text + length, size - 1 - length)) <= 0) break;
  if (fd >= 0) lvd_sys_close(fd);
  text[length] = 0;
}

/* ---- cores ----------------------------------------------------------------------------------- */

/* Cores that the process could use when this was first called. Unpinned threads get them even if a
 * pinned thread starts them. */
static cpu_set_t usable;
static pthread_once_t noted = PTHREAD_ONCE_INIT;

static void note_usable(void) {
  if (lvd_sys_getaffinity(sizeof usable, &usable) != 0) CPU_ZERO(&usable);
}

uint32_t lvd_os_usable_cpus(int32_t *cpu, uint32_t max) {
  pthread_once(&noted, note_usable);
  /* The kernel's mask may be larger than cpu_set_t. */
  for (int bits = CPU_SETSIZE; bits <= 1 << 20; bits *= 2) {
    cpu_set_t *set = CPU_ALLOC(bits);
    size_t bytes = CPU_ALLOC_SIZE(bits);
    uint32_t n = 0;
    if (!set) break;
    if (lvd_sys_getaffinity(bytes, set) == 0) {
      for (int i = 0; i < bits; i++)
        if (CPU_ISSET_S((size_t)i, bytes, set)) {
          if (n < max) cpu[n] = i;
          n++;
        }
      CPU_FREE(set);
      return n;
    }
    CPU_FREE(set);
  }
  if (max) cpu[0] = -1;
  return 1;
}

uint32_t lvd_os_core_limit(void) {
  char list[256]; /* "0-7", or "0,2-7" */
  read_start("/sys/devices/system/cpu/possible", list, sizeof list);
  list[strcspn(list, "\n")] = 0;
  const char *last = list + strlen(list);
  while (last > list && last[-1] >= '0' && last[-1] <= '9') last--;
  if (*last) return (uint32_t)strtoul(last, NULL, 10) + 1;
  cpu_set_t set; /* the kernel returns the size of its mask in bytes */
  long bytes = LVD_SYS(SYS_sched_getaffinity, 0, sizeof set, &set);
  return bytes > 0 ? (uint32_t)bytes * 8 : 1;
}

/* Reads the first line, without the newline. */
static bool read_line(const char *path, char *line, size_t size) {
  read_start(path, line, size);
  line[strcspn(line, "\n")] = 0;
  return *line;
}

/* Too large for the stack, which may be a small one. */
typedef struct lvd_paths {
  char groups[32768], part[4096], folder[4160], file[4200];
} lvd_paths;

/* Whole cores that one control group allows; 0: no limit. */
static uint32_t group_quota(lvd_paths *p) {
  char line[128];
  long long quota, period;
  snprintf(p->file, sizeof p->file, "%s/cpu.max", p->folder); /* cgroup v2 */
  if (read_line(p->file, line, sizeof line)) {
    if (sscanf(line, "%lld %lld", &quota, &period) != 2) return 0; /* "max 100000" */
  } else {
    snprintf(p->file, sizeof p->file, "%s/cpu.cfs_quota_us", p->folder); /* cgroup v1 */
    if (!read_line(p->file, line, sizeof line) || sscanf(line, "%lld", &quota) != 1) return 0;
    snprintf(p->file, sizeof p->file, "%s/cpu.cfs_period_us", p->folder);
    if (!read_line(p->file, line, sizeof line) || sscanf(line, "%lld", &period) != 1) return 0;
  }
  if (quota <= 0 || period <= 0) return 0;
  /* Rounded down: with one worker more than the quota allows, a worker would be throttled in each
   * period, and all that wait for it with it. */
  return quota < period ? 1 : (uint32_t)(quota / period);
}

/* True: "cpu" is a controller of this cgroup v1 hierarchy ("cpu,cpuacct", but not "cpuset"). */
static bool has_cpu(const char *controllers) {
  for (const char *at = controllers; (at = strstr(at, "cpu")); at++)
    if ((at == controllers || at[-1] == ',') && (at[3] == ',' || at[3] == 0)) return true;
  return false;
}

static uint32_t least_quota(const char *root, lvd_paths *p) {
  static const char *const mounts[] = {"", "/unified", "/cpu", "/cpu,cpuacct"};
  uint32_t least = 0;
  read_start("/proc/self/cgroup", p->groups, sizeof p->groups);
  for (char *line = p->groups, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    if (*next) *next++ = 0;
    char *controllers = strchr(line, ':'),
         *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0;
    /* cgroup v2 names no controllers; of v1 only the cpu hierarchy matters. */
    if (controllers[1] && !has_cpu(controllers + 1)) continue;
    for (size_t m = 0; m < sizeof mounts / sizeof *mounts; m++) {
      /* The limits of all parent groups apply, too. */
      snprintf(p->part, sizeof p->part, "%s", group);
      for (;;) {
        snprintf(p->folder, sizeof p->folder, "%s%s%s", root, mounts[m],
                 strcmp(p->part, "/") ? p->part : "");
        uint32_t q = group_quota(p);
        if (q && (!least || q < least)) least = q;
        char *slash = strrchr(p->part, '/');
        if (!slash || p->part[0] == 0) break;
        *slash = 0;
      }
    }
  }
  return least;
}

uint32_t lvd_os_cpu_quota(const char *root) {
  lvd_paths *p = malloc(sizeof *p);
  uint32_t least = p ? least_quota(root ? root : "/sys/fs/cgroup", p) : 0;
  free(p);
  return least;
}

/* ---- threads --------------------------------------------------------------------------------- */

struct lvd_os_thread {
  pthread_t id;
  int32_t cpu;
  char name[16];
  void (*body)(void *);
  void *argument;
};

static lvd_a32 started; /* threads that have started and not ended */
static pthread_once_t counted = PTHREAD_ONCE_INIT;
static void reset_started(void) { lvd_store_relaxed_u32(&started, 0); }
/* The child of a fork has none of them. */
static void reset_at_fork(void) { pthread_atfork(NULL, NULL, reset_started); }

/* Since Linux 6.12 a thread can request its time slice: with a short one it gets no less CPU time,
 * but runs sooner when it wakes while other threads compute. If that is refused or unknown, nothing
 * changes. */
struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t slice_ns, deadline_ns, period_ns;
};
enum { SHORT_SLICE_NS = 100000 };

static void request_short_slice(void) {
  struct scheduling s = {.size = sizeof s};
  if (LVD_SYS(SYS_sched_getattr, 0, &s, sizeof s, 0) != 0 || s.policy != SCHED_OTHER) return;
  s.slice_ns = SHORT_SLICE_NS;
  LVD_SYS(SYS_sched_setattr, 0, &s, 0);
}

static void *thread_main(void *p) {
  lvd_os_thread *t = p;
  lvd_add_relaxed_u32(&started, 1);
  pthread_setname_np(pthread_self(), t->name);
  if (t->cpu >= 0) {
    cpu_set_t *set = CPU_ALLOC(t->cpu + 1);
    if (set) {
      size_t bytes = CPU_ALLOC_SIZE(t->cpu + 1);
      CPU_ZERO_S(bytes, set);
      CPU_SET_S((size_t)t->cpu, bytes, set);
      lvd_sys_setaffinity(bytes, set); /* if refused, it runs unpinned: slower, but correct */
      CPU_FREE(set);
    }
  }
  if (t->cpu < 0 && CPU_COUNT(&usable)) lvd_sys_setaffinity(sizeof usable, &usable);
  request_short_slice();
  t->body(t->argument);
  lvd_add_relaxed_u32(&started, UINT32_MAX);
  return NULL;
}

lvd_status lvd_os_thread_start(lvd_os_thread **out, int32_t cpu, const char *name,
                               void (*body)(void *), void *argument) {
  lvd_os_thread *t = calloc(1, sizeof *t);
  if (!t) return LVD_E_MEMORY;
  t->cpu = cpu;
  snprintf(t->name, sizeof t->name, "%s", name);
  t->body = body;
  t->argument = argument;
  pthread_once(&counted, reset_at_fork);
  if (pthread_create(&t->id, NULL, thread_main, t) != 0) {
    free(t);
    return LVD_E_SYSTEM;
  }
  *out = t;
  return LVD_OK;
}

void lvd_os_thread_join(lvd_os_thread *t) {
  pthread_join(t->id, NULL);
  free(t);
}

static int interrupt_signal(void) { return SIGRTMIN + 4; }
static void interrupted(int number) { (void)number; }
static pthread_once_t installed = PTHREAD_ONCE_INIT;
static void install(void) {
  struct sigaction action = {.sa_handler = interrupted}; /* without SA_RESTART */
  sigaction(interrupt_signal(), &action, NULL);
}

void lvd_os_thread_set_interruptible(void) {
  sigset_t set;
  pthread_once(&installed, install);
  sigemptyset(&set);
  sigaddset(&set, interrupt_signal());
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void lvd_os_thread_interrupt(lvd_os_thread *t) {
  /* the thread may not have reached lvd_os_thread_set_interruptible yet */
  pthread_once(&installed, install);
  pthread_kill(t->id, interrupt_signal());
}

bool lvd_os_thread_raise_priority(void) {
  struct sched_param p = {.sched_priority = 1}; /* the lowest of the class */
  if (lvd_sys_setscheduler(SCHED_FIFO, &p) == 0) return true;
  return lvd_sys_setpriority(PRIO_PROCESS, (id_t)lvd_sys_gettid(), -20) == 0;
}

/* SCHED_RR: with SCHED_FIFO, a thread that never sleeps would starve another of its priority on the
 * same core. */
bool lvd_os_thread_set_realtime(uint32_t priority) {
  struct sched_param p = {.sched_priority = (int)priority};
  return lvd_sys_setscheduler(SCHED_RR | SCHED_RESET_ON_FORK, &p) == 0;
}

typedef struct realtime_test {
  uint32_t priority;
  bool allowed;
} realtime_test;

static void try_realtime(void *argument) {
  realtime_test *test = argument;
  test->allowed = lvd_os_thread_set_realtime(test->priority);
}

/* Tested on a thread of its own, since a thread that has entered the class may be unable to restore
 * its former state. */
bool lvd_os_realtime_allowed(uint32_t priority) {
  lvd_os_thread *thread;
  realtime_test test = {.priority = priority};
  if (lvd_os_thread_start(&thread, -1, "levada/test", try_realtime, &test) != LVD_OK) return false;
  lvd_os_thread_join(thread);
  return test.allowed;
}

uint32_t lvd_os_thread_id(void) {
  static _Thread_local uint32_t id;
  if (!id) id = (uint32_t)lvd_sys_gettid();
  return id;
}

static bool read_name(uint32_t id, char *name, size_t size) {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%u/comm", id);
  return read_line(path, name, size);
}

/* A thread without a name of its own has the program's name. */
void lvd_os_thread_name(uint32_t id, char *name, size_t size) {
  char program[32];
  uint32_t first = (uint32_t)lvd_sys_getpid();
  if (id == first)
    snprintf(name, size, "main");
  else if (!read_name(id, name, size) ||
           (read_name(first, program, sizeof program) && strcmp(name, program) == 0))
    snprintf(name, size, "%u", id);
}

int32_t lvd_os_current_cpu(void) { return lvd_sys_getcpu(); }

void lvd_os_thread_migrate(int32_t cpu) {
  enum { CPUS_MAX = 4096 };
  cpu_set_t may[CPUS_MAX / CPU_SETSIZE], there[CPUS_MAX / CPU_SETSIZE];
  if (cpu < 0 || cpu >= CPUS_MAX || lvd_sys_getcpu() == cpu) return;
  if (lvd_sys_getaffinity(sizeof may, may) != 0 || !CPU_ISSET_S((size_t)cpu, sizeof may, may))
    return;
  CPU_ZERO_S(sizeof there, there);
  CPU_SET_S((size_t)cpu, sizeof there, there);
  if (lvd_sys_setaffinity(sizeof there, there) == 0) lvd_sys_setaffinity(sizeof may, may);
}

const unsigned char *lvd_os_stack_low(size_t *out) {
  pthread_attr_t attr;
  void *low = NULL;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return NULL;
  pthread_attr_getstack(&attr, &low, &size);
  pthread_attr_destroy(&attr);
  if (out) *out = size;
  return low;
}

int lvd_os_thread_cpu_clock(void) {
  clockid_t clock;
  return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? (int)clock : CLOCK_MONOTONIC;
}

uint64_t lvd_os_cpu_clock_ns(int clock) {
  struct timespec t;
  if (lvd_sys_clock_gettime((clockid_t)clock, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static pthread_key_t exit_key;
static pthread_once_t exit_key_made = PTHREAD_ONCE_INIT;
static _Thread_local struct {
  void (*end)(void *);
  void *argument;
} exit_hooks[LVD_EXIT_HOOKS];

static void call_exit_hooks(void *unused) {
  (void)unused;
  for (int i = 0; i < LVD_EXIT_HOOKS; i++) {
    void *argument = exit_hooks[i].argument;
    /* Called once: by the next round of destructors the argument may belong to another thread. */
    exit_hooks[i].argument = NULL;
    if (argument) exit_hooks[i].end(argument);
  }
}
static void make_exit_key(void) { pthread_key_create(&exit_key, call_exit_hooks); }

void lvd_os_at_thread_exit(lvd_os_exit_hook hook, void (*end)(void *), void *argument) {
  pthread_once(&exit_key_made, make_exit_key);
  exit_hooks[hook].end = end;
  exit_hooks[hook].argument = argument;
  pthread_setspecific(exit_key, exit_hooks);
}

static pthread_key_t main_key;
static pthread_once_t main_key_made = PTHREAD_ONCE_INIT;
static void (*main_exit)(void);

static void call_main_exit(void *unused) {
  (void)unused;
  main_exit();
}
static void make_main_key(void) { pthread_key_create(&main_key, call_main_exit); }

void lvd_os_at_main_thread_exit(void (*end)(void)) {
  if (lvd_sys_gettid() != lvd_sys_getpid()) return;
  pthread_once(&main_key_made, make_main_key);
  main_exit = end;
  pthread_setspecific(main_key, &main_key);
}

/* The first thread remains as a zombie until the process exits. */
static bool is_dead(const char *id) {
  char path[320], line[512];
  snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
  if (!read_line(path, line, sizeof line)) return false;
  const char *name_end = strrchr(line, ')');
  return name_end && strncmp(name_end, ") Z", 3) == 0;
}

static bool is_blocked(const char *stat) {
  char line[512];
  read_start(stat, line, sizeof line);
  const char *name_end = strrchr(line, ')');
  return !name_end || strchr("SDZX", name_end[2]);
}

bool lvd_os_thread_is_blocked(uint32_t id) {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%u/stat", id);
  return is_blocked(path);
}

bool lvd_os_any_thread_is_blocked(uint32_t id) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%u/stat", id);
  return is_blocked(path);
}

uint64_t lvd_os_thread_cpu_ns(void) { return lvd_os_cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

uint64_t lvd_os_thread_voluntary_switches(void) {
  struct rusage r;
  return lvd_sys_getrusage(RUSAGE_THREAD, &r) == 0 ? (uint64_t)r.ru_nvcsw : 0;
}

/* The second number: nanoseconds of run delay. */
uint64_t lvd_os_thread_run_delay_ns(uint32_t id) {
  char path[48], line[80];
  snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", id);
  read_start(path, line, sizeof line);
  const char *at = strchr(line, ' ');
  uint64_t delay = at ? 0 : UINT64_MAX;
  for (; at && at[1] >= '0' && at[1] <= '9'; at++) delay = delay * 10 + (uint64_t)(at[1] - '0');
  return delay;
}

static void count_task(void *tasks, const char *number) {
  *(uint32_t *)tasks += *number != '.' && !is_dead(number);
}

uint32_t lvd_os_other_thread_count(void) {
  uint32_t tasks = 0;
  int folder = lvd_sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return UINT32_MAX;
  bool all = lvd_sys_list(folder, count_task, &tasks);
  lvd_sys_close(folder);
  if (!all) return UINT32_MAX;
  uint32_t ours = lvd_load_relaxed_u32(&started);
  return tasks > ours ? tasks - ours : 0;
}

void lvd_os_sleep(int64_t ns) {
  struct timespec t = {ns / 1000000000, ns % 1000000000};
  lvd_sys_nanosleep(&t, NULL);
}

void lvd_os_sleep_uninterrupted(int64_t ns) {
  struct timespec t = {ns / 1000000000, ns % 1000000000};
  while (lvd_sys_nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

void lvd_os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(before, parent, child);
}

_Thread_local void *lvd_os_self_word;
void *lvd_os_self(void) { return lvd_os_self_word; }
void lvd_os_set_self(void *self) { lvd_os_self_word = self; }
