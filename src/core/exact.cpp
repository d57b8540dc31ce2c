// All that decides and sums, for one instruction set (LEVEL): never contracted into fused
// multiply-adds, so that labels and centres are the same at every level.
#include "agreement.h"
#include "em.h"
#include "first_look.h"
#include "hartigan.h"
#include "lloyd.h"
#include "magnitudes.h"
#include "seeding.h"
#include "shares.h"

#define NAME_OF(level) #level
#define NAME(level) NAME_OF(level)

namespace mnar { namespace LEVEL {

extern const Kernels kernels = {
    NAME(LEVEL), first_pass, fill_rows, impute, run_pass, assign_plain, assign, add_rows, loss_of, last_look, distances, rescue, choose_rescued, update, decide, centers_of, lloyd,
    hartigan, seed, soften, decay_value, decay_fit, lost_around, hidden_rows, maximise, em_rounds, fit_shares,
    magnitudes, count_pairs,
};

}}  // namespace mnar::LEVEL
