// exp and log of vectors, the same bits on every machine: libm's differ from one to the next.
// tests/core/test_e_step.py compares the likelihoods made of them with NumPy's.
//
//     e^x = 2^n (1 + f(r)),   x = n log 2 + r,  |r| <= log(2) / 2,   f = e^r - 1 by its series
//     log x = n log 2 + 2 artanh(s),   x = 2^n m,  m in [sqrt(1/2), sqrt(2)),   s = (m - 1) / (m + 1)
#pragma once
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

constexpr double LOG2_HIGH = 0x1.62e42fee00000p-1;  // n times this is exact for |n| < 2^21
constexpr double LOG2_LOW = 0x1.a39ef35793c76p-33;
constexpr double ROUND = 0x1.8p52;  // added and taken away, it rounds to a whole number
constexpr double LEAST_EXPONENT = -708.0;  // below, e^x is taken as 0

struct Exponential {
    Doubles scale, rest;  // e^x = scale (1 + rest)
};

INLINE Exponential exponential(Doubles x) {
    Doubles shifted = x * 0x1.71547652b82fep0 + ROUND;
    Doubles n = shifted - ROUND;
    Doubles r = (x - n * LOG2_HIGH) - n * LOG2_LOW;
    Doubles f = splat(1.0 / 6227020800.0);
    const double factorials[] = {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0,
                                 720.0,       120.0,      24.0,      6.0,      2.0};
    UNROLL for (double factorial : factorials) f = f * r + 1.0 / factorial;
    f = r + r * r * f;
    Longs exponent = ((Longs)shifted << 52) + (Longs{} + (int64_t(1023) << 52));
    return {(Doubles)exponent, f};
}

// x <= 709: beyond, e^x is no number.
INLINE Doubles exp_of(Doubles x) {
    Longs is = x >= LEAST_EXPONENT;
    Exponential e = exponential(keep(is, x));
    return keep(is, e.scale + e.scale * e.rest);
}

// x > 0 and not subnormal.
INLINE Doubles log_of(Doubles x) {
    const int64_t root = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
    Longs n = ((Longs)x - root) >> 52;
    Doubles m = (Doubles)((Longs)x - (n << 52)), f = m - 1.0, s = f / (m + 1.0), z = s * s;
    Doubles series = splat(1.0 / 25.0);
    const double odds[] = {23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3};
    UNROLL for (double odd : odds) series = series * z + 1.0 / odd;
    // 2 artanh(s) = f - s (f - 2 z series): what is added to f is small.
    Doubles whole = (Doubles)(n + (Longs)splat(ROUND)) - ROUND;
    Doubles small = s * (f - 2.0 * z * series) - whole * LOG2_LOW;
    return whole * LOG2_HIGH + (f - small);
}

INLINE double log_of(double x) { return log_of(splat(x))[0]; }

}}}  // namespace mnar::LEVEL
