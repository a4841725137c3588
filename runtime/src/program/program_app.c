/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A C program as an application: one actor with a single firing that starts main as a fiber. So
 * whatever can be done with an application can be done with it, and main may do what a fiber may
 * do. */
#include "program_app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../platform/text.h"
#include "../sched/fiber.h"
#include "../sched/no_abandon.h"
#include "../srpc/srpc_program.h"

enum { MAIN_STACK_BYTES = 1 << LVD_STACK_MOST };

struct lvd_program {
  lvd_os_object *object;
  int (*main)(int, char **);
  int argc;
  char **argv; /* as main gets them: it may write into them */
  char *name;
  lvd_actor_desc actor;
  lvd_network network;
};

static _Thread_local const lvd_program *opening;

const lvd_program *lvd_program_registering(void) {
  return opening ? opening : lvd_program_here()->hosted;
}

/* ---- running --------------------------------------------------------------------------------- */

static void main_body(void *argument) {
  const lvd_program *p = argument;
  int result = p->main(p->argc, p->argv);
  if (result) {
    lvd_app_fail(lvd_current_app(), "main has returned %d", result);
    return;
  }
  lvd_program_settle();
  const char *misused = lvd_program_here()->misused;
  if (*misused) lvd_app_fail(lvd_current_app(), "%s", misused);
}

/* Later wake-ups find that main has begun. */
static lvd_run_result run(lvd_actor *self) {
  lvd_app *app = lvd_current_app();
  lvd_fiber_options o = {.name = "main", .stack = MAIN_STACK_BYTES};
  if (self->fired[0]++) return LVD_RUN_WAIT;
  lvd_status status = lvd_program_adopt(app, self->params);
  if (status == LVD_OK) {
    void *program;
    memcpy(&program, &self->params, sizeof program);
    lvd_os_object_code_range(((const lvd_program *)program)->object, &app->code_from,
                             &app->code_to);
    status = lvd_fiber_start(app, main_body, program, &o, NULL);
  }
  if (status != LVD_OK)
    lvd_actor_fail(self, LVD_FAULT_NATIVE, 0, "main cannot be started: %s",
                   lvd_status_text(status));
  return LVD_RUN_WAIT;
}

static const lvd_action_class firing = {.name = "main"};
static const lvd_actor_class class_of_main = {.name = "main",
                                              .flags = LVD_CLASS_CAN_BLOCK | LVD_CLASS_C_PROGRAM,
                                              .actions = 1,
                                              .action = &firing,
                                              .run = run};

/* ---- opening --------------------------------------------------------------------------------- */

/* A copy of the arguments, with a null at the end. Returns null if memory is short. */
static char **copy_of(int argc, const char *const *argv) {
  char **copy = calloc((size_t)argc + 1, sizeof *copy);
  for (int i = 0; copy && i < argc; i++)
    if (!(copy[i] = lvd_text_copy(argv[i]))) {
      while (i > 0) free(copy[--i]);
      free(copy);
      return NULL;
    }
  return copy;
}

static char *name_of(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strchr(name, '.');
  return lvd_text_copy_part(name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

static void free_all(lvd_program *p) {
  for (int i = 0; p->argv && i < p->argc; i++) free(p->argv[i]);
  free(p->argv);
  free(p->name);
  free(p);
}

lvd_status lvd_program_open(const char *path, int argc, const char *const *argv, lvd_program **out,
                            char *why, size_t why_size) {
  if (why && why_size) why[0] = 0;
  if (!path || !out || argc < 0 || (argc && !argv)) return LVD_E_ARGUMENT;
  *out = NULL;
  lvd_program *p = calloc(1, sizeof *p);
  if (!p) return LVD_E_MEMORY;
  p->argc = argc;
  p->argv = copy_of(argc, argv);
  p->name = name_of(path);
  if (!p->argv || !p->name) {
    free_all(p);
    return LVD_E_MEMORY;
  }
  p->actor = (lvd_actor_desc){.name = "main", .cls = &class_of_main, .params = p};
  p->network = (lvd_network){
      .abi_version = LVD_ABI_VERSION, .name = p->name, .actors = 1, .actor = &p->actor};
  opening = p;
  lvd_status status = lvd_os_object_open(path, &p->object, why, why_size);
  opening = NULL;
  void *main = status == LVD_OK ? lvd_os_object_symbol(p->object, "main") : NULL;
  if (status == LVD_OK && !main) {
    if (why) snprintf(why, why_size, "%s has no main", path);
    status = LVD_E_ARGUMENT;
  }
  if (status != LVD_OK) {
    lvd_program_close(p);
    return status;
  }
  memcpy(&p->main, &main, sizeof main);
  *out = p;
  return LVD_OK;
}

const lvd_network *lvd_program_network(const lvd_program *p) { return p ? &p->network : NULL; }

void lvd_program_close(lvd_program *p) {
  if (!p) return;
  lvd_procedures_forget(p);
  lvd_calls_forget(p);
  if (p->object) lvd_os_object_close(p->object);
  free_all(p);
}
