// One build serves machines with and without wide vectors; the loader picks the widest clone that runs.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__)  // clones need ifuncs, which run before a sanitizer is ready
#define RAMIFY_WIDE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RAMIFY_WIDE_CLONES
#endif
