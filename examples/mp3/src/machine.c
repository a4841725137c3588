/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "machine.h"
#include <string.h>

bool mp3_machine_check(mp3_machine *machine, lvd_status status, const char *what) {
  if (status == LVD_OK) return true;
  if (!machine->failed)
    fprintf(stderr, "mp3: %s: %s: %s\n", what, lvd_status_name(status), lvd_status_text(status));
  machine->failed = true;
  return false;
}

bool mp3_machine_open(mp3_machine *machine, const mp3_tuning *tuning) {
  memset(machine, 0, sizeof *machine);
  machine->threshold = tuning->threshold;
  lvd_runtime_options options = {.workers = tuning->workers, .no_spin = tuning->sleep};
  lvd_app_options app = {.name = "mp3"};
  if (!mp3_machine_check(machine, lvd_runtime_create(&options, &machine->runtime), "the runtime") ||
      !mp3_machine_check(machine, lvd_app_open(machine->runtime, &app, &machine->app), "the start"))
    return false;
  machine->units = lvd_worker_count(machine->runtime);
  if (machine->units > MP3_MOST_UNITS) machine->units = MP3_MOST_UNITS;
  for (unsigned i = 0; i < machine->units; i++)
    if (!mp3_machine_check(machine, lvd_unit_core(machine->app, i, &machine->unit[i]), "a unit"))
      return false;
  if (tuning->unit) {
    lvd_status status = lvd_unit_load(machine->app, tuning->unit, NULL, &machine->far);
    const char *why = status == LVD_OK ? NULL : lvd_window_error_text();
    if (!mp3_machine_check(machine, status, why && *why ? why : tuning->unit)) return false;
  }
  return true;
}

bool mp3_machine_close(mp3_machine *machine) {
  if (machine->app) {
    lvd_app_close(machine->app);
    /* What failed may have left others waiting. */
    if (machine->failed) lvd_app_stop(machine->app);
    lvd_status status = lvd_app_wait(machine->app, -1);
    if (!machine->failed && status != LVD_OK) {
      char why[1024];
      lvd_app_wait_report(machine->app, why, sizeof why);
      mp3_machine_check(machine, status, why);
    }
    lvd_app_unload(machine->app);
  }
  if (machine->runtime) lvd_runtime_destroy(machine->runtime);
  return !machine->failed;
}

lvd_stream *mp3_machine_stream(mp3_machine *machine, const char *name, size_t size,
                               unsigned capacity) {
  lvd_stream *stream = NULL;
  lvd_stream_options options = {.name = name,
                                .elem_size = (uint32_t)size,
                                .capacity = capacity,
                                .threshold = machine->threshold};
  if (!machine->failed)
    mp3_machine_check(machine, lvd_stream_create(machine->app, &options, &stream), name);
  return stream;
}

void mp3_machine_call(mp3_machine *machine, unsigned unit, const char *procedure,
                      const void *argument, size_t size, int priority) {
  lvd_call_options options = {.priority = priority};
  lvd_unit *where = machine->unit[unit % machine->units];
  if (machine->failed) return;
  if (mp3_machine_check(machine,
                        lvd_call_start(where, procedure, argument, size, &options,
                                       &machine->call[machine->calls]),
                        procedure))
    machine->calls++;
}

void mp3_machine_wait(mp3_machine *machine) {
  for (unsigned i = 0; i < machine->calls; i++) {
    if (machine->failed) lvd_call_cancel(machine->call[i]);
    mp3_machine_check(machine, lvd_call_wait(machine->call[i], NULL, NULL, -1, NULL), "a call");
  }
  machine->calls = 0;
}
