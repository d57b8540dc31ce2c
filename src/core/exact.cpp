// All that decides and sums, for one instruction set (LEVEL): never contracted into fused
// multiply-adds, so that labels and centres are the same at every level.
#include "first_pass.h"
#include "hartigan.h"
#include "lloyd.h"
#include "mixture.h"
#include "seeding.h"

#define NAME_OF(level) #level
#define NAME(level) NAME_OF(level)

namespace mnar { namespace LEVEL {

extern const Kernels kernels = {
    NAME(LEVEL), first_pass, fill_rows, impute, run_pass, assign_plain, assign, add_rows, loss_of,
    label_and_loss, distances, relocate_empty, choose_relocated, update, decide, lloyd, hartigan, seed, e_step,
};

}}  // namespace mnar::LEVEL
