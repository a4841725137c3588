/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Entry point of the loader, and trap entry. Machine mode; hart 0 only. For riscv64 and riscv32. */
#if __riscv_xlen == 64
#define WORD  8
#define STORE sd
#define LOAD  ld
#else
#define WORD  4
#define STORE sw
#define LOAD  lw
#endif
#define AT(n) (n * WORD)(sp)
#define FRAME (16 * WORD)
        .section .text.start, "ax", @progbits
        .globl  _start
_start:
        csrr    t0, mhartid
        bnez    t0, .Lpark
        csrw    mie, zero
        la      t0, lvd_trap_entry
        csrw    mtvec, t0
        la      t0, lvd_trap_stack_top
        csrw    mscratch, t0
        li      t0, 0x6000              /* enable floating point, for programs */
        csrs    mstatus, t0
        la      t0, lvd_bss
        la      t1, lvd_bss_end
1:      bgeu    t0, t1, 2f
        STORE   zero, 0(t0)
        addi    t0, t0, WORD
        j       1b
2:      la      sp, lvd_stack_top
        call    lvd_loader_begin
.Lpark: wfi
        j       .Lpark

/* Abandons what was running, and restarts the loader. */
        .globl  lvd_loader_again
lvd_loader_again:
        la      t0, lvd_trap_stack_top
        csrw    mscratch, t0
        li      t0, 0x8
        csrc    mstatus, t0
        la      sp, lvd_stack_top
        call    lvd_loader_begin
        j       .Lpark

/* On a stack of its own, since a program's stack may be the fault. The handler is compiled without
 * floating point, so it is enough to save the caller-saved integer registers. */
        .p2align 2
lvd_trap_entry:
        csrrw   sp, mscratch, sp
        addi    sp, sp, -FRAME
        STORE   ra, AT(0)
        STORE   t0, AT(1)
        STORE   t1, AT(2)
        STORE   t2, AT(3)
        STORE   t3, AT(4)
        STORE   t4, AT(5)
        STORE   t5, AT(6)
        STORE   t6, AT(7)
        STORE   a0, AT(8)
        STORE   a1, AT(9)
        STORE   a2, AT(10)
        STORE   a3, AT(11)
        STORE   a4, AT(12)
        STORE   a5, AT(13)
        STORE   a6, AT(14)
        STORE   a7, AT(15)
        csrr    a0, mcause
        csrr    a1, mepc
        csrr    a2, mtval
        call    lvd_trap
        LOAD    ra, AT(0)
        LOAD    t0, AT(1)
        LOAD    t1, AT(2)
        LOAD    t2, AT(3)
        LOAD    t3, AT(4)
        LOAD    t4, AT(5)
        LOAD    t5, AT(6)
        LOAD    t6, AT(7)
        LOAD    a0, AT(8)
        LOAD    a1, AT(9)
        LOAD    a2, AT(10)
        LOAD    a3, AT(11)
        LOAD    a4, AT(12)
        LOAD    a5, AT(13)
        LOAD    a6, AT(14)
        LOAD    a7, AT(15)
        addi    sp, sp, FRAME
        csrrw   sp, mscratch, sp
        mret
        .section .note.GNU-stack, "", @progbits
