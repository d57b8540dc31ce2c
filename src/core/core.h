// The C interface: every struct and function that Python may call (``mnarkmeans/_core``).
//
// Plain data only. This header is seen by files that are compiled for different instruction sets,
// so no code in it may be compiled for more than one of them.
//
//     L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + sum_{j missing} lam_j (mu_lj - c_j)^2 ]
//
// Centres, references and values are in the units of the data throughout. ``shift`` is what sums
// subtract from every value so that they do not cancel; it never decides anything.
#pragma once
#include <stddef.h>
#include <stdint.h>

// The headers, in the order to read them:
//
//     vectors.h      vectors, memory, threads            certified.h    labels in float32 with a bound on their error:
//     rows.h         one row: its costs, its sums            dense.h    dense rows, with panels.h and rounding.h
//     loss.h         the maths of the loss                   sparse.h   CSR rows
//     pass.h         one pass: labels and sums           first_pass.h   counts, sums and extremes; filled rows
//     predict.h      labels, losses, distances           seeding.h      k-means++
//     lloyd.h        Lloyd's loop on small tables        mixture.h      the E-step of mixtures
//     hartigan.h     moves of single rows
//
// The text of this file is part of the library: Python reads it from there and makes its structs and
// functions of it (``_core.py``), so that they cannot differ. One declaration to a line, each
// ended by ";", in the types named below.

