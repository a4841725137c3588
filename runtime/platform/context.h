/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Context: a suspended stack, and the switch from one stack to another.
 *
 * Only callee-saved registers are saved. Floating-point control state, such as the rounding mode,
 * is the thread's, since saving it would double the cost: code that changes it restores it before
 * it waits. x86-64, aarch64 and RISC-V (64 and 32 bits) have an assembly file each; other
 * processors, and -DLVD_PORTABLE_CONTEXT, use ucontext, which makes two system calls per switch.
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
  void *sp; /* while suspended; with ucontext, the ucontext_t */
#if defined(LVD_CONTEXT_ASAN)
  const void *bottom;
  size_t size;
  void *fake;
#elif defined(LVD_CONTEXT_TSAN)
  void *fiber;
#endif
} lvd_os_context;

/* The context of the calling thread, which runs on its own stack: to switch back to. */
void lvd_os_context_of_thread(lvd_os_context *c);

/* The first switch to it calls entry(argument) on the stack of `size` bytes that begins at `low`.
 * `entry` never returns; it leaves by a last switch. A context that has ended can be initialized
 * again. */
void lvd_os_context_make(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                         void *argument);

#if !defined(LVD_PORTABLE_CONTEXT) && !defined(LVD_CONTEXT_ASAN) && !defined(LVD_CONTEXT_TSAN)

/* Pushes the callee-saved registers, stores the stack pointer in *from, loads `to`, pops. */
void lvd_context_swap(void **from, void *to);

/* Suspends the caller in `from` and resumes `to`. `last`: the caller's stack will not be used
 * again. Fastest as the last statement of a function, since nothing after it can be
 * mispredicted. */
static inline void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last) {
  (void)last;
  lvd_context_swap(&from->sp, to->sp);
}

#else
void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last);
#endif

/* Called after a jump from another stack back to the thread's own. */
void lvd_os_context_after_jump(lvd_os_context *thread);

/* Called when a context that has ended or never begun is discarded with its stack. */
void lvd_os_context_free(lvd_os_context *c);

#endif
