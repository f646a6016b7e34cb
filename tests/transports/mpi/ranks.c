// One rank under mpirun, for mpi_test.sh: calls the transport's functions directly. The first argument
// names what to do, one after the other with commas between, the second the library. Prints "ok" when all is as
// expected, and of a failure this rank's message, which mpi_test.sh compares.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/comm/matrix.h"
#include "tests/transports/rank.h"

#define PATIENCE (2 * RANKS_PATIENCE)

static void *state;
static uint32_t number; // this rank's
static uint32_t count;

// Ends the program if the condition does not hold.
#define EXPECT(condition) expect(condition, #condition, __LINE__)
static void expect(bool condition, const char *what, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: rank %u: %s; the last error: %s\n", __FILE__, line, number, what,
            test_host_state()->error.message);
    abort();
}

void *ranks_state(void)
{
    return state;
}

static weir_status open_library(const char *library)
{
    const struct weir_setting setting = {.text = library};
    const struct weir_setting *const settings[] = {&setting};
    return ranks_ops()->open(&test_host, settings, &state);
}

static weir_status try_join(const char *rendezvous, uint64_t timeout_ns, struct rank *out_rank)
{
    const struct weir_transport_setup setup = {.struct_size = sizeof setup,
                                               .label = "grads",
                                               .count = count,
                                               .rendezvous = rendezvous,
                                               .timeout_ns = timeout_ns,
                                               .file = "dir/join.c",
                                               .line = 5};
    *out_rank = (struct rank){.rank = number};
    return rank_join(out_rank, &setup);
}

static struct rank join_all(void)
{
    struct rank rank;
    EXPECT(try_join(NULL, PATIENCE, &rank) == WEIR_OK);
    ranks_ops()->place(rank.group, &rank.rank, &rank.count);
    EXPECT(rank.rank == number && rank.count == count);
    return rank;
}

static weir_status run(struct rank *rank, struct weir_transport_call call)
{
    call.timeout_ns = call.timeout_ns ? call.timeout_ns : PATIENCE;
    return rank_call(rank, call);
}

// The conformance matrix, with elements that are small, and one size above what is moved at once.

static char *allocate(size_t size)
{
    char *memory = calloc(1, size);
    EXPECT(memory);
    return memory;
}

static bool run_case(void *rank, const struct matrix_case *it)
{
    size_t src_offset;
    size_t dst_offset;
    char text[256] = "";
    const size_t read = matrix_read(it, number, &src_offset);
    const size_t written = matrix_written(it, number, &dst_offset);
    char *src = allocate(count * MATRIX_BYTES);
    char *dst = it->in_place ? src : allocate(count * MATRIX_BYTES);
    matrix_fill(it, number, src + src_offset);
    struct weir_transport_call call =
        call_of(it->kind, it->element, it->count,
                read > 0 || it->count == 0 ? src + src_offset : NULL,
                written > 0 || it->count == 0 ? dst + dst_offset : NULL);
    call.reduction = it->reduction;
    call.root = matrix_root(it);
    call.line = __LINE__;
    EXPECT(run(rank, call) == WEIR_OK);
    const bool right =
        written == 0 || matrix_check(it, number, dst + dst_offset, text, sizeof text);
    if (!right)
        fprintf(stderr, "%s\n", text);
    if (dst != src)
        free(dst);
    free(src);
    return right;
}

static void do_collectives(void)
{
    struct rank rank = join_all();
    EXPECT(matrix_each(count, run_case, &rank));
    EXPECT(rank_barrier(&rank) == WEIR_OK);
    rank_leave(&rank);
}

static void do_call(weir_status (*call)(struct rank *rank))
{
    struct rank rank = join_all();
    EXPECT(call(&rank) == WEIR_OK);
    rank_leave(&rank);
}

