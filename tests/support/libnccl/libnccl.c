#define _GNU_SOURCE // RTLD_NOLOAD
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "fake.h"
#include "tests/support/libcuda/control.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(result, name, parameters) EXPORT result name parameters;
NCCL_SYMBOLS(DECLARE)
#undef DECLARE
extern EXPORT const struct weir_test_nccl weir_test_nccl;

static const char *const names[] = {
#define NAME(result, name, parameters) #name,
    NCCL_SYMBOLS(NAME)
#undef NAME
};

#define NAME_COUNT (sizeof names / sizeof *names)

#include "tests/support/calls.h"

enum {
    GROUP = 16
};

static struct fake_clique *cliques;
static long live;
static long next_id;
static int async_code;
static bool lazy;        // not blocking
static long in_progress; // questions that are answered so
static int failing_code = ncclSystemError;
static char held[40];
static bool holds_one;
static long waiting;
static long reliefs; // of creations that wait in vain

static bool gone;               // the process exits
static _Thread_local int depth; // of groups

static ncclResult_t admit(const char *name)
{
    if (gone) {
        fprintf(stderr, "%s is called while the process exits\n", name);
        abort();
    }
    const bool strikes = calls_strike(name);
    const bool passes = holds_one && waiting > 0;
    waiting += !passes && strcmp(held, name) == 0;
    pthread_cond_broadcast(&fake_changed);
    while (!passes && strcmp(held, name) == 0)
        pthread_cond_wait(&fake_changed, &fake_lock);
    return strikes ? (ncclResult_t)failing_code : ncclSuccess;
}

static ncclResult_t progress(ncclResult_t code)
{
    if (!lazy || code != ncclSuccess || depth > 0)
        return code;
    in_progress = 3;
    return ncclInProgress;
}

#define BEGIN                       \
    pthread_mutex_lock(&fake_lock); \
    ncclResult_t code = admit(__func__)
#define END                           \
    pthread_mutex_unlock(&fake_lock); \
    return code
// Of a call that NCCL may go on with.
#define END_LAZY           \
    code = progress(code); \
    END

ncclResult_t ncclGetVersion(int *version)
{
    const char *given = getenv("WEIR_TEST_NCCL_VERSION");
    BEGIN;
    *version = given ? (int)strtol(given, NULL, 10) : 22809;
    END;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    return code == ncclSuccess ? "no error" : "the fake's error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return "the fake was told to fail";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    BEGIN;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "fake-%ld-%ld", (long)getpid(), ++next_id);
    END;
}

static struct fake_clique *find_clique(const ncclUniqueId *id, int size)
{
    struct fake_clique *clique = cliques;
    while (clique && memcmp(clique->id, id->internal, sizeof clique->id) != 0)
        clique = clique->next;
    if (clique)
        return clique;
    clique = calloc(1, sizeof *clique);
    memcpy(clique->id, id->internal, sizeof clique->id);
    clique->count = size;
    clique->share = fake_share_open(clique->id);
    clique->next = cliques;
    cliques = clique;
    return clique;
}

// Aborted communicators, which a call that had begun on another thread may still name.
static struct ncclComm *dead;

static void end(struct ncclComm *comm)
{
    struct fake_clique *clique = comm->clique;
    while (comm->under_way > 0 && !fake_endless)
        pthread_cond_wait(&fake_changed, &fake_lock);
    clique->stuck = clique->stuck || comm->under_way > 0;
    live--;
    if (comm->aborted)
        comm->next_dead = dead, dead = comm;
    else
        free(comm);
    if (--clique->members > 0 || clique->stuck)
        return;
    struct fake_clique **at = &cliques;
    while (*at != clique)
        at = &(*at)->next;
    *at = clique->next;
    fake_share_close(clique->share);
    free(clique);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
    BEGIN;
    if (code == ncclSuccess) {
        struct fake_clique *clique = find_clique(&id, size);
        *comm = calloc(1, sizeof **comm);
        (*comm)->clique = clique;
        (*comm)->rank = rank;
        clique->joined++;
        clique->members++;
        live++;
        pthread_cond_broadcast(&fake_changed);
        const long begun = reliefs;
        // In a group the thread has more ranks to create.
        while (depth == 0 && !fake_share_folder() && clique->joined < size && begun == reliefs)
            pthread_cond_wait(&fake_changed, &fake_lock);
        if (fake_share_folder())
            fake_share_join(clique->share, size);
        else if (depth == 0 && clique->joined < size) {
            end(*comm);
            code = ncclSystemError;
        }
    }
    END_LAZY;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    BEGIN;
    end(comm);
    END;
}

