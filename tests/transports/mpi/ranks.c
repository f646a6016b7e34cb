// One rank under mpirun, for mpi_test.sh: calls the transport's functions directly. The first argument
// names what to do, the second the library. Prints "ok" when all is as expected.
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/module/transport.h>

#include "base/clock.h"

#define SECOND UINT64_C(1000000000)
#define PATIENCE (120 * SECOND)

// The services of the front end.

static _Thread_local struct weir_error last;
static _Atomic long blocks;

static weir_status on_error(const struct weir_error *detail, size_t size)
{
    memcpy(&last, detail, size < sizeof last ? size : sizeof last);
    return detail->status;
}

static long allocations = -1; // that succeed from now on; -1: all

static void *on_allocate(size_t size)
{
    if (allocations == 0)
        return NULL;
    allocations -= allocations > 0;
    void *block = calloc(1, size);
    blocks += block != NULL;
    return block;
}

static void on_release(void *block)
{
    blocks -= block != NULL;
    free(block);
}

static const struct weir_host host = {.struct_size = sizeof host,
                                      .error = on_error,
                                      .allocate = on_allocate,
                                      .release = on_release};

static const struct weir_transport_ops *ops;
static void *state;
static uint32_t rank;
static uint32_t count;

static void expect(bool condition, const char *what, int line)
{
    if (condition)
        return;
    fprintf(stderr, "ranks.c:%d: rank %u: %s; the last error: %s\n", line, rank, what,
            last.message);
    abort();
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static weir_status open_library(const char *library)
{
    const struct weir_setting setting = {.text = library};
    const struct weir_setting *const settings[] = {&setting};
    ops = weir_module_query(WEIR_MODULE_ABI, &host)->transport;
    return ops->open(&host, settings, &state);
}

static uint32_t number_in(const char *first, const char *second)
{
    const char *text = getenv(first) ? getenv(first) : getenv(second);
    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static weir_status try_join(const char *rendezvous, uint64_t timeout_ns, void **out_group)
{
    const struct weir_transport_setup setup = {.struct_size = sizeof setup,
                                               .label = "grads",
                                               .rank = rank,
                                               .count = count,
                                               .rendezvous = rendezvous,
                                               .timeout_ns = timeout_ns,
                                               .file = "dir/join.c",
                                               .line = 5};
    return ops->join(state, &setup, out_group);
}

static void *join_all(void)
{
    void *group;
    uint32_t own;
    uint32_t all;
    EXPECT(try_join(NULL, PATIENCE, &group) == WEIR_OK);
    ops->place(group, &own, &all);
    EXPECT(own == rank && all == count);
    return group;
}

static uint64_t next;

static weir_status run(void *group, struct weir_transport_call call)
{
    const bool numbered =
        call.kind != WEIR_SEND && call.kind != WEIR_RECV && call.kind != WEIR_EXCHANGE;
    next += numbered;
    call.struct_size = sizeof call;
    call.number = next;
    call.timeout_ns = call.timeout_ns ? call.timeout_ns : PATIENCE;
    call.file = "app.c";
    return ops->run(group, &call);
}

// Collectives. Elements are small whole numbers, which all types hold and add exactly.

static double get(const void *memory, weir_datatype element, size_t i)
{
    switch (element) {
#define CASE(name, type) \
    case name:           \
        return (double)((const type *)memory)[i]
        CASE(WEIR_I8, int8_t);
        CASE(WEIR_U8, uint8_t);
        CASE(WEIR_I16, int16_t);
        CASE(WEIR_U16, uint16_t);
        CASE(WEIR_I32, int32_t);
        CASE(WEIR_U32, uint32_t);
        CASE(WEIR_I64, int64_t);
        CASE(WEIR_U64, uint64_t);
        CASE(WEIR_F32, float);
        CASE(WEIR_F64, double);
#undef CASE
    case WEIR_F16: {
        const unsigned bits = ((const uint16_t *)memory)[i];
        const int exponent = (int)(bits >> 10 & 31);
        const double value = exponent ? (1024 + (bits & 1023)) / 1024.0 : 0;
        return exponent > 15 ? value * (1 << (exponent - 15)) : value / (1 << (15 - exponent));
    }
    case WEIR_BF16: {
        const uint32_t bits = (uint32_t)((const uint16_t *)memory)[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    }
    return -1;
}

static void set(void *memory, weir_datatype element, size_t i, unsigned value)
{
    switch (element) {
#define CASE(name, type)                   \
    case name:                             \
        ((type *)memory)[i] = (type)value; \
        break
        CASE(WEIR_I8, int8_t);
        CASE(WEIR_U8, uint8_t);
        CASE(WEIR_I16, int16_t);
        CASE(WEIR_U16, uint16_t);
        CASE(WEIR_I32, int32_t);
        CASE(WEIR_U32, uint32_t);
        CASE(WEIR_I64, int64_t);
        CASE(WEIR_U64, uint64_t);
        CASE(WEIR_F32, float);
        CASE(WEIR_F64, double);
#undef CASE
    case WEIR_F16: // 0 to 7
        ((uint16_t *)memory)[i] =
            (uint16_t[]){0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}[value];
        break;
    case WEIR_BF16:
        ((uint16_t *)memory)[i] =
            (uint16_t[]){0, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0}[value];
        break;
    }
}

// Element i of what a rank reads; 1 to 3.
static unsigned value_of(uint32_t of, size_t i)
{
    return 1 + (unsigned)((of * 7 + i * 5 + i / 11) % 3);
}

static double reduced(weir_reduction reduction, size_t i)
{
    double result = value_of(0, i);
    for (uint32_t r = 1; r < count; r++) {
        const double value = value_of(r, i);
        if (reduction == WEIR_SUM || reduction == WEIR_AVERAGE)
            result += value;
        else if (reduction == WEIR_PRODUCT)
            result *= value;
        else if (reduction == WEIR_MINIMUM ? value < result : value > result)
            result = value;
    }
    return result;
}

static double averaged(weir_datatype element, double sum)
{
    const double value = sum / count;
    return element <= WEIR_U64 ? (double)(long long)value : value;
}

// One call of a kind: how many elements are read and written, and what comes of it.
struct shape {
    weir_collective kind;
    bool rooted;
    bool reads_all;  // n * size, else size
    bool writes_all; // the same
};

static const struct shape shapes[] = {
    {WEIR_ALL_REDUCE, false, false, false},    {WEIR_REDUCE, true, false, false},
    {WEIR_BROADCAST, true, false, false},      {WEIR_ALL_GATHER, false, false, true},
    {WEIR_REDUCE_SCATTER, false, true, false}, {WEIR_ALL_TO_ALL, false, true, true},
    {WEIR_GATHER, true, false, true},          {WEIR_SCATTER, true, true, false},
};

static double wanted(const struct shape *shape, const struct weir_transport_call *call, size_t i)
{
    const size_t size = (size_t)call->count;
    double value;
    if (size == 0)
        return 0;
    const size_t from = i / size;
    switch (shape->kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_REDUCE:
        value = reduced(call->reduction, i);
        return call->reduction == WEIR_AVERAGE ? averaged(call->element, value) : value;
    case WEIR_REDUCE_SCATTER:
        value = reduced(call->reduction, rank * size + i);
        return call->reduction == WEIR_AVERAGE ? averaged(call->element, value) : value;
    case WEIR_BROADCAST:
        return value_of(call->root, i);
    case WEIR_SCATTER:
        return value_of(call->root, rank * size + i);
    case WEIR_ALL_TO_ALL:
        return value_of((uint32_t)from, rank * size + i % size);
    default: // gathers
        return value_of((uint32_t)from, i % size);
    }
}

static bool is_near(double got, double value, weir_datatype element)
{
    const double difference = got > value ? got - value : value - got;
    return difference <= (element == WEIR_BF16 ? 0.05 : element == WEIR_F16 ? 0.01 : 1e-6);
}

static void check(const struct shape *shape, const struct weir_transport_call *call)
{
    const size_t written = (size_t)call->count * (shape->writes_all ? count : 1);
    for (size_t i = 0; i < written; i++)
        if (!is_near(get(call->dst, call->element, i), wanted(shape, call, i), call->element)) {
            fprintf(stderr,
                    "rank %u: %s of %s %s, %" PRIu64 " elements, root %u: element %zu is %g\n",
                    rank, weir_collective_name(shape->kind), weir_reduction_name(call->reduction),
                    weir_datatype_name(call->element), call->count, call->root, i,
                    get(call->dst, call->element, i));
            abort();
        }
}

static void run_one(void *group, const struct shape *shape, weir_datatype element,
                    weir_reduction reduction, size_t size, uint32_t root, bool in_place)
{
    const size_t bytes = weir_datatype_size(element);
    const size_t room = (size * count + 1) * bytes;
    char *src = calloc(1, room);
    char *dst = calloc(1, room);
    const bool reads =
        !shape->rooted || shape->kind == WEIR_REDUCE || shape->kind == WEIR_GATHER || rank == root;
    const bool writes = !shape->rooted || shape->kind == WEIR_BROADCAST ||
                        shape->kind == WEIR_SCATTER || rank == root;
    char *from = src;
    char *to = dst;
    if (in_place && reads && writes) {
        from = shape->writes_all && !shape->reads_all ? dst + rank * size * bytes : dst;
        to = shape->reads_all && !shape->writes_all ? dst + rank * size * bytes : dst;
    }
    for (size_t i = 0; reads && i < size * (shape->reads_all ? count : 1); i++)
        set(from, element, i, value_of(rank, i));
    const struct weir_transport_call call = {.kind = shape->kind,
                                             .element = element,
                                             .reduction = reduction,
                                             .root = root,
                                             .count = size,
                                             .src = reads ? from : NULL,
                                             .dst = writes ? to : NULL,
                                             .line = __LINE__};
    EXPECT(run(group, call) == WEIR_OK);
    if (writes)
        check(shape, &call);
    free(src);
    free(dst);
}

static void do_collectives(void)
{
    static const size_t sizes[] = {0, 1, 7, 3001};
    void *group = join_all();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (weir_datatype element = WEIR_I8; element <= WEIR_F64; element++)
            for (weir_reduction reduction = WEIR_SUM; reduction <= WEIR_AVERAGE; reduction++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                    for (int in_place = 0; in_place < 2; in_place++) {
                        const bool reduces = s == 0 || s == 1 || s == 4;
                        if (reduces || reduction == WEIR_SUM)
                            run_one(group, &shapes[s], element, reduction, sizes[i],
                                    (uint32_t)(i % count), in_place);
                    }
    // Above what is moved at once.
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int in_place = 0; in_place < 2; in_place++)
            run_one(group, &shapes[s], WEIR_F32, WEIR_SUM, 600001, count - 1, in_place);
    EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_BARRIER}) == WEIR_OK);
    ops->leave(group);
}

// The order of additions is that of ranks, whatever the size: the bits are those of a plain loop.
static void do_order(void)
{
    enum {
        SIZE = 70001
    };
    static float src[SIZE];
    static float dst[SIZE];
    void *group = join_all();
    const size_t sizes[] = {5, SIZE};
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < sizes[s]; i++)
            src[i] = 1.0f / (float)(1 + rank * 31 + i % 977);
        EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                       .element = WEIR_F32,
                                                       .reduction = WEIR_SUM,
                                                       .count = sizes[s],
                                                       .src = src,
                                                       .dst = dst}) == WEIR_OK);
        for (size_t i = 0; i < sizes[s]; i++) {
            float sum = 1.0f / (float)(1 + i % 977);
            for (uint32_t r = 1; r < count; r++)
                sum += 1.0f / (float)(1 + r * 31 + i % 977);
            // No sum is zero or no number, so equal values are equal bits.
            EXPECT(sum == dst[i]);
        }
    }
    ops->leave(group);
}

