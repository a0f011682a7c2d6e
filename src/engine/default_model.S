/* HEARTH_DEFAULT_MODEL: the path of the GGUF file, set by CMakeLists.txt. */
    .section .rodata
    .balign 4096
    .global hearth_default_model_begin
    .global hearth_default_model_end
hearth_default_model_begin:
    .incbin HEARTH_DEFAULT_MODEL
hearth_default_model_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