namespace mnar {

using Index = int64_t;
using Label = int32_t;

enum Status : int32_t { DONE = 0, OUT_OF_MEMORY = 1, CANCELLED = 2 };

struct Control {       // shared with the thread that waits for the call
    int32_t cancel;    // set from outside: the call ends at the next block of rows
    int32_t threads;   // how many threads may work on this call
    Index done;        // starts that have ended: counts up while lloyd and hartigan run
};

struct Table {                // rows with gaps, and their weights
    int32_t is_sparse;        // CSR: what is not stored is a gap
    int32_t is_double;        // values are float64, otherwise float32
    Index n, p;
    const void* values;       // dense: entry (i, j) at i row_stride + j column_stride; CSR: stored
    Index row_stride, column_stride;
    const int32_t* indices;   // CSR: features of the stored entries, rising within a row
    const Index* starts;      // CSR (n + 1,): where the rows begin among the stored entries
    double missing;           // dense: the code of a gap beside NaN; NaN if there is none
    const double* weights;    // (n,)
    const uint8_t* has_gaps;  // (p,) features of which some row may have a gap; null: all
    Index first;              // number of the first row in the whole table
    Index one_chunk;           // up to so many entries the table is one chunk of rows,
    Index per_chunk;           // otherwise they have about so many each
};

struct Centers {              // of G starts with k centres each
    Index groups, k;
    const double* mu;         // (G, k, p)
    const double* lam;        // (G, p) penalty of a gap in each feature
    const double* reference;  // (p,)
    const double* shift;      // (p,)
};

struct Stats {        // sums over rows, for G starts of k clusters; they add up over any split
    double* sums;     // (G, k, p) of w (x - shift) over observed entries
    double* counts;   // (G, k, p) weight of the rows that observe the feature
    double* sizes;    // (G, k) weight of the rows
    uint64_t* keys;   // (G, k) sum of the rows' keys: tells partitions apart
    double* squares;  // (G,) sum of w (x - shift)^2 over all observed entries
};

struct Bounds {           // Hamerly's: which rows cannot change cluster (pass.h); for one start
    float* margins;       // (n,); null: none are kept
    const double* drift;  // (k,)
};

struct Pass {               // one assignment pass
    const Index* active;    // (G,) which start each group of centres is: labels, stats [active[g]]
    int32_t fresh;          // the stats are 0 and every row is added; otherwise changes only
    Label* labels;          // (R, n), -1 before the first pass
    Bounds bounds;
    Index changed;          // OUT: labels that changed
    double largest_move;    // OUT: largest |x - shift|^2 of a row taken out of a cluster
};

struct FirstPass {       // what one pass over a table finds
    double* counts;      // (p,) weight of the rows that observe the feature
    double* sums;        // (p,) weighted sum of its values
    double* lowest;      // (p,) of the rows with a weight; +inf where none observes it
    double* highest;     // (p,) likewise, -inf
    Index* observed;     // (p,) rows that observe the feature, whatever their weight
    int32_t* row_counts; // (n,) observed entries of each row
    Index infinite;      // OUT: the first row with an infinite value, or -1
    Index malformed;     // OUT: CSR: the first row whose features do not rise within 0 .. p - 1, or -1
};

struct Starts {            // R starts of Lloyd's loop on a table, side by side
    Index count, k;
    double* mu;            // (R, k, p) INOUT
    const double* lam;     // (R, p)
    const double* reference;
    const double* shift;
    Stats stats;           // (R, ...) scratch, OUT: of the partition each start ended with
    Label* labels;         // (R, n) scratch, OUT
    double* paths;         // (R, max_iter) OUT: the loss after every iteration
    Index* n_iter;         // (R,) OUT
    Index* merged_into;    // (R,) OUT: an earlier start that this one fell together with, or -1
    uint64_t* partitions;  // (R,) hash of the partition each start had last
    Index max_iter;
    double tol;
    int32_t whole_weights; // sums of weights are exact: changes may be added
    double total_weight;   // of all rows
};

struct Active {         // the starts that go on, and what the last pass made of them
    Index count;        // INOUT A
    Index* numbers;     // (2 A,) INOUT which they are; the second half is scratch
    double* losses;     // (A,) of the new centres
    uint8_t* inexact;   // (A,) whose loss is to be taken by direct differences
    int32_t fresh;      // OUT: the next pass is to sum up all rows again
};

struct Seeds {             // starts drawn by greedy k-means++ on mean-filled rows
    Index count, k;        // R starts of k centres
    Index trials;          // candidates for each centre
    const double* means;   // (p,)
    const double* draws;   // (R, k, trials) in [0, 1)
    double* centers;       // (R, k, p) OUT
};

struct Mixture {                 // normal clusters with gaps, or Student's t
    Index k;
    const double* log_weight;    // (k,)
    const double* mean;          // (k, p)
    const double* variance;      // (k, p)
    const double* log_missing;   // (k, p) log P(missing | cluster, feature), finite
    const double* log_observed;  // (k, p) added for an observed entry beside its density; null: 0
    const double* shift;         // (p,)
    double freedom;              // degrees of freedom; 0: normal
    double log_peak;             // log density at the centre of a t with variance 1; unused if normal
};

struct Expectation {         // what the E-step finds; sums add up over any split
    double* sizes;           // (k,) INOUT; null sums: not wanted
    double* sums;            // (k, p) of w (x - shift) over observed entries, INOUT
    double* counts;          // (k, p) INOUT
    double* squares;         // (k, p) of w (x - shift)^2, INOUT
    double* pulls;           // (k, p) of w, INOUT; used by heavy tails only
    double* memberships;     // (n, k) or null
    double* row_likelihoods; // (n,) or null
    Label* labels;           // (n,) or null: the likeliest cluster
    double log_likelihood;   // INOUT, weighted
};

struct Kernels {  // what every instruction set offers
    const char* name;
    int32_t (*first_pass)(const Table&, FirstPass&, Control&);
    // Rows `rows` (m,) with their gaps filled from fill (p,): out (m, p).
    int32_t (*fill_rows)(const Table&, const Index* rows, Index m, const double* fill, double* out);
    // Gaps filled from the centres mu (k, p) by label: out (n, p) of the table's type.
    int32_t (*impute)(const Table&, const double* mu, Index k, const Label* labels, void* out, Control&);
    int32_t (*pass)(const Table&, const Centers&, Pass&, const Stats&, Control&);
    // Labels (G, n) by the plain loop of direct differences, which every fast way has to equal.
    int32_t (*assign_plain)(const Table&, const Centers&, Label* labels, Control&);
    int32_t (*assign)(const Table&, const Centers&, Label* labels, Control&);
    // Stats of one start from the labels it has.
    int32_t (*add_rows)(const Table&, const Centers&, const Label* labels, const Stats&, Control&);
    // The loss of the partition, by direct differences; each (n,): of every row, unless null.
    int32_t (*loss_of)(const Table&, const Centers&, const Label* labels, double* each, double* loss,
                       Control&);
    // OUT labels (n,): those the centres give; members (k,): rows of each; loss: by direct differences.
    int32_t (*label_and_loss)(const Table&, const Centers&, Label* labels, Index* members, double* loss,
                              Control&);
    // The loss of each row at every centre, or its square root: (n, k), float32 or float64.
    int32_t (*distances)(const Table&, const Centers&, int32_t roots, int32_t is_double, void* out,
                         Control&);
    // Relocates the empty clusters of one start to the costliest rows. INOUT labels (n,), stats.
    int32_t (*relocate_empty)(const Table&, const Centers&, Label* labels, const Stats&, const Bounds&,
                              Control&);
    // OUT rows (k,): those with these costs and weights (n,) to which empty clusters are relocated, or -1.
    // INOUT costs, members (k,).
    void (*choose_relocated)(double* costs, const double* weights, const Label* labels, Index n, Index k,
                           Index* members, Index* rows);
    // After a pass: new centres; OUT losses, and which of them are inexact.
    void (*update)(const Starts&, Index p, const Active&);
    // Then: who goes on.
    void (*decide)(const Starts&, Index p, Index iteration, double largest_move, Active&);
    // Lloyd's loop to its end, on a small table.
    int32_t (*lloyd)(const Table&, const Starts&, Control&);
    // Hartigan's moves from where Lloyd's loop ended, for the starts in chosen (C,).
    int32_t (*hartigan)(const Table&, const Starts&, const Index* chosen, Index count, Control&);
    // Greedy k-means++.
    int32_t (*seed)(const Table&, const Seeds&, Control&);
    // One E-step of a mixture with gaps, and the sums for its M-step.
    int32_t (*e_step)(const Table&, const Mixture&, Expectation&, Control&);
};

// Calls work(context, job) for job = 0 .. jobs - 1 on up to `threads` threads, this one among them;
// each takes the next job as it gets free. Threads that cannot be started are done without.
void run_jobs(Index jobs, int threads, void (*work)(void* context, Index job), void* context);

}  // namespace mnar