// Messages: a ring of large ones at once, several to one peer, to itself, and pairs.
static void do_messages(void)
{
    enum {
        SIZE = 200003
    };
    static uint32_t out[SIZE];
    static uint32_t in[SIZE];
    uint8_t small[4] = {0};
    uint8_t none = 0;
    void *group = join_all();
    const uint32_t right = (rank + 1) % count;
    const uint32_t left = (rank + count - 1) % count;
    for (size_t i = 0; i < SIZE; i++)
        out[i] = rank * 1000000 + (uint32_t)i;
    uint8_t mine[2] = {(uint8_t)rank, (uint8_t)(100 + rank)};
    const struct weir_transport_part parts[] = {
        {sizeof *parts, right, false, WEIR_U32, SIZE, out},
        {sizeof *parts, left, true, WEIR_U32, SIZE, in},
        {sizeof *parts, right, false, WEIR_U8, 1, &mine[0]},
        {sizeof *parts, right, false, WEIR_U8, 1, &mine[1]},
        {sizeof *parts, left, true, WEIR_U8, 1, &small[0]},
        {sizeof *parts, left, true, WEIR_U8, 1, &small[1]},
        {sizeof *parts, rank, true, WEIR_U8, 1, &small[2]},
        {sizeof *parts, rank, false, WEIR_U8, 1, &mine[1]},
        {sizeof *parts, right, false, WEIR_F64, 0, &none},
        {sizeof *parts, left, true, WEIR_F64, 0, &none},
    };
    for (int turn = 0; turn < 3; turn++)
        EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_EXCHANGE,
                                                       .parts = parts,
                                                       .part_count = 10}) == WEIR_OK);
    for (size_t i = 0; i < SIZE; i++)
        EXPECT(in[i] == left * 1000000 + (uint32_t)i);
    EXPECT(small[0] == left && small[1] == 100 + left && small[2] == 100 + rank);
    const struct weir_transport_call message = {.kind = rank == 0 ? WEIR_SEND : WEIR_RECV,
                                                .element = WEIR_U32,
                                                .count = SIZE,
                                                .root = 1 - rank,
                                                .src = rank == 0 ? out : NULL,
                                                .dst = rank == 0 ? NULL : in};
    if (rank < 2)
        EXPECT(run(group, message) == WEIR_OK);
    EXPECT(rank != 1 || in[SIZE - 1] == SIZE - 1);
    ops->leave(group);
}

