/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Context switch for aarch64, AAPCS64: x19 to x30, d8 to d15. */
#if defined(__aarch64__) && !defined(LVD_PORTABLE_CONTEXT)
        .text
        .globl  lvd_context_swap
        .hidden lvd_context_swap
        .type   lvd_context_swap, %function
        .p2align 4
lvd_context_swap:
        .cfi_startproc
        sub     sp, sp, #160
        stp     x19, x20, [sp, #0]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x3, sp
        str     x3, [x0]
        mov     sp, x1
        ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #160
        ret
        .cfi_endproc
        .size   lvd_context_swap, .-lvd_context_swap

        .globl  lvd_context_begin
        .hidden lvd_context_begin
        .type   lvd_context_begin, %function
        .p2align 4
lvd_context_begin:
        .cfi_startproc
        .cfi_undefined x30              /* outermost frame: a backtrace ends here */
        mov     x29, #0
        mov     x30, #0
        mov     x0, x20
        blr     x19
        brk     #1
        .cfi_endproc
        .size   lvd_context_begin, .-lvd_context_begin
#endif
        .section .note.GNU-stack, "", %progbits
