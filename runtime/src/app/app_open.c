/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Applications without a network, for programs that only use fibers, streams and calls. */
#include "../sched/no_abandon.h"
#include "app.h"

lvd_status lvd_app_open(lvd_runtime *rt, const lvd_app_options *options, lvd_app **out) {
  LVD_NO_ABANDON;
  static const lvd_network none = {.abi_version = LVD_ABI_VERSION, .name = "program"};
  lvd_app *app;
  if (!out) return LVD_E_ARGUMENT;
  lvd_status status = lvd_app_load(rt, &none, options, &app, NULL, 0);
  if (status != LVD_OK) return status;
  lvd_store_relaxed_u32(&app->open, 1);
  *out = app;
  return lvd_app_start(app);
}

void lvd_app_close(lvd_app *app) {
  LVD_NO_ABANDON;
  if (!app) return;
  lvd_store_release_u32(&app->open, 0);
  lvd_app_check_quiescent(app);
}