// What is under way ends even if this call is held.
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    pthread_mutex_lock(&fake_lock);
    comm->aborted = true;
    pthread_cond_broadcast(&fake_changed);
    const ncclResult_t code = admit(__func__);
    end(comm);
    END;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    BEGIN;
    *out = in_progress > 0 ? ncclInProgress : (ncclResult_t)async_code;
    in_progress -= in_progress > 0;
    END;
}

// Calls.

static struct fake_message *copy_messages(const struct fake_message *from)
{
    struct fake_message *first = NULL;
    for (struct fake_message **at = &first; from; from = from->next, at = &(*at)->next) {
        *at = malloc(sizeof **at);
        if (!*at)
            abort();
        **at = *from;
        (*at)->next = NULL;
    }
    return first;
}

// For each launch of a graph.
static void *clone_call(void *user)
{
    const struct fake_call *call = user;
    struct fake_call *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *call;
    copy->messages = copy_messages(call->messages);
    pthread_mutex_lock(&fake_lock);
    call->comm->under_way++;
    pthread_mutex_unlock(&fake_lock);
    return copy;
}

static void drop_call(void *user)
{
    struct fake_call *call = user;
    fake_messages_drop(call->messages);
    free(call);
}

// A call that comes with the abort does nothing, nor does one in place of a rank that is alone.
static void enqueue(const struct fake_call *call, CUstream stream)
{
    static const struct weir_test_cuda *cuda;
    if (call->comm->aborted ||
        (call->comm->clique->count == 1 && call->src == call->dst && call->src)) {
        fake_messages_drop(call->messages);
        return;
    }
    if (!cuda) {
        void *handle = dlopen("tests/support/libcuda/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        handle = handle ? handle : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        cuda = handle ? dlsym(handle, WEIR_TEST_CUDA_SYMBOL) : NULL;
    }
    struct fake_call *copy = malloc(sizeof *copy);
    if (!cuda || !copy)
        abort();
    *copy = *call;
    call->comm->under_way++;
    // The fake libcuda has a lock of its own.
    pthread_mutex_unlock(&fake_lock);
    const bool captured = cuda->capture(stream, fake_meet, copy, clone_call, drop_call);
    if (!captured)
        cuda->enqueue(stream, fake_meet, copy);
    pthread_mutex_lock(&fake_lock);
    call->comm->under_way -= captured;
}

// The messages of a group, a call for each of its communicators.
static _Thread_local struct {
    struct fake_call call;
    CUstream stream;
} group[GROUP];
static _Thread_local int group_count;

static void end_group(void)
{
    for (int i = 0; i < group_count; i++)
        enqueue(&group[i].call, group[i].stream);
    group_count = 0;
}

ncclResult_t ncclGroupStart(void)
{
    BEGIN;
    depth++;
    END;
}

ncclResult_t ncclGroupEnd(void)
{
    BEGIN;
    if (--depth == 0)
        end_group();
    END_LAZY;
}

static struct fake_message **last_message(ncclComm_t comm, CUstream stream)
{
    int i = 0;
    while (i < group_count && group[i].call.comm != comm)
        i++;
    if (i == GROUP)
        abort();
    if (i == group_count) {
        group_count++;
        group[i].call = (struct fake_call){.kind = FAKE_MESSAGES, .comm = comm};
        group[i].stream = stream;
    }
    struct fake_message **at = &group[i].call.messages;
    while (*at)
        at = &(*at)->next;
    return at;
}

static void message(ncclComm_t comm, CUstream stream, bool receive, char *memory, size_t size,
                    int peer)
{
    struct fake_message **at = last_message(comm, stream);
    *at = calloc(1, sizeof **at);
    (*at)->receive = receive;
    (*at)->memory = memory;
    (*at)->size = size;
    (*at)->peer = peer;
    if (depth == 0)
        end_group();
}

ncclResult_t ncclSend(const void *src, size_t size, ncclDataType_t type, int peer, ncclComm_t comm,
                      CUstream stream)
{
    BEGIN;
    if (code == ncclSuccess)
        message(comm, stream, false, (char *)(uintptr_t)src, size * fake_size(type), peer);
    END_LAZY;
}

ncclResult_t ncclRecv(void *dst, size_t size, ncclDataType_t type, int peer, ncclComm_t comm,
                      CUstream stream)
{
    BEGIN;
    if (code == ncclSuccess)
        message(comm, stream, true, dst, size * fake_size(type), peer);
    END_LAZY;
}

#define CALL(...)                                          \
    BEGIN;                                                 \
    if (code == ncclSuccess && size > 0)                   \
        enqueue(&(struct fake_call){__VA_ARGS__}, stream); \
    END_LAZY

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t size, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t comm, CUstream stream)
{
    CALL(.kind = FAKE_ALL_REDUCE, .src = src, .dst = dst, .count = size, .type = type,
         .reduction = reduction, .comm = comm);
}