// Three times, and then one message of two ranks.
static weir_status pass_on(struct rank *rank)
{
    uint64_t numbers[] = {7 + rank->rank, 0};
    weir_status status = WEIR_OK;
    for (int turn = 0; turn < 3 && status == WEIR_OK; turn++)
        status = rank_pass_on(rank);
    struct weir_transport_call message = rank->rank == 0
                                             ? call_of(WEIR_SEND, WEIR_U64, 1, &numbers[0], NULL)
                                             : call_of(WEIR_RECV, WEIR_U64, 1, NULL, &numbers[1]);
    message.root = 1 - rank->rank;
    if (status == WEIR_OK && rank->rank < 2)
        status = run(rank, message);
    return status == WEIR_OK && rank->rank == 1 && numbers[1] != 7 ? WEIR_ERROR_INVALID : status;
}

static struct rank split(struct rank *rank, int32_t color, int32_t key)
{
    struct rank part = {.rank = 0};
    EXPECT(rank_split(rank, (struct weir_transport_split){.color = color, .key = key},
                      &part.group) == WEIR_OK);
    if (part.group)
        ranks_ops()->place(part.group, &part.rank, &part.count);
    return part;
}

static uint64_t sum_of_ranks(struct rank *rank, uint64_t value)
{
    uint64_t sum = 0;
    EXPECT(run(rank, call_of(WEIR_ALL_REDUCE, WEIR_U64, 1, &value, &sum)) == WEIR_OK);
    return sum;
}

// Parts, a rank without one, the order by keys, a part that outlives the whole, and many of them.
static void do_groups(void)
{
    struct rank whole = join_all();
    struct rank again = join_all();
    const uint64_t total = (uint64_t)count * (count - 1) / 2;
    struct rank half = split(&whole, (int32_t)(number % 2), 0);
    EXPECT(sum_of_ranks(&half, 1) == count / 2 + (number % 2 == 0 && count % 2));
    struct rank other = split(&again, number == 0 ? WEIR_NO_COLOR : 3, -(int32_t)number);
    EXPECT((other.group == NULL) == (number == 0));
    rank_leave(&whole);
    if (other.group) {
        EXPECT(other.count == count - 1 && other.rank == count - 1 - number);
        EXPECT(sum_of_ranks(&other, number) == total);
    }
    rank_leave(&other);
    EXPECT(sum_of_ranks(&half, 1) > 0);
    rank_leave(&half);
    long before = 0;
    for (int i = 0; i < 40; i++) {
        struct rank copy = split(&again, 0, 0);
        if (i % 20 == 0)
            EXPECT(sum_of_ranks(&copy, number) == total);
        rank_leave(&copy);
        before = i == 10 ? test_host_blocks() : before;
    }
    EXPECT(test_host_blocks() < before + 64);
    rank_leave(&again);
}

// Failures.

static void report(weir_status status)
{
    printf("%u: %s: %s\n", number, weir_status_name(status), test_host_state()->error.message);
    fflush(stdout);
}

static struct weir_transport_call sum_call(int line)
{
    static float src[8];
    static float dst[8];
    struct weir_transport_call call = call_of(WEIR_ALL_REDUCE, WEIR_F32, 8, src, dst);
    call.line = line;
    return call;
}

// A receive of one byte from that rank.
static struct weir_transport_call receive_call(uint32_t peer)
{
    static uint8_t byte;
    struct weir_transport_call call = call_of(WEIR_RECV, WEIR_U8, 1, NULL, &byte);
    call.root = peer;
    return call;
}

// All ranks do `line` 10, then `odd` another kind. What may differ else is in tests/transports/local/failures_test.c.
static void do_mismatch(uint32_t odd)
{
    struct rank rank = join_all();
    EXPECT(run(&rank, sum_call(10)) == WEIR_OK);
    struct weir_transport_call call = sum_call(number == odd ? 30 : 20);
    if (number == odd)
        call.kind = WEIR_BARRIER;
    EXPECT(run(&rank, call) == WEIR_ERROR_COMM);
    report(rank.error.status);
    // The first cause stays.
    EXPECT(run(&rank, sum_call(40)) == WEIR_ERROR_COMM);
    report(rank.error.status);
    rank_leave(&rank);
}

