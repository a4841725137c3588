/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The name and the text of each status. */
#include "status.h"

#include <levada/wait.h>

#include "../../platform/platform.h"

static const struct {
  const char *name, *text;
} statuses[LVD_STATUS_COUNT] = {
    [LVD_OK] = {"LVD_OK", "done"},
    [LVD_E_ARGUMENT] = {"LVD_E_ARGUMENT", "an argument is null, zero or out of range"},
    [LVD_E_MEMORY] = {"LVD_E_MEMORY", "the operating system gave no memory"},
    [LVD_E_LIMIT] = {"LVD_E_LIMIT", "a limit is reached"},
    [LVD_E_SYSTEM] = {"LVD_E_SYSTEM", "a system call failed"},
    [LVD_E_ABI] = {"LVD_E_ABI", "made for another version of the library"},
    [LVD_E_STATE] = {"LVD_E_STATE", "not possible in the present state"},
    [LVD_E_TIMEOUT] = {"LVD_E_TIMEOUT", "the time limit passed"},
    [LVD_E_EOF] = {"LVD_E_EOF", "the stream has ended"},
    [LVD_E_PEER_GONE] = {"LVD_E_PEER_GONE", "the other side is gone"},
    [LVD_E_FAULT] = {"LVD_E_FAULT", "an actor or a procedure failed"},
    [LVD_E_DEADLOCK] = {"LVD_E_DEADLOCK", "deadlock: every actor and fiber waits for another one"},
    [LVD_E_STOPPED] = {"LVD_E_STOPPED", "stopped before its end"},
    [LVD_E_CORRUPT] = {"LVD_E_CORRUPT",
                       "shared memory holds what the protocol cannot have written"},
    [LVD_E_CANCELLED] = {"LVD_E_CANCELLED", "cancelled"},
    [LVD_E_NOT_FOUND] = {"LVD_E_NOT_FOUND", "there is nothing of that name"},
    [LVD_E_MAPPINGS] = {"LVD_E_MAPPINGS",
                        "the system's number of memory mappings for a process is reached: raise it "
                        "with `sysctl vm.max_map_count=262144`"},
};

/* The text of the last limit that was reached on this thread. */
static _Thread_local const char *limit;

lvd_status lvd_limit(const char *sentence) {
  limit = sentence;
  return LVD_E_LIMIT;
}

const char *lvd_status_name(lvd_status s) {
  return (unsigned)s < LVD_STATUS_COUNT ? statuses[s].name : "LVD_E_?";
}

const char *lvd_status_text(lvd_status s) {
  if (s == LVD_E_LIMIT && limit) return limit;
  return (unsigned)s < LVD_STATUS_COUNT ? statuses[s].text : "an unknown status";
}

bool lvd_channel_fenced(void) { return !lvd_os_barrier_prepare(); }
