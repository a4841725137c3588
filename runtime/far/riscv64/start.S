/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where the loader begins, and where traps arrive. Machine mode; hart 0 only. */
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
        li      t0, 0x6000              /* floating point is on, for programs */
        csrs    mstatus, t0
        la      t0, lvd_bss
        la      t1, lvd_bss_end
1:      bgeu    t0, t1, 2f
        sd      zero, 0(t0)
        addi    t0, t0, 8
        j       1b
2:      la      sp, lvd_stack_top
        call    lvd_loader_begin
.Lpark: wfi
        j       .Lpark

/* Gives up whatever ran, and loads anew. */
        .globl  lvd_loader_again
lvd_loader_again:
        la      t0, lvd_trap_stack_top
        csrw    mscratch, t0
        li      t0, 0x8
        csrc    mstatus, t0
        la      sp, lvd_stack_top
        call    lvd_loader_begin
        j       .Lpark

/* On a stack of its own: that of a program may be what has failed. The handler is compiled without
 * floating point, so the integer registers that a call may change are all there is to keep. */
        .p2align 2
lvd_trap_entry:
        csrrw   sp, mscratch, sp
        addi    sp, sp, -144
        sd      ra, 0(sp)
        sd      t0, 8(sp)
        sd      t1, 16(sp)
        sd      t2, 24(sp)
        sd      t3, 32(sp)
        sd      t4, 40(sp)
        sd      t5, 48(sp)
        sd      t6, 56(sp)
        sd      a0, 64(sp)
        sd      a1, 72(sp)
        sd      a2, 80(sp)
        sd      a3, 88(sp)
        sd      a4, 96(sp)
        sd      a5, 104(sp)
        sd      a6, 112(sp)
        sd      a7, 120(sp)
        csrr    a0, mcause
        csrr    a1, mepc
        csrr    a2, mtval
        call    lvd_trap
        ld      ra, 0(sp)
        ld      t0, 8(sp)
        ld      t1, 16(sp)
        ld      t2, 24(sp)
        ld      t3, 32(sp)
        ld      t4, 40(sp)
        ld      t5, 48(sp)
        ld      t6, 56(sp)
        ld      a0, 64(sp)
        ld      a1, 72(sp)
        ld      a2, 80(sp)
        ld      a3, 88(sp)
        ld      a4, 96(sp)
        ld      a5, 104(sp)
        ld      a6, 112(sp)
        ld      a7, 120(sp)
        addi    sp, sp, 144
        csrrw   sp, mscratch, sp
        mret
        .section .note.GNU-stack, "", @progbits