static void *split(void *group, int32_t color, int32_t key)
{
    void *part;
    const struct weir_transport_split params = {.struct_size = sizeof params,
                                                .label = "part",
                                                .color = color,
                                                .key = key,
                                                .number = ++next,
                                                .timeout_ns = PATIENCE,
                                                .file = "app.c",
                                                .line = __LINE__};
    EXPECT(ops->split(group, &params, &part) == WEIR_OK);
    return part;
}

static uint64_t sum_of_ranks(void *group, uint64_t value)
{
    uint64_t sum = 0;
    EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                   .element = WEIR_U64,
                                                   .reduction = WEIR_SUM,
                                                   .count = 1,
                                                   .src = &value,
                                                   .dst = &sum}) == WEIR_OK);
    return sum;
}

// Parts, a rank without one, the order by keys, a part that outlives the whole, and many of them.
static void do_groups(void)
{
    uint32_t own;
    uint32_t all;
    void *group = join_all();
    void *again = join_all();
    const uint64_t total = (uint64_t)count * (count - 1) / 2;
    void *halves = split(group, (int32_t)(rank % 2), 0);
    next = 0;
    EXPECT(sum_of_ranks(halves, 1) == count / 2 + (rank % 2 == 0 && count % 2));
    const uint64_t of_halves = next;
    next = 0;
    void *others = split(again, rank == 0 ? WEIR_NO_COLOR : 3, -(int32_t)rank);
    EXPECT((others == NULL) == (rank == 0));
    ops->leave(group);
    if (others) {
        ops->place(others, &own, &all);
        EXPECT(all == count - 1 && own == count - 1 - rank);
        next = 0;
        EXPECT(sum_of_ranks(others, rank) == total);
        ops->leave(others);
    }
    next = of_halves;
    EXPECT(sum_of_ranks(halves, 1) > 0);
    ops->leave(halves);
    next = 1;
    long before = 0;
    for (int i = 0; i < 40; i++) {
        void *copy = split(again, 0, 0);
        if (i % 20 == 0) {
            const uint64_t whole = next;
            next = 0;
            EXPECT(sum_of_ranks(copy, rank) == total);
            next = whole;
        }
        ops->leave(copy);
        before = i == 10 ? blocks : before;
    }
    EXPECT(blocks < before + 64);
    ops->leave(again);
}

