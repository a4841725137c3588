/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The slow paths of a fork, called by clang's convention preserve_most: all registers but rax,
 * r11 and the floating-point registers are preserved (levada/fork.h). */
#if defined(__x86_64__)
        .macro  keeping name
        .globl  lvd_preserve_most_\name
        .hidden lvd_preserve_most_\name
        .type   lvd_preserve_most_\name, @function
        .p2align 4
lvd_preserve_most_\name:
        .cfi_startproc
        .irp    register, rcx, rdx, rsi, rdi, r8, r9, r10
        pushq   %\register
        .cfi_adjust_cfa_offset 8
        .endr
        call    lvd_fork_\name@PLT
        .irp    register, r10, r9, r8, rdi, rsi, rdx, rcx
        popq    %\register
        .cfi_adjust_cfa_offset -8
        .endr
        ret
        .cfi_endproc
        .size   lvd_preserve_most_\name, .-lvd_preserve_most_\name
        .endm

        .text
        keeping slow
        keeping join_slow_lib
#endif
#if defined(__linux__) && defined(__ELF__)
        .section .note.GNU-stack, "", @progbits
#endif
