/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The images of the programs for the far processor, as raw bytes. */
        .macro  image name
        .p2align 2
        .globl  image_\name, image_\name\()_end
image_\name:
        .incbin "\name\().bin"
        .p2align 2
image_\name\()_end:
        .endm
        .section .rodata
        image   empty
        image   echo
        image   wrong
        image   sort
        image   integer
        image   fft
        image   wavelet
        .section .note.GNU-stack, "", @progbits