// Failures: this rank's message is printed, and mpi_test.sh compares it.

static void report(weir_status status)
{
    printf("%u: %s: %s\n", rank, weir_status_name(status), last.message);
    fflush(stdout);
}

static struct weir_transport_call sum_call(int line)
{
    static float src[8];
    static float dst[8];
    return (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                        .element = WEIR_F32,
                                        .reduction = WEIR_SUM,
                                        .count = 8,
                                        .src = src,
                                        .dst = dst,
                                        .line = line};
}

// All ranks do `line` 10, then rank 1 something else.
static void do_mismatch(const char *what)
{
    static double many[64];
    void *group = join_all();
    EXPECT(run(group, sum_call(10)) == WEIR_OK);
    struct weir_transport_call call = sum_call(20);
    if (rank == 1) {
        call.line = 30;
        call.src = call.dst = many;
        call.kind = strcmp(what, "kind") == 0 ? WEIR_BARRIER : call.kind;
        call.count = strcmp(what, "count") == 0 ? 9 : call.count;
        call.element = strcmp(what, "datatype") == 0 ? WEIR_F64 : call.element;
        call.reduction = strcmp(what, "reduction") == 0 ? WEIR_MAXIMUM : call.reduction;
    }
    if (strcmp(what, "root") == 0) {
        call.kind = WEIR_BROADCAST;
        call.root = rank == 1;
    }
    EXPECT(run(group, call) == WEIR_ERROR_COMM);
    report(last.status);
    // The first cause stays.
    EXPECT(run(group, sum_call(40)) == WEIR_ERROR_COMM);
    report(last.status);
    ops->leave(group);
}

