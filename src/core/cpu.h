// Which instruction sets this processor and its system support. By hand: __builtin_cpu_supports
// needs a table of libgcc or compiler-rt that zig does not link.
#pragma once
#if defined(__x86_64__)
#include <cpuid.h>

namespace mnar {

struct Processor {
    bool avx2 = false, avx512 = false;

    Processor() {
        unsigned a, b, c, d;
        if (!__get_cpuid(1, &a, &b, &c, &d)) return;
        const unsigned FMA_OSXSAVE_AVX = 1u << 12 | 1u << 27 | 1u << 28;
        if ((c & FMA_OSXSAVE_AVX) != FMA_OSXSAVE_AVX) return;

        unsigned saved, high;  // registers the system saves when it switches tasks
        __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
        const unsigned YMM = 0x06, ZMM = 0xe6;
        if ((saved & YMM) != YMM || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;

        avx2 = b & 1u << 5;
        const unsigned F_DQ_BW_VL = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
        avx512 = avx2 && (saved & ZMM) == ZMM && (b & F_DQ_BW_VL) == F_DQ_BW_VL;
    }
};

}  // namespace mnar
#endif
