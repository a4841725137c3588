/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Context switch for riscv64 and riscv32: ra, s0 to s11 and, if there are floating-point registers,
 * fs0 to fs11. context.c initializes the same frame for a new context. */
#if defined(__riscv) && !defined(LVD_PORTABLE_CONTEXT)
#if __riscv_xlen == 64
#define WORD  8
#define STORE sd
#define LOAD  ld
#else
#define WORD  4
#define STORE sw
#define LOAD  lw
#endif
#if defined(__riscv_float_abi_double)
#define FSTORE fsd
#define FLOAD  fld
#elif defined(__riscv_float_abi_single)
#define FSTORE fsw
#define FLOAD  flw
#endif
#define AT(n)     (n * WORD)(sp)
#define FAT(n)    (14 * WORD + n * 8)(sp)
#define FRAME     208 /* large enough for both */
        .text
        .globl  lvd_context_swap
        .hidden lvd_context_swap
        .type   lvd_context_swap, @function
        .p2align 2
lvd_context_swap:
        .cfi_startproc
        addi    sp, sp, -FRAME
        STORE   ra, AT(0)
        STORE   s0, AT(1)
        STORE   s1, AT(2)
        STORE   s2, AT(3)
        STORE   s3, AT(4)
        STORE   s4, AT(5)
        STORE   s5, AT(6)
        STORE   s6, AT(7)
        STORE   s7, AT(8)
        STORE   s8, AT(9)
        STORE   s9, AT(10)
        STORE   s10, AT(11)
        STORE   s11, AT(12)
#ifdef FSTORE
        FSTORE  fs0, FAT(0)
        FSTORE  fs1, FAT(1)
        FSTORE  fs2, FAT(2)
        FSTORE  fs3, FAT(3)
        FSTORE  fs4, FAT(4)
        FSTORE  fs5, FAT(5)
        FSTORE  fs6, FAT(6)
        FSTORE  fs7, FAT(7)
        FSTORE  fs8, FAT(8)
        FSTORE  fs9, FAT(9)
        FSTORE  fs10, FAT(10)
        FSTORE  fs11, FAT(11)
#endif
        STORE   sp, 0(a0)
        mv      sp, a1
        LOAD    ra, AT(0)
        LOAD    s0, AT(1)
        LOAD    s1, AT(2)
        LOAD    s2, AT(3)
        LOAD    s3, AT(4)
        LOAD    s4, AT(5)
        LOAD    s5, AT(6)
        LOAD    s6, AT(7)
        LOAD    s7, AT(8)
        LOAD    s8, AT(9)
        LOAD    s9, AT(10)
        LOAD    s10, AT(11)
        LOAD    s11, AT(12)
#ifdef FSTORE
        FLOAD   fs0, FAT(0)
        FLOAD   fs1, FAT(1)
        FLOAD   fs2, FAT(2)
        FLOAD   fs3, FAT(3)
        FLOAD   fs4, FAT(4)
        FLOAD   fs5, FAT(5)
        FLOAD   fs6, FAT(6)
        FLOAD   fs7, FAT(7)
        FLOAD   fs8, FAT(8)
        FLOAD   fs9, FAT(9)
        FLOAD   fs10, FAT(10)
        FLOAD   fs11, FAT(11)
#endif
        addi    sp, sp, FRAME
        ret
        .cfi_endproc
        .size   lvd_context_swap, .-lvd_context_swap

        .globl  lvd_context_begin
        .hidden lvd_context_begin
        .type   lvd_context_begin, @function
        .p2align 2
lvd_context_begin:
        .cfi_startproc
        .cfi_undefined ra               /* outermost frame: a backtrace ends here */
        mv      a0, s1
        mv      t0, s0
        li      s0, 0
        jalr    t0
        ebreak
        .cfi_endproc
        .size   lvd_context_begin, .-lvd_context_begin
#endif
        .section .note.GNU-stack, "", @progbits