// Rank 1 sends another count than rank 0 receives.
static void do_message_mismatch(void)
{
    static float memory[16];
    void *group = join_all();
    const struct weir_transport_call call = {.kind = rank == 1 ? WEIR_SEND : WEIR_RECV,
                                             .element = WEIR_F32,
                                             .count = rank == 1 ? 3 : 4,
                                             .root = 1 - rank,
                                             .src = rank == 1 ? memory : NULL,
                                             .dst = rank == 1 ? NULL : memory,
                                             .line = 20};
    if (rank < 2)
        EXPECT(run(group, call) == WEIR_ERROR_COMM || rank == 1);
    EXPECT(run(group, sum_call(40)) == WEIR_ERROR_COMM);
    report(last.status);
    ops->leave(group);
}

// The rank `absent` does not come in time: it is late, leaves, or is stopped.
static void do_absent(const char *how, uint32_t absent)
{
    int32_t process = getpid();
    int32_t processes[16];
    void *group = join_all();
    EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_ALL_GATHER,
                                                   .element = WEIR_I32,
                                                   .count = 1,
                                                   .src = &process,
                                                   .dst = processes,
                                                   .line = 10}) == WEIR_OK);
    const bool leaves = strcmp(how, "leave") == 0;
    struct weir_transport_call call = sum_call(20);
    // Rank 0 finds out which rank is missing, and tells the others.
    call.timeout_ns = leaves || (rank && absent) ? PATIENCE : SECOND;
    if (rank == absent && leaves) {
        ops->leave(group);
        return;
    }
    if (rank == absent && strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    if (rank != absent || strcmp(how, "late") != 0)
        EXPECT(run(group, call) == WEIR_ERROR_COMM);
    if (rank != absent) {
        report(last.status);
        kill(processes[absent], SIGCONT);
    } else if (strcmp(how, "late") == 0) {
        // Until the others have told it.
        EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_RECV,
                                                       .element = WEIR_U8,
                                                       .count = 1,
                                                       .root = 1 - rank,
                                                       .dst = &process}) == WEIR_ERROR_COMM);
        report(last.status);
    } else {
        report(last.status);
    }
    ops->leave(group);
}

