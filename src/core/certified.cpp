// float32 scores whose rounding is bounded, for one instruction set (LEVEL): fused multiply-adds
// are welcome, since where the bound cannot tell, exact.cpp decides.
#include "core.h"

namespace mnar {
namespace LEVEL {

float multiply_add_certified(float a, float b, float c) { return a * b + c; }

}  // namespace LEVEL
}  // namespace mnar