// Rank 1 sends another count than number 0 receives.
static void do_message_mismatch(void)
{
    static float memory[16];
    struct rank rank = join_all();
    struct weir_transport_call call = number == 1 ? call_of(WEIR_SEND, WEIR_F32, 3, memory, NULL)
                                                  : call_of(WEIR_RECV, WEIR_F32, 4, NULL, memory);
    call.root = 1 - number;
    call.line = 20;
    if (number < 2)
        EXPECT(run(&rank, call) == WEIR_ERROR_COMM || number == 1);
    EXPECT(run(&rank, sum_call(40)) == WEIR_ERROR_COMM);
    report(rank.error.status);
    rank_leave(&rank);
}

// The rank `absent` does not come in time: it is late, leaves, or is stopped.
static void do_absent(const char *how, uint32_t absent)
{
    int32_t process = getpid();
    int32_t processes[16];
    struct rank rank = join_all();
    struct weir_transport_call call = call_of(WEIR_ALL_GATHER, WEIR_I32, 1, &process, processes);
    call.line = 10;
    EXPECT(run(&rank, call) == WEIR_OK);
    const bool leaves = strcmp(how, "leave") == 0;
    call = sum_call(20);
    // Rank 0 finds out which rank is missing, and tells the others.
    call.timeout_ns = leaves || (number && absent) ? PATIENCE : RANKS_SECOND;
    if (number == absent && leaves) {
        rank_leave(&rank);
        return;
    }
    if (number == absent && strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    if (number == absent && strcmp(how, "late") == 0)
        call = receive_call(1 - number); // until the others have told it
    EXPECT(run(&rank, call) == WEIR_ERROR_COMM);
    report(rank.error.status);
    if (number != absent)
        kill(processes[absent], SIGCONT);
    rank_leave(&rank);
}

static void *abort_soon(void *group)
{
    weir_clock_sleep_ns(RANKS_SECOND / 5);
    ranks_ops()->abort(group, "the disk is full");
    ranks_ops()->abort(group, "a second reason");
    return NULL;
}

// Rank 1 aborts from another thread, while all wait for rank 2, or in a receive.
static void do_abort(bool receives)
{
    struct rank rank = join_all();
    pthread_t thread = pthread_self();
    if (number == 1)
        EXPECT(pthread_create(&thread, NULL, abort_soon, rank.group) == 0);
    EXPECT(run(&rank, receives || number == 2 ? receive_call((number + 1) % 3) : sum_call(20)) ==
           WEIR_ERROR_COMM);
    report(rank.error.status);
    if (number == 1)
        pthread_join(thread, NULL);
    rank_leave(&rank);
}

// Calls of all kinds until one fails.
static void do_fail(void)
{
    static const weir_collective kinds[] = {WEIR_ALL_REDUCE, WEIR_BROADCAST,  WEIR_ALL_GATHER,
                                            WEIR_GATHER,     WEIR_ALL_TO_ALL, WEIR_SCATTER};
    float src[16] = {0};
    float dst[16];
    struct rank rank = join_all();
    weir_status status = WEIR_OK;
    for (int i = 0; i < 18 && status == WEIR_OK; i++)
        status = run(&rank, call_of(kinds[i % 6], WEIR_F32, 4, src, dst));
    EXPECT(status < 0);
    report(status);
    rank_leave(&rank);
}

// MPI that the program starts itself, and ends.
static void do_own(const char *library, const char *how)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*init)(int *, char ***, int, int *);
    int (*finalize)(void);
    const int multiple = strstr(library, "mpi_abi") ? 4096 : 3;
    int level = strcmp(how, "single") == 0 ? 0 : multiple;
    struct rank rank;
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
    const weir_status status = try_join(NULL, PATIENCE, &rank);
    if (strcmp(how, "threads") != 0) {
        report(status);
    } else {
        EXPECT(status == WEIR_OK);
        EXPECT(sum_of_ranks(&rank, 1) == count);
        rank_leave(&rank);
    }
    ranks_ops()->close(state);
    if (strcmp(how, "ended") != 0)
        EXPECT(finalize() == 0);
}

