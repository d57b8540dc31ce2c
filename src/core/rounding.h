// What rounding to float32 may cost a score.
//
// No term of a score passes through more than 2 RUN + terms / RUN additions, one product and three
// conversions, so it is off by at most gamma / 2 of its size, plus TINY where numbers are too small to
// be rounded relatively; both scores of a pair may be wrong. The sizes of the terms with x' add up to
// no more than |A_l| |x'|, the others to `heaviest`. One per cent covers the rounding of the bound.
//
// The sums of direct differences that decide (rows.h) are rounded too, in float64, by no more than
// their number of terms times 2^-53 of the distance; a label is certain only if that cannot turn it.
#pragma once
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Index RUN = 64;  // terms summed up before they are added to the score: keeps the bound small
constexpr double UNIT = 0x1p-24, TINY = 0x1p-126, UNIT64 = 0x1p-53;

struct Sizes {  // of the terms of scores, the largest of all centres
    double reach = 0, left = 0;        // |A|, and all other terms together, as float32 adds them up
    double longest = 0, heaviest = 0;  // the same before anything was taken away: what float64 has rounded

    void include(const Sizes& center) {
        reach = max_of(reach, center.reach);
        left = max_of(left, center.left);
        longest = max_of(longest, center.longest);
        heaviest = max_of(heaviest, center.heaviest);
    }
};

struct Rounding {  // two scores are apart for certain when further than
    float norm, exact, fixed;  // norm |x'| + exact |x'|^2 + fixed

    Rounding() : norm(0), exact(0), fixed(0) {}
    Rounding(Index terms, const Sizes& of) {
        double gamma = 1.01 * 2 * UNIT * (2 * min_of(terms, RUN) + terms / RUN + 8);
        double root = __builtin_sqrt(double(terms)), delta = 8 * UNIT64 * (terms + 8);
        norm = float(gamma * of.reach + delta * of.longest + root * TINY);
        exact = float(1.01 * delta);
        fixed = float(1.01 * (gamma * of.left + delta * of.heaviest + 8 * TINY * (2 * terms + 2 + root * of.longest)
                              + gamma * of.longest * root * 0x1p-60));
    }
};

}}}  // namespace mnar::LEVEL
