// All that decides and sums, for one instruction set (LEVEL): never contracted into fused
// multiply-adds, so that labels and centres are the same at every level.
//
// This file and certified.cpp are compiled once per level. What headers bring to them lives in an
// unnamed namespace: the linker would otherwise merge functions of different levels, or contracted
// ones into what decides. For the same reason nothing of std:: is used.
#include "core.h"

namespace mnar {
namespace LEVEL {

float multiply_add_certified(float a, float b, float c);  // certified.cpp

namespace {

double multiply_add(double a, double b, double c) { return a * b + c; }

#define NAME_OF(level) #level
#define NAME(level) NAME_OF(level)

}  // namespace

extern const Kernels kernels = {
    NAME(LEVEL),
    multiply_add,
    multiply_add_certified,
};

}  // namespace LEVEL
}  // namespace mnar
