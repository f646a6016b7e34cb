#include "tests/kernels/matmul_host.h"

#include <pthread.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include <atomic>

#include "kernels/matmul/tile.cl.h"

// What nvcc defines.
#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads)
#define __align__(bytes) alignas(bytes)

struct float2 {
    float x, y;
};
struct place {
    unsigned x, y, z;
};

static float2 make_float2(float x, float y)
{
    return {x, y};
}

template <typename To, typename From> static To bits(From value)
{
    To to;
    static_assert(sizeof to == sizeof value, "another size");
    memcpy(&to, &value, sizeof to);
    return to;
}

static unsigned __float_as_uint(float value)
{
    return bits<unsigned>(value);
}

static float __uint_as_float(unsigned value)
{
    return bits<float>(value);
}

struct copy {
    float *to;
    const float *from;
    unsigned count;
    bool there;
};

// What the lanes of a warp give each other.
struct warp {
    pthread_barrier_t barrier;
    unsigned a[32][4], b[32][2];
    const float *parts[32];
};

static std::atomic<unsigned> faults;
static bool copies_are_early;
static pthread_barrier_t block_barrier;
static struct warp warps[MATMUL_ITEMS / 32];

static thread_local place threadIdx, blockIdx;
static thread_local std::deque<std::vector<copy>> groups;

static struct warp *own_warp(unsigned *out_lane)
{
    const unsigned thread = threadIdx.y * MATMUL_BLOCK_X + threadIdx.x;
    *out_lane = thread % 32;
    return &warps[thread / 32];
}

static void __syncthreads()
{
    pthread_barrier_wait(&block_barrier);
}

// Tensor cores cut their sums.
static float cut_sum(double sum)
{
    const float rounded = (float)sum;
    return std::fabs((double)rounded) > std::fabs(sum) ? std::nextafterf(rounded, 0.0f) : rounded;
}

static double tensor_value(unsigned value)
{
    faults += (value & 0x1fffu) != 0;
    return (double)__uint_as_float(value);
}

// (row, column) of `a`, and of `b`, as in the table of "Matrix Fragments for mma.m16n8k8".
static double element_a(const struct warp *warp, unsigned row, unsigned column)
{
    return tensor_value(warp->a[row % 8 * 4 + column % 4][row / 8 + column / 4 * 2]);
}

static double element_b(const struct warp *warp, unsigned row, unsigned column)
{
    return tensor_value(warp->b[column * 4 + row % 4][row / 4]);
}

static void tensor_multiply(float sum[4], const unsigned a[4], const unsigned b[2])
{
    unsigned lane;
    struct warp *warp = own_warp(&lane);
    memcpy(warp->a[lane], a, sizeof warp->a[lane]);
    memcpy(warp->b[lane], b, sizeof warp->b[lane]);
    pthread_barrier_wait(&warp->barrier);
    for (unsigned i = 0; i < 4; i++) {
        double result = (double)sum[i];
        for (unsigned d = 0; d < 8; d++)
            result +=
                element_a(warp, lane / 4 + i / 2 * 8, d) * element_b(warp, d, lane % 4 * 2 + i % 2);
        sum[i] = cut_sum(result);
    }
    pthread_barrier_wait(&warp->barrier);
}

// ldmatrix: of each matrix a lane gets the fourth of a row, and its neighbours the others.
static void tensor_load(unsigned out[4], const float *part)
{
    unsigned lane;
    struct warp *warp = own_warp(&lane);
    faults += (uintptr_t)part % 16 != 0;
    warp->parts[lane] = part;
    pthread_barrier_wait(&warp->barrier);
    for (unsigned i = 0; i < 4; i++)
        out[i] = __float_as_uint(warp->parts[8 * i + lane / 4][lane % 4]);
    pthread_barrier_wait(&warp->barrier);
}

static void run(const copy &copy)
{
    for (unsigned i = 0; i < copy.count; i++)
        copy.to[i] = copy.there ? copy.from[i] : 0.0f;
}

static void begin(const copy &copy)
{
    faults += ((uintptr_t)copy.to | (uintptr_t)copy.from) % (copy.count * sizeof(float)) != 0;
    if (copies_are_early)
        run(copy);
    else
        groups.back().push_back(copy);
}

static void copy_4(float *to, const float *from, bool there)
{
    begin({to, from, 1, there});
}

static void copy_16(float *to, const float *from, bool there)
{
    begin({to, from, 4, there});
}

static void copies_end()
{
    groups.emplace_back();
}

// The last group is the one that has not ended.
template <int MOST> static void copies_wait()
{
    for (; groups.size() > MOST + 1; groups.pop_front())
        for (const copy &copy : groups.front())
            run(copy);
}

#define WEIR_KERNELS_MATMUL_TENSOR_CUH // all of it is above
#include "kernels/matmul/matmul.cu"

struct launch {
    const float *a, *b;
    float *c;
    unsigned m, n, k;
    place block;
};

struct thread {
    const struct launch *launch;
    place at;
    pthread_t number;
};

static void *run_thread(void *data)
{
    const struct thread *thread = (const struct thread *)data;
    const struct launch *launch = thread->launch;
    threadIdx = thread->at;
    blockIdx = launch->block;
    groups.clear();
    groups.emplace_back();
    matmul(launch->a, launch->b, launch->c, launch->m, launch->n, launch->k);
    return nullptr;
}

static void run_block(const struct launch *launch)
{
    struct thread threads[MATMUL_ITEMS];
    pthread_barrier_init(&block_barrier, nullptr, MATMUL_ITEMS);
    for (struct warp &warp : warps)
        pthread_barrier_init(&warp.barrier, nullptr, 32);
    for (unsigned i = 0; i < MATMUL_ITEMS; i++) {
        threads[i] = {launch, {i % MATMUL_BLOCK_X, i / MATMUL_BLOCK_X, 0}, 0};
        pthread_create(&threads[i].number, nullptr, run_thread, &threads[i]);
    }
    for (struct thread &thread : threads)
        pthread_join(thread.number, nullptr);
    for (struct warp &warp : warps)
        pthread_barrier_destroy(&warp.barrier);
    pthread_barrier_destroy(&block_barrier);
}

unsigned matmul_on_host(const float *a, const float *b, float *c, unsigned m, unsigned n,
                        unsigned k, bool early)
{
    struct launch launch = {a, b, c, m, n, k, {0, 0, 0}};
    faults = 0;
    copies_are_early = early;
    for (launch.block.y = 0; launch.block.y * MATMUL_ROWS < m; launch.block.y++)
        for (launch.block.x = 0; launch.block.x * MATMUL_COLUMNS < n; launch.block.x++)
            run_block(&launch);
    return faults;
}