ncclResult_t ncclReduce(const void *src, void *dst, size_t size, ncclDataType_t type,
                        ncclRedOp_t reduction, int root, ncclComm_t comm, CUstream stream)
{
    CALL(.kind = FAKE_REDUCE, .src = src, .dst = dst, .count = size, .type = type,
         .reduction = reduction, .root = root, .comm = comm);
}

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t size, ncclDataType_t type, int root,
                           ncclComm_t comm, CUstream stream)
{
    CALL(.kind = FAKE_BROADCAST, .src = src, .dst = dst, .count = size, .type = type, .root = root,
         .comm = comm);
}

ncclResult_t ncclAllGather(const void *src, void *dst, size_t size, ncclDataType_t type,
                           ncclComm_t comm, CUstream stream)
{
    CALL(.kind = FAKE_ALL_GATHER, .src = src, .dst = dst, .count = size, .type = type,
         .comm = comm);
}

ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t size, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, CUstream stream)
{
    CALL(.kind = FAKE_REDUCE_SCATTER, .src = src, .dst = dst, .count = size, .type = type,
         .reduction = reduction, .comm = comm);
}

__attribute__((constructor)) static void read_failure(void)
{
    (void)calls_fail_by("WEIR_TEST_NCCL_FAIL");
}

// As the real one's parts are, it is taken apart when the process exits; then no call may come.
__attribute__((destructor)) static void go(void)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    pthread_mutex_lock(&fake_lock);
    gone = true;
    const bool used = live > 0;
    pthread_mutex_unlock(&fake_lock);
    if (used)
        nanosleep(&pause, NULL);
}

// Controls.

static void fail(const char *name, long n, int code)
{
    calls_fail(name, n);
    failing_code = code;
    reliefs += !name;
}

static void hold(const char *name, bool one)
{
    holds_one = one;
    snprintf(held, sizeof held, "%s", name ? name : "");
    waiting = 0;
}

LOCKED_VOID(set_fail, (const char *name, long n, int code), fail(name, n, code))
LOCKED_VOID(set_async_error, (int code), async_code = code)
LOCKED_VOID(set_hold, (const char *name), hold(name, false))
LOCKED_VOID(set_hold_one, (const char *name), hold(name, true))
LOCKED_VOID(set_endless, (bool endless), fake_endless = endless)
LOCKED_VOID(set_blocking, (bool blocking), lazy = !blocking)
LOCKED(long, get_live, (void), live)

static void await_held(void)
{
    pthread_mutex_lock(&fake_lock);
    while (waiting == 0)
        pthread_cond_wait(&fake_changed, &fake_lock);
    pthread_mutex_unlock(&fake_lock);
}

const struct weir_test_nccl weir_test_nccl = {
    .fail = set_fail,
    .async_error = set_async_error,
    .hold = set_hold,
    .hold_one = set_hold_one,
    .calls = calls_count,
    .await_held = await_held,
    .endless = set_endless,
    .blocking = set_blocking,
    .live = get_live,
};