static void *abort_soon(void *group)
{
    weir_clock_sleep_ns(SECOND / 5);
    ops->abort(group, "the disk is full");
    ops->abort(group, "a second reason");
    return NULL;
}

// Rank 1 aborts from another thread, while all wait for rank 2, or in a receive.
static void do_abort(bool receives)
{
    uint8_t byte = 0;
    void *group = join_all();
    pthread_t thread = pthread_self();
    if (rank == 1)
        EXPECT(pthread_create(&thread, NULL, abort_soon, group) == 0);
    struct weir_transport_call call = sum_call(20);
    if (receives || rank == 2)
        call = (struct weir_transport_call){.kind = WEIR_RECV,
                                            .element = WEIR_U8,
                                            .count = 1,
                                            .root = (rank + 1) % 3,
                                            .dst = &byte};
    EXPECT(run(group, call) == WEIR_ERROR_COMM);
    report(last.status);
    if (rank == 1)
        pthread_join(thread, NULL);
    ops->leave(group);
}

// Calls of all kinds until one fails.
static void do_fail(void)
{
    static const weir_collective kinds[] = {WEIR_ALL_REDUCE, WEIR_BROADCAST,  WEIR_ALL_GATHER,
                                            WEIR_GATHER,     WEIR_ALL_TO_ALL, WEIR_SCATTER};
    float src[16] = {0};
    float dst[16];
    void *group = join_all();
    weir_status status = WEIR_OK;
    for (int i = 0; i < 18 && status == WEIR_OK; i++)
        status = run(group, (struct weir_transport_call){.kind = kinds[i % 6],
                                                         .element = WEIR_F32,
                                                         .reduction = WEIR_SUM,
                                                         .count = 4,
                                                         .src = src,
                                                         .dst = dst});
    EXPECT(status < 0);
    report(status);
    ops->leave(group);
}

// MPI that the program starts itself, and ends.
static void do_own(const char *library, const char *how)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*init)(int *, char ***, int, int *);
    int (*finalize)(void);
    const int multiple = strstr(library, "mpi_abi") ? 4096 : 3;
    int level = strcmp(how, "single") == 0 ? 0 : multiple;
    void *group;
    EXPECT(handle);
    void *symbol = dlsym(handle, "MPI_Init_thread");
    memcpy(&init, &symbol, sizeof init);
    symbol = dlsym(handle, "MPI_Finalize");
    memcpy(&finalize, &symbol, sizeof finalize);
    EXPECT(init(NULL, NULL, level, &level) == 0);
    if (strcmp(how, "ended") == 0)
        EXPECT(finalize() == 0);
    // The library that is loaded is found without its name.
    EXPECT(open_library("") == WEIR_OK);
    const weir_status status = try_join(NULL, PATIENCE, &group);
    if (strcmp(how, "threads") != 0) {
        report(status);
    } else {
        EXPECT(status == WEIR_OK);
        EXPECT(sum_of_ranks(group, 1) == count);
        ops->leave(group);
    }
    ops->close(state);
    if (strcmp(how, "ended") != 0)
        EXPECT(finalize() == 0);
}

// Rank 1 has no memory left when a group is made, or for a message: all ranks tell it.
static void do_memory(long enough, bool in_message)
{
    uint8_t byte = 0;
    void *part;
    void *group = join_all();
    const struct weir_transport_split params = {.struct_size = sizeof params,
                                                .label = "part",
                                                .number = 1,
                                                .timeout_ns = PATIENCE,
                                                .file = "app.c",
                                                .line = 20};
    const struct weir_transport_call call = {.kind = WEIR_RECV,
                                             .element = WEIR_U8,
                                             .count = 1,
                                             .root = (rank + 1) % count,
                                             .dst = &byte,
                                             .line = 20};
    const long before = blocks;
    allocations = rank == 1 ? enough : -1;
    EXPECT((in_message ? run(group, call) : ops->split(group, &params, &part)) == WEIR_ERROR_COMM);
    allocations = -1;
    EXPECT(rank != 1 || blocks <= before + 1); // what tells the others may be under way
    report(last.status);
    ops->leave(group);
}

