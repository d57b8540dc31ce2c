// The C interface: every struct and function Python may call. Plain data only: nothing here may
// become code that is compiled for more than one instruction set.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Raised with every change of a struct or a function below; _core.py holds the same number.
#define MNARKMEANS_ABI 1

namespace mnar {

using Index = int64_t;

// One flag and one counter for a call that may take long. Python sets `cancel` and reads `done`
// from another thread; kernels look at it between pieces of work.
struct Control {
    volatile int32_t cancel;
    int64_t done, total;
};

// What the kernels of one instruction set offer. Each level defines `mnar::LEVEL::kernels` in exact.cpp.
struct Kernels {
    const char* name;
    // a * b + c as that level computes it: with two roundings in what decides, with one or two in
    // the certified scores. Tests ask.
    double (*multiply_add)(double a, double b, double c);
    float (*multiply_add_certified)(float a, float b, float c);
};

// Calls work(context, job) for job = 0 .. jobs - 1 on up to `threads` threads, this one among them;
// each takes the next job as it gets free. Threads that cannot be started are done without.
void run_jobs(Index jobs, int threads, void (*work)(void* context, Index job), void* context);

}  // namespace mnar
