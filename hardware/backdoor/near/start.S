/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Entry of the near processor. */
        .section .text.start, "ax", @progbits
        .globl  _start
_start: la      sp, stack_top
        la      t0, bss
        la      t1, bss_end
1:      bgeu    t0, t1, 2f
        sw      zero, 0(t0)
        addi    t0, t0, 4
        j       1b
2:      call    run_all
3:      j       3b
        .section .note.GNU-stack, "", @progbits
