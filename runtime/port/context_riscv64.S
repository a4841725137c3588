/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The switch for riscv64: ra, s0 to s11 and, where there is floating point, fs0 to fs11. */
#if defined(__riscv) && __riscv_xlen == 64 && !defined(LVD_PORTABLE_CONTEXT)
        .text
        .globl  lvd_context_swap
        .hidden lvd_context_swap
        .type   lvd_context_swap, @function
        .p2align 2
lvd_context_swap:
        .cfi_startproc
        addi    sp, sp, -208
        sd      ra, 0(sp)
        sd      s0, 8(sp)
        sd      s1, 16(sp)
        sd      s2, 24(sp)
        sd      s3, 32(sp)
        sd      s4, 40(sp)
        sd      s5, 48(sp)
        sd      s6, 56(sp)
        sd      s7, 64(sp)
        sd      s8, 72(sp)
        sd      s9, 80(sp)
        sd      s10, 88(sp)
        sd      s11, 96(sp)
#ifdef __riscv_flen
        fsd     fs0, 104(sp)
        fsd     fs1, 112(sp)
        fsd     fs2, 120(sp)
        fsd     fs3, 128(sp)
        fsd     fs4, 136(sp)
        fsd     fs5, 144(sp)
        fsd     fs6, 152(sp)
        fsd     fs7, 160(sp)
        fsd     fs8, 168(sp)
        fsd     fs9, 176(sp)
        fsd     fs10, 184(sp)
        fsd     fs11, 192(sp)
#endif
        sd      sp, 0(a0)
        mv      sp, a1
        ld      ra, 0(sp)
        ld      s0, 8(sp)
        ld      s1, 16(sp)
        ld      s2, 24(sp)
        ld      s3, 32(sp)
        ld      s4, 40(sp)
        ld      s5, 48(sp)
        ld      s6, 56(sp)
        ld      s7, 64(sp)
        ld      s8, 72(sp)
        ld      s9, 80(sp)
        ld      s10, 88(sp)
        ld      s11, 96(sp)
#ifdef __riscv_flen
        fld     fs0, 104(sp)
        fld     fs1, 112(sp)
        fld     fs2, 120(sp)
        fld     fs3, 128(sp)
        fld     fs4, 136(sp)
        fld     fs5, 144(sp)
        fld     fs6, 152(sp)
        fld     fs7, 160(sp)
        fld     fs8, 168(sp)
        fld     fs9, 176(sp)
        fld     fs10, 184(sp)
        fld     fs11, 192(sp)
#endif
        addi    sp, sp, 208
        ret
        .cfi_endproc
        .size   lvd_context_swap, .-lvd_context_swap

        .globl  lvd_context_begin
        .hidden lvd_context_begin
        .type   lvd_context_begin, @function
        .p2align 2
lvd_context_begin:
        .cfi_startproc
        .cfi_undefined ra               /* nobody called: a backtrace ends here */
        mv      a0, s1
        mv      t0, s0
        li      s0, 0
        jalr    t0
        ebreak
        .cfi_endproc
        .size   lvd_context_begin, .-lvd_context_begin
#endif
        .section .note.GNU-stack, "", @progbits