// Rank 1 has no memory left when a group is made, or for a message: all ranks tell it.
static void do_memory(long enough, bool in_message)
{
    void *part;
    struct rank rank = join_all();
    struct weir_transport_call call = receive_call((number + 1) % count);
    call.line = 20;
    const long before = test_host_blocks();
    test_host_state()->left = number == 1 ? enough : -1;
    EXPECT((in_message ? run(&rank, call)
                       : rank_split(&rank, (struct weir_transport_split){.key = 0}, &part)) ==
           WEIR_ERROR_COMM);
    test_host_state()->left = -1;
    EXPECT(number != 1 ||
           test_host_blocks() <= before + 1); // what tells the others may be under way
    report(rank.error.status);
    rank_leave(&rank);
}

static void do_wrong_place(void)
{
    struct rank rank;
    number = number == 1 ? 5 : number;
    report(try_join(NULL, PATIENCE, &rank));
}

static void do_missing(void)
{
    struct rank rank;
    if (number == 0)
        report(try_join(NULL, RANKS_SECOND, &rank));
    else
        weir_clock_sleep_ns(4 * RANKS_SECOND);
    // MPI has been started by rank 0 only, and would wait for the others at its end.
    fflush(stdout);
    _exit(0);
}

// Rank 1 comes too late to a second communicator.
static void do_late_join(void)
{
    struct rank second;
    struct rank rank = join_all();
    if (number == 1)
        weir_clock_sleep_ns(2 * RANKS_SECOND);
    const weir_status status = try_join(NULL, RANKS_SECOND, &second);
    EXPECT(status == WEIR_ERROR_COMM);
    EXPECT(strstr(second.error.remedy, "create the communicator on all ranks"));
    report(status);
    rank_leave(&rank);
}

static void do_named(const char *what)
{
    static const struct {
        const char *name;
        void (*act)(void);
        weir_status (*call)(struct rank *rank); // of all ranks
    } acts[] = {
        {"collectives", do_collectives, NULL},
        {"order", NULL, rank_sum_in_order},
        {"large", NULL, rank_call_large},
        {"messages", NULL, pass_on},
        {"groups", do_groups, NULL},
        {"message", do_message_mismatch, NULL},
        {"fail", do_fail, NULL},
        {"place", do_wrong_place, NULL},
        {"missing", do_missing, NULL},
        {"late-join", do_late_join, NULL},
    };
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strcmp(what, acts[i].name) == 0) {
            if (acts[i].act)
                acts[i].act();
            else
                do_call(acts[i].call);
            return;
        }
    if (strncmp(what, "other-kind", 10) == 0)
        do_mismatch(what[10] ? 0 : 1);
    else if (strncmp(what, "abort", 5) == 0)
        do_abort(what[5] == '-');
    else if (strncmp(what, "memory-", 7) == 0)
        do_memory(strtol(what + 7, NULL, 10), false);
    else if (strcmp(what, "message-memory") == 0)
        do_memory(0, true);
    else if (strcmp(what, "late-0") == 0)
        do_absent("late", 0);
    else // late, leave, stop
        do_absent(what, 1);
}

static uint32_t read_number(const char *first, const char *second)
{
    const char *text = getenv(first) ? getenv(first) : getenv(second);
    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

// mpirun may put a line of one rank into that of another, so each has a file of its own.
static bool redirect_output(void)
{
    char path[4096];
    const char *folder = getenv("RANKS_OUTPUT");
    if (!folder)
        return true;
    snprintf(path, sizeof path, "%s/%u", folder, number);
    return freopen(path, "w", stdout);
}

int main(int argc, char **argv)
{
    struct rank rank;
    if (argc < 3)
        return 2;
    number = read_number("OMPI_COMM_WORLD_RANK", "PMI_RANK");
    count = read_number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    if (!redirect_output())
        return 2;
    if (strncmp(argv[1], "own-", 4) == 0) {
        do_own(argv[2], argv[1] + 4);
        return 0;
    }
    if (strcmp(argv[1], "load") == 0) {
        number = 0;
        const weir_status status = open_library(argv[2]);
        report(status == WEIR_OK ? try_join(argc > 3 ? argv[3] : NULL, PATIENCE, &rank) : status);
        return 0;
    }
    EXPECT(open_library(argv[2]) == WEIR_OK);
    for (char *what = strtok(argv[1], ","); what; what = strtok(NULL, ","))
        do_named(what);
    ranks_ops()->close(state);
    if (number == 0)
        printf("ok\n");
    return 0;
}
