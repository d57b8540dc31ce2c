// Vectors of the native width, in the vector extensions of GCC and Clang; memory; threads.
//
// Everything here is compiled once per instruction set and file, in an unnamed namespace: the linker
// would otherwise merge functions of different levels, or fused products into what decides. For the
// same reason nothing of std:: is used.
#pragma once
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

namespace mnar { namespace LEVEL { namespace {

#if defined(__AVX512F__)
constexpr int WIDTH = 16;  // float32 in a register
#elif defined(__AVX2__)
constexpr int WIDTH = 8;
#else
constexpr int WIDTH = 4;
#endif
constexpr int HALF = WIDTH / 2;  // float64 in a register
constexpr Index CACHE_LINE = 64;

typedef float Floats __attribute__((vector_size(4 * WIDTH)));
typedef int32_t Ints __attribute__((vector_size(4 * WIDTH)));
typedef double Doubles __attribute__((vector_size(4 * WIDTH)));
typedef int64_t Longs __attribute__((vector_size(4 * WIDTH)));
typedef float HalfFloats __attribute__((vector_size(2 * WIDTH)));

template <class V, class T> INLINE V load(const T* from) {
    V v;
    memcpy(&v, from, sizeof v);
    return v;
}
template <class V, class T> INLINE void store(T* to, V v) { memcpy(to, &v, sizeof v); }
INLINE Floats splat(float x) { return x - Floats{}; }
INLINE Ints splat_int(int32_t x) { return x - Ints{}; }
INLINE Doubles splat(double x) { return x - Doubles{}; }
INLINE Floats keep(Ints where, Floats v) { return (Floats)((Ints)v & where); }  // 0 elsewhere
INLINE Doubles keep(Longs where, Doubles v) { return (Doubles)((Longs)v & where); }
INLINE bool any(Longs where) {
    int64_t all = 0;
    for (size_t i = 0; i < sizeof where / sizeof all; ++i) all |= where[i];
    return all != 0;
}
INLINE Doubles load_doubles(const double* from) { return load<Doubles>(from); }
INLINE Doubles load_doubles(const float* from) {
    return __builtin_convertvector(load<HalfFloats>(from), Doubles);
}

INLINE Index min_of(Index a, Index b) { return a < b ? a : b; }
INLINE double max_of(double a, double b) { return a > b ? a : b; }

// Sums of a fixed width, whatever the instruction set: entry j goes to partial sum j % 8, and the
// eight are added in one order. That, and no fused products where something is decided, is why
// results are the same bits on every machine.
constexpr Index EIGHT = 8;
INLINE Index whole_eights(Index count) { return (count + EIGHT - 1) / EIGHT * EIGHT; }

INLINE double total_of(const double* v) { return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])); }

struct Sum8 {
    Doubles parts[EIGHT / HALF];

    Sum8() {
        for (Doubles& part : parts) part = Doubles{};
    }
    double total() const {
        double v[EIGHT];
        memcpy(v, parts, sizeof v);
        return total_of(v);
    }
};

// --- memory -----------------------------------------------------------------------------------

// On a cache line, so that no vector straddles two. Ask ok(): memory can run out.
template <class T> class Array {
  public:
    explicit Array(Index size) : block(size < 0 ? nullptr : malloc(sizeof(T) * size + CACHE_LINE)) {
        uintptr_t at = reinterpret_cast<uintptr_t>(block) + CACHE_LINE - 1;
        first = reinterpret_cast<T*>(at & ~uintptr_t(CACHE_LINE - 1));
    }
    Array(Index size, T value) : Array(size) {
        for (Index i = 0; ok() && i < size; ++i) first[i] = value;
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() { free(block); }
    bool ok() const { return block != nullptr; }
    T* get() const { return first; }
    operator T*() const { return first; }

  private:
    void* block;
    T* first;
};

template <class... Arrays> INLINE bool all_ok(const Arrays&... arrays) { return (arrays.ok() && ...); }

// An object on the heap without the run time of C++; null if memory ran out.
struct OnHeap {};
}}}
INLINE void* operator new(size_t, void* at, mnar::LEVEL::OnHeap) { return at; }
namespace mnar { namespace LEVEL { namespace {

template <class T, class... Arguments> T* make(Arguments&&... arguments) {
    void* at = malloc(sizeof(T));
    if (!at) return nullptr;
    T* made = new (at, OnHeap{}) T(static_cast<Arguments&&>(arguments)...);
    if (made->ok()) return made;
    made->~T();
    free(at);
    return nullptr;
}

template <class T> void unmake(T* it) {
    if (!it) return;
    it->~T();
    free(it);
}

// --- threads ----------------------------------------------------------------------------------

// work(job) -> Status for job = 0 .. jobs - 1 on the threads of the call. The first that goes wrong
// is what the call returns; the jobs not yet begun are then passed over.
template <class Work> int32_t in_parallel(Index jobs, Control& control, const Work& work) {
    struct Context {
        const Work* work;
        Control* control;
        int32_t status;
    } context{&work, &control, DONE};
    run_jobs(jobs, control.threads, [](void* it, Index job) {
        Context& here = *static_cast<Context*>(it);
        if (__atomic_load_n(&here.status, __ATOMIC_RELAXED) != DONE) return;
        int32_t status = __atomic_load_n(&here.control->cancel, __ATOMIC_RELAXED) ? int32_t(CANCELLED)
                                                                                : (*here.work)(job);
        if (status != DONE) __atomic_store_n(&here.status, status, __ATOMIC_RELAXED);
    }, &context);
    return context.status;
}

INLINE bool cancelled(const Control& control) {
    return __atomic_load_n(&control.cancel, __ATOMIC_RELAXED) != 0;
}

INLINE void count_done(Control& control, Index more) {
    __atomic_fetch_add(&control.done, more, __ATOMIC_RELAXED);
}

}}}  // namespace mnar::LEVEL
