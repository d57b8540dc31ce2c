// The library as Python's ctypes sees it: C functions over plain pointers. No C++ run time and no
// Python headers: one build serves every Python, free-threaded ones too.
#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif

// glibc 2.34 moved these from libpthread into libc and gave them a new version: by their first one, a
// library built on a new Linux loads on an old one, where every Python has libpthread.
#if defined(__GLIBC__) && defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
#endif
#ifdef FIRST_GLIBC
__asm__(".symver pthread_create, pthread_create@" FIRST_GLIBC);
__asm__(".symver pthread_join, pthread_join@" FIRST_GLIBC);
__asm__(".symver pthread_attr_setstacksize, pthread_attr_setstacksize@" FIRST_GLIBC);
#endif

#include "core.h"
#include "cpu.h"

namespace mnar {

// ---- the kernels: which levels there are, and the one in use

namespace baseline { extern const Kernels kernels; }
#ifdef __x86_64__
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }
#endif

namespace {

struct Levels {  // those this machine can run, the best one last
    const Kernels* tables[3];
    int count = 0;
    char names[32] = "";

    Levels() {
        add(baseline::kernels);
#ifdef __x86_64__
        const Processor processor;
        if (processor.avx2) add(avx2::kernels);
        if (processor.avx512) add(avx512::kernels);
#endif
    }

    const Kernels* find(const char* name) const {
        for (int i = 0; i < count; ++i)
            if (strcmp(tables[i]->name, name) == 0) return tables[i];
        return nullptr;
    }

  private:
    void add(const Kernels& table) {
        if (count > 0) strcat(names, " ");
        strcat(names, table.name);
        tables[count++] = &table;
    }
};

const Levels levels;
const Kernels* kernels = levels.tables[levels.count - 1];

// ---- threads

struct Jobs {
    Index next, count;
    void (*work)(void*, Index);
    void* context;

    void take() {
        for (Index job; (job = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < count;)
            work(context, job);
    }
};

constexpr int MOST_THREADS = 256;
constexpr size_t STACK = 2 << 20;  // musl and macOS give new threads little

#ifdef _WIN32
using Thread = HANDLE;
DWORD WINAPI run_thread(void* jobs) {
    static_cast<Jobs*>(jobs)->take();
    return 0;
}
bool start(Thread& thread, Jobs& jobs) {
    thread = CreateThread(nullptr, STACK, run_thread, &jobs, 0, nullptr);
    return thread != nullptr;
}
void wait_for(Thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}
#else
using Thread = pthread_t;
void* run_thread(void* jobs) {
    static_cast<Jobs*>(jobs)->take();
    return nullptr;
}
bool start(Thread& thread, Jobs& jobs) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, STACK);
    const bool started = pthread_create(&thread, &attributes, run_thread, &jobs) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}
void wait_for(Thread thread) { pthread_join(thread, nullptr); }
#endif

}  // namespace

void run_jobs(Index count, int threads, void (*work)(void*, Index), void* context) {
    Jobs jobs{0, count, work, context};
    Thread others[MOST_THREADS];
    int started = 0;
    while (started < MOST_THREADS && started + 1 < threads && started + 1 < count &&
           start(others[started], jobs))
        ++started;
    jobs.take();
    while (started > 0) wait_for(others[--started]);
}

}  // namespace mnar

// ---- what Python calls

#ifdef _WIN32
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

using namespace mnar;

EXPORT const char* mnarkmeans_interface() { return MNARKMEANS_INTERFACE; }

// The level in use; those this machine can run, with spaces between; another one (1, or 0 if it cannot).
EXPORT const char* mnarkmeans_level() { return kernels->name; }
EXPORT const char* mnarkmeans_levels() { return levels.names; }
EXPORT int32_t mnarkmeans_set_level(const char* name) {
    const Kernels* found = levels.find(name);
    if (found) kernels = found;
    return found != nullptr;
}

// The sizes of the structs in core.h, in the order of STRUCTS in _core/library.py; returns how many there are.
EXPORT int32_t mnarkmeans_struct_sizes(int64_t* sizes, int32_t room) {
    const int64_t all[] = {sizeof(Control), sizeof(Table), sizeof(Centers), sizeof(Stats), sizeof(Bounds),
                           sizeof(Pass), sizeof(FirstPass), sizeof(Starts), sizeof(Active), sizeof(Seeds),
                           sizeof(Partitions), sizeof(Moving), sizeof(Mixture), sizeof(Softened), sizeof(Decay),
                           sizeof(Lost), sizeof(Maximised), sizeof(Rounds), sizeof(Shares), sizeof(Magnitudes)};
    const int32_t count = sizeof all / sizeof *all;
    for (int32_t i = 0; i < count && i < room; ++i) sizes[i] = all[i];
    return count;
}

// ---- the kernels; see ``Kernels`` in core.h

