/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Context: a stack that does not run now, and the switch from one to another.
 *
 * The registers that a C compiler expects a call to keep are kept, and nothing else. The rounding mode
 * and its like are the thread's (to save them would double the cost): who changes them puts them back
 * before it waits. x86-64, aarch64 and RISC-V (of 64 and 32 bits) have a file each; everything
 * else, and -DLVD_PORTABLE_CONTEXT, goes through ucontext, which makes two system calls a switch.
 *
 * The address and thread sanitizers are told of every switch. */
#ifndef LVD_CONTEXT_H
#define LVD_CONTEXT_H

#include <levada/base.h>

#if defined(__SANITIZE_ADDRESS__)
#define LVD_CONTEXT_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define LVD_CONTEXT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LVD_CONTEXT_ASAN 1
#elif __has_feature(thread_sanitizer)
#define LVD_CONTEXT_TSAN 1
#endif
#endif

#if !defined(LVD_PORTABLE_CONTEXT) && !defined(__x86_64__) && !defined(__aarch64__) &&             \
    !defined(__riscv)
#define LVD_PORTABLE_CONTEXT 1
#endif

typedef struct lvd_os_context {
  void *sp; /* while it does not run; with ucontext, the ucontext_t */
#if defined(LVD_CONTEXT_ASAN)
  const void *bottom;
  size_t size;
  void *fake;
#elif defined(LVD_CONTEXT_TSAN)
  void *fiber;
#endif
} lvd_os_context;

/* The context of the thread that calls, which is on its own stack: to switch back to. */
void lvd_os_context_of_thread(lvd_os_context *c);

/* At the first switch to it, entry(argument) begins on the stack of `size` bytes that begins at
 * `low`. `entry` never returns; it leaves by a last switch. May be made anew over a context that has
 * ended. */
void lvd_os_context_make(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                         void *argument);

#if !defined(LVD_PORTABLE_CONTEXT) && !defined(LVD_CONTEXT_ASAN) && !defined(LVD_CONTEXT_TSAN)

/* Pushes what a call keeps, stores the stack's pointer in *from, takes `to` as the stack, pops. */
void lvd_context_swap(void **from, void *to);

/* Suspends the caller in `from`, goes on in `to`. `last`: the caller's stack is not needed again.
 * Where it is the last thing a function does, nothing is left that could be mispredicted. */
static inline void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last) {
  (void)last;
  lvd_context_swap(&from->sp, to->sp);
}

#else
void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last);
#endif

/* After a jump back to the thread's own stack from some other. */
void lvd_os_context_after_jump(lvd_os_context *thread);

/* When a context, ended or never begun, is given up with its stack. */
void lvd_os_context_free(lvd_os_context *c);

#endif