static void do_wrong_place(void)
{
    void *group;
    rank = rank == 1 ? 5 : rank;
    report(try_join(NULL, PATIENCE, &group));
}

static void do_missing(void)
{
    void *group;
    if (rank == 0)
        report(try_join(NULL, SECOND, &group));
    else
        weir_clock_sleep_ns(4 * SECOND);
    // MPI has been started by rank 0 only, and would wait for the others at its end.
    fflush(stdout);
    _exit(0);
}

// For measurements by hand: `mpirun -n 2 ranks bandwidth ""`.
static void do_bandwidth(void)
{
    enum {
        BYTES = 16 << 20
    };
    float *memory = calloc(2, BYTES);
    void *group = join_all();
    for (size_t bytes = 4; bytes <= BYTES; bytes *= 16) {
        const int turns = bytes > 65536 ? 20 : 500;
        uint64_t began = 0;
        for (int i = -2; i < turns; i++) {
            began = i == 0 ? weir_clock_now_ns() : began;
            EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                           .element = WEIR_F32,
                                                           .reduction = WEIR_SUM,
                                                           .count = bytes / 4,
                                                           .src = memory,
                                                           .dst = memory}) == WEIR_OK);
        }
        if (rank == 0)
            printf("%zu B: %.1f us\n", bytes,
                   (double)(weir_clock_now_ns() - began) / 1000.0 / turns);
    }
    free(memory);
    ops->leave(group);
}

static bool do_in_group(const char *what)
{
    if (strcmp(what, "collectives") == 0)
        do_collectives();
    else if (strcmp(what, "order") == 0)
        do_order();
    else if (strcmp(what, "messages") == 0)
        do_messages();
    else if (strcmp(what, "groups") == 0)
        do_groups();
    else if (strcmp(what, "bandwidth") == 0)
        do_bandwidth();
    else if (strncmp(what, "other-", 6) == 0)
        do_mismatch(what + 6);
    else if (strcmp(what, "message") == 0)
        do_message_mismatch();
    else if (strcmp(what, "late") == 0 || strcmp(what, "leave") == 0 || strcmp(what, "stop") == 0)
        do_absent(what, 1);
    else if (strcmp(what, "late-0") == 0)
        do_absent("late", 0);
    else if (strcmp(what, "abort") == 0 || strcmp(what, "abort-receive") == 0)
        do_abort(what[5] == '-');
    else if (strncmp(what, "memory-", 7) == 0)
        do_memory(strtol(what + 7, NULL, 10), false);
    else if (strncmp(what, "message-memory-", 15) == 0)
        do_memory(strtol(what + 15, NULL, 10), true);
    else if (strcmp(what, "fail") == 0)
        do_fail();
    else if (strcmp(what, "place") == 0)
        do_wrong_place();
    else if (strcmp(what, "missing") == 0)
        do_missing();
    else
        return false;
    return true;
}

// mpirun may put a line of one rank into that of another, so each has a file of its own.
static bool redirect_output(void)
{
    char path[4096];
    const char *folder = getenv("RANKS_OUTPUT");
    if (!folder)
        return true;
    snprintf(path, sizeof path, "%s/%u", folder, rank);
    return freopen(path, "w", stdout);
}

int main(int argc, char **argv)
{
    void *group;
    if (argc < 3)
        return 2;
    rank = number_in("OMPI_COMM_WORLD_RANK", "PMI_RANK");
    count = number_in("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    if (!redirect_output())
        return 2;
    if (strncmp(argv[1], "own-", 4) == 0) {
        do_own(argv[2], argv[1] + 4);
        return 0;
    }
    if (strcmp(argv[1], "load") == 0) {
        rank = 0;
        const weir_status status = open_library(argv[2]);
        report(status == WEIR_OK ? try_join(argc > 3 ? argv[3] : NULL, PATIENCE, &group) : status);
        return 0;
    }
    EXPECT(open_library(argv[2]) == WEIR_OK);
    if (!do_in_group(argv[1]))
        return 2;
    ops->close(state);
    if (rank == 0)
        printf("ok\n");
    return 0;
}
