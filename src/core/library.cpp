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

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "core.h"

namespace mnar {

// ---- the kernels: which levels there are

#ifdef __x86_64__
// What the processor and its system support. By hand: __builtin_cpu_supports needs a table of libgcc or
// compiler-rt that zig does not link.
struct Processor {
    bool avx2 = false, avx512 = false;

    Processor() {
        unsigned a, b, c, d;
        if (!__get_cpuid(1, &a, &b, &c, &d)) return;
        const unsigned FMA_OSXSAVE_AVX = 1u << 12 | 1u << 27 | 1u << 28;
        if ((c & FMA_OSXSAVE_AVX) != FMA_OSXSAVE_AVX) return;

        unsigned saved, high;  // registers the system saves when it switches tasks
        __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
        const unsigned YMM = 0x06, ZMM = 0xe6;
        if ((saved & YMM) != YMM || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;

        avx2 = b & 1u << 5;
        const unsigned F_DQ_BW_VL = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
        avx512 = avx2 && (saved & ZMM) == ZMM && (b & F_DQ_BW_VL) == F_DQ_BW_VL;
    }
};
#endif

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

// core.h as it was compiled.
EXPORT const char* mnarkmeans_header() {
    return
#include "core_text.inc"
        ;
}
// The levels this machine can run, with spaces between, the best one last; and the functions of one, or null.
EXPORT const char* mnarkmeans_levels() { return levels.names; }
EXPORT const Kernels* mnarkmeans_kernels(const char* name) { return levels.find(name); }