EXPORT int32_t mnarkmeans_first_pass(const Table* table, FirstPass* out, Control* control) {
    return kernels->first_pass(*table, *out, *control);
}
EXPORT int32_t mnarkmeans_content_keys(const Table* table, uint64_t* keys, Control* control) {
    return kernels->content_keys(*table, keys, *control);
}
EXPORT int32_t mnarkmeans_content_order(const Table* table, Index* order, Control* control) {
    return kernels->content_order(*table, order, *control);
}
EXPORT int32_t mnarkmeans_fill_rows(const Table* table, const Index* rows, Index count,
                                    const double* fill, double* out) {
    return kernels->fill_rows(*table, rows, count, fill, out);
}
EXPORT int32_t mnarkmeans_impute(const Table* table, const double* mu, const Label* labels, void* out,
                                 Index out_row_stride, Control* control) {
    return kernels->impute(*table, mu, labels, out, out_row_stride, *control);
}
EXPORT int32_t mnarkmeans_pass(const Table* table, const Centers* centers, Pass* pass,
                               const Stats* stats, Control* control) {
    return kernels->pass(*table, *centers, *pass, *stats, *control);
}
EXPORT int32_t mnarkmeans_assign(const Table* table, const Centers* centers, int32_t plain,
                                 Label* labels, Control* control) {
    return (plain ? kernels->assign_plain : kernels->assign)(*table, *centers, labels, *control);
}
EXPORT int32_t mnarkmeans_add_rows(const Table* table, const Centers* centers, const Label* labels,
                                   const Stats* stats, Control* control) {
    return kernels->add_rows(*table, *centers, labels, *stats, *control);
}
EXPORT int32_t mnarkmeans_loss_of(const Table* table, const Centers* centers, const Label* labels,
                                  double* each, double* loss, Control* control) {
    return kernels->loss_of(*table, *centers, labels, each, loss, *control);
}
EXPORT int32_t mnarkmeans_last_look(const Table* table, const Centers* centers, const Bounds* bounds,
                                    Label* labels, Index* members, double* loss, Control* control) {
    return kernels->last_look(*table, *centers, *bounds, labels, members, loss, *control);
}
EXPORT int32_t mnarkmeans_distances(const Table* table, const Centers* centers, int32_t roots,
                                    int32_t is_double, void* out, Control* control) {
    return kernels->distances(*table, *centers, roots, is_double, out, *control);
}
EXPORT int32_t mnarkmeans_rescue(const Table* table, const Centers* centers, int32_t whole_weights,
                                 Label* labels, const Stats* stats, const Bounds* bounds,
                                 Control* control) {
    return kernels->rescue(*table, *centers, whole_weights, labels, *stats, *bounds, *control);
}
EXPORT void mnarkmeans_choose_rescued(double* costs, const double* weights, const Label* labels, Index n,
                                      Index k, Index* members, Index* taken) {
    kernels->choose_rescued(costs, weights, labels, n, k, members, taken);
}
EXPORT void mnarkmeans_update(const Starts* starts, Index p, const Active* active) {
    kernels->update(*starts, p, *active);
}
EXPORT void mnarkmeans_decide(const Starts* starts, Index p, Index iteration, double largest_move,
                              Active* active) {
    kernels->decide(*starts, p, iteration, largest_move, *active);
}
EXPORT int32_t mnarkmeans_centers_of(const Table* table, const Starts* starts, Control* control) {
    return kernels->centers_of(*table, *starts, *control);
}
EXPORT int32_t mnarkmeans_lloyd(const Table* tables, const Starts* starts, Index count, Control* control) {
    return kernels->lloyd(tables, starts, count, *control);
}
EXPORT int32_t mnarkmeans_hartigan(const Table* table, const Starts* starts, const Index* chosen,
                                   Index count, Control* control) {
    return kernels->hartigan(*table, *starts, chosen, count, *control);
}
EXPORT int32_t mnarkmeans_seed(const Table* tables, const Seeds* seeds, Index count, Control* control) {
    return kernels->seed(tables, seeds, count, *control);
}
EXPORT int32_t mnarkmeans_soften(const Table* table, const Mixture* mixture, Softened* out,
                                 Control* control) {
    return kernels->soften(*table, *mixture, *out, *control);
}
EXPORT double mnarkmeans_decay_value(const Decay* data, const double* theta, double* gradient) {
    return kernels->decay_value(*data, theta, gradient);
}
EXPORT double mnarkmeans_decay_fit(const Decay* data, const double* starts, Index count,
                                   const int32_t* free, Index max_steps, double* theta) {
    return kernels->decay_fit(*data, starts, count, free, max_steps, theta);
}
EXPORT void mnarkmeans_lost_around(const Lost* lost) { kernels->lost_around(*lost); }
EXPORT double mnarkmeans_hidden_rows(Index k, Index p, const double* weights, const double* log_missing,
                                     double* parts) {
    return kernels->hidden_rows(k, p, weights, log_missing, parts);
}
EXPORT void mnarkmeans_maximise(const Maximised* clusters) { kernels->maximise(*clusters); }
EXPORT int32_t mnarkmeans_em_rounds(const Table* table, Rounds* rounds, Control* control) {
    return kernels->em_rounds(*table, *rounds, *control);
}
EXPORT int32_t mnarkmeans_fit_shares(const Shares* shares) { return kernels->fit_shares(*shares); }
EXPORT int32_t mnarkmeans_magnitudes(const Table* table, Magnitudes* out, Control* control) {
    return kernels->magnitudes(*table, *out, *control);
}
EXPORT int32_t mnarkmeans_count_pairs(const Partitions* of, const Index* couples, Index count, double* pairs,
                                      Control* control) {
    return kernels->count_pairs(*of, couples, count, pairs, *control);
}
EXPORT int32_t mnarkmeans_move_rows(const Moving* moving, Control* control) {
    return kernels->move_rows(*moving, *control);
}
