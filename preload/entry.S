# The slow ways of the trampolines, and the interposed dlsym and dlvsym (x86-64, System V ABI).
#
# All of them call C++ with everything saved that a caller may have put in registers for the function it meant to call, and then jump
# to that function as if nothing had been in between.

#ifndef __x86_64__
#error "the slow ways exist for x86-64 only"
#endif

# A frame with the six integer argument registers, rax (number of vector registers of a variadic call), r10 (static chain) and the
# eight vector argument registers. Floating-point arguments of the driver are scalars, so the low 16 bytes are all there is.
    .macro SAVE_ARGUMENTS
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $208, %rsp
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)
    movq %r10, 56(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    .endm

    .macro RESTORE_ARGUMENTS
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %rax
    movq 56(%rsp), %r10
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
    leave
    .cfi_restore %rbp
    .cfi_def_cfa %rsp, 8
    .endm

    .text

# r11d: index of the entry point. Jumps to what `function` returns for it.
    .macro SLOW_WAY name, function
    .globl \name
    .hidden \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    SAVE_ARGUMENTS
    movl %r11d, %edi
    call \function
    movq %rax, %r11
    RESTORE_ARGUMENTS
    jmpq *%r11
    .cfi_endproc
    .size \name, . - \name
    .endm

    SLOW_WAY memopt_first_call, memopt_enter
    SLOW_WAY memopt_unresolved, memopt_resolve

# void *dlsym(void *handle, const char *name), void *dlvsym(void *handle, const char *name, const char *version)
#
# RTLD_NEXT and RTLD_DEFAULT mean something only in relation to the caller, which the real function knows by its return address. So
# whatever is not about the CUDA driver or these two is a jump, and the rest is too unless memopt_lookup gives the answer itself.
    .macro LOOKUP name, real, version
    .globl \name
    .type \name, @function
    .globl memopt_\name
    .hidden memopt_\name
    .p2align 4
\name:
memopt_\name:
    .cfi_startproc
    endbr64
    testq %rsi, %rsi
    je 1f
    cmpb $'c', (%rsi)
    jne 3f
    cmpb $'u', 1(%rsi)
    jne 1f
4:  SAVE_ARGUMENTS
    # memopt_lookup(handle, name, version or null, caller, &answer)
    .ifeq \version
    xorl %edx, %edx
    .endif
    movq 8(%rbp), %rcx
    leaq 192(%rsp), %r8
    call memopt_lookup
    movq 192(%rsp), %r11
    testb %al, %al
    .cfi_remember_state
    jne 2f
    RESTORE_ARGUMENTS
1:  jmpq *\real(%rip)
    .cfi_restore_state
2:  leave
    .cfi_restore %rbp
    .cfi_def_cfa %rsp, 8
    movq %r11, %rax
    ret
    # dlsym and dlvsym themselves. Not dlopen and its kin: a sanitizer's runtime looks those up before it is ready for our code.
3:  cmpb $'d', (%rsi)
    jne 1b
    cmpb $'l', 1(%rsi)
    jne 1b
    cmpb $'s', 2(%rsi)
    je 4b
    cmpb $'v', 2(%rsi)
    jne 1b
    jmp 4b
    .cfi_endproc
    .size \name, . - \name
    .endm

    LOOKUP dlsym, memopt_real_dlsym, 0
    LOOKUP dlvsym, memopt_real_dlvsym, 1

# The real functions are found at the first use of either.
    .macro FIND_FIRST name, real
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    SAVE_ARGUMENTS
    call memopt_find_real_lookups
    RESTORE_ARGUMENTS
    jmpq *\real(%rip)
    .cfi_endproc
    .size \name, . - \name
    .endm

    FIND_FIRST memopt_find_dlsym, memopt_real_dlsym
    FIND_FIRST memopt_find_dlvsym, memopt_real_dlvsym

    .section .data.rel.local, "aw", @progbits
    .p2align 3
    .globl memopt_real_dlsym
    .hidden memopt_real_dlsym
    .type memopt_real_dlsym, @object
    .size memopt_real_dlsym, 8
memopt_real_dlsym:
    .quad memopt_find_dlsym
    .globl memopt_real_dlvsym
    .hidden memopt_real_dlvsym
    .type memopt_real_dlvsym, @object
    .size memopt_real_dlvsym, 8
memopt_real_dlvsym:
    .quad memopt_find_dlvsym

    .section .note.GNU-stack, "", @progbits
