/* HEARTH_CUDA_KERNELS: the path of nvcc's output, set by cmake/cuda.cmake. */
    .section .rodata
    .balign 4096
    .global hearth_cuda_kernels
    .global hearth_cuda_kernels_end
hearth_cuda_kernels:
    .incbin HEARTH_CUDA_KERNELS
hearth_cuda_kernels_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
