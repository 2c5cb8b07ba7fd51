// Which vector units a function is compiled for, where the compiler may choose.

#ifndef SYN_CLONES_H
#define SYN_CLONES_H

// The loader picks the best version that the processor has; other compilers make one for the least processor.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#endif
