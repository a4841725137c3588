/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* All of the C library. */
#ifndef LEVADA_H
#define LEVADA_H

#include <levada/actor.h>
#include <levada/call.h>
#include <levada/channel.h>
#include <levada/fiber.h>
#include <levada/fork.h>
#include <levada/inbox.h>
#include <levada/native.h>
#include <levada/process.h>
#include <levada/program.h>
#include <levada/runtime.h>
#include <levada/shield.h>
#include <levada/stream.h>
#include <levada/wait.h>

#endif
