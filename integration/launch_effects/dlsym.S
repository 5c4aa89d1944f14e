# void *dlsym(void *handle, const char *name): names of the driver that this library wraps are answered here, by handle.
#
# RTLD_NEXT and RTLD_DEFAULT mean something only in relation to the caller, which the next function knows by its return
# address: so all else is a jump.
#ifndef __x86_64__
#error "dlsym is interposed on x86-64 only"
#endif

    .text
    .globl dlsym
    .type dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    endbr64
    testq %rsi, %rsi
    je 1f
    cmpb $'c', (%rsi)
    jne 1f
    cmpb $'u', 1(%rsi)
    jne 1f
    pushq %rdi
    .cfi_def_cfa_offset 16
    pushq %rsi
    .cfi_def_cfa_offset 24
    subq $8, %rsp
    .cfi_def_cfa_offset 32
    call launch_effects_lookup
    addq $8, %rsp
    .cfi_def_cfa_offset 24
    popq %rsi
    .cfi_def_cfa_offset 16
    popq %rdi
    .cfi_def_cfa_offset 8
    testq %rax, %rax
    jne 2f
1:  jmpq *launch_effects_next_dlsym(%rip)
2:  ret
    .cfi_endproc
    .size dlsym, . - dlsym

# The next dlsym is found at the first use.
    .type find_first, @function
    .p2align 4
find_first:
    .cfi_startproc
    pushq %rdi
    .cfi_def_cfa_offset 16
    pushq %rsi
    .cfi_def_cfa_offset 24
    subq $8, %rsp
    .cfi_def_cfa_offset 32
    call launch_effects_find_dlsym
    addq $8, %rsp
    .cfi_def_cfa_offset 24
    popq %rsi
    .cfi_def_cfa_offset 16
    popq %rdi
    .cfi_def_cfa_offset 8
    jmpq *launch_effects_next_dlsym(%rip)
    .cfi_endproc
    .size find_first, . - find_first

    .section .data.rel.local, "aw", @progbits
    .p2align 3
    .globl launch_effects_next_dlsym
    .hidden launch_effects_next_dlsym
    .type launch_effects_next_dlsym, @object
    .size launch_effects_next_dlsym, 8
launch_effects_next_dlsym:
    .quad find_first

    .section .note.GNU-stack, "", @progbits
