// What ranks send lies in memory that all have. They meet twice in a collective: all have written, all have read. If
// counts differ, each takes what there is, as NCCL does; as with NCCL nothing tells of a rank that has gone.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"
#include "transports/kit/reduce.h"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;

static const weir_datatype elements[] = {
    [ncclInt8] = WEIR_I8,       [ncclUint8] = WEIR_U8,    [ncclInt32] = WEIR_I32,
    [ncclUint32] = WEIR_U32,    [ncclInt64] = WEIR_I64,   [ncclUint64] = WEIR_U64,
    [ncclFloat16] = WEIR_F16,   [ncclFloat32] = WEIR_F32, [ncclFloat64] = WEIR_F64,
    [ncclBfloat16] = WEIR_BF16,
};

static const weir_reduction reductions[] = {
    [ncclSum] = WEIR_SUM,     [ncclProd] = WEIR_PRODUCT, [ncclMax] = WEIR_MAXIMUM,
    [ncclMin] = WEIR_MINIMUM, [ncclAvg] = WEIR_AVERAGE,
};

bool fake_endless;

// Whether a call that is under way ends without the other ranks.
static bool is_released(const struct ncclComm *comm)
{
    return comm->aborted && !fake_endless;
}

size_t fake_size(ncclDataType_t type)
{
    return weir_datatype_size(elements[type]);
}

// What ranks share.

enum {
    MOST_RANKS = 16,
    SLOT_BYTES = 1 << 26, // of which those exist that are written
    HEADER_BYTES = 4096,
};

#define SHARE_BYTES (HEADER_BYTES + (size_t)MOST_RANKS * SLOT_BYTES)

struct fake_share {
    atomic_int joined;
    struct {
        atomic_ulong phase;
        atomic_size_t count;
    } ranks[MOST_RANKS];
};

static char *slot(struct fake_share *share, int rank)
{
    return (char *)share + HEADER_BYTES + (size_t)rank * SLOT_BYTES;
}

const char *fake_share_folder(void)
{
    return getenv("WEIR_TEST_NCCL_FOLDER");
}

struct fake_share *fake_share_open(const char *id)
{
    char path[512];
    const bool file_shared = fake_share_folder() != NULL;
    int file = -1;
    snprintf(path, sizeof path, "%s/%s", file_shared ? fake_share_folder() : "", id);
    if (file_shared && ((file = open(path, O_RDWR | O_CREAT, 0600)) < 0 ||
                        ftruncate(file, (off_t)SHARE_BYTES) != 0))
        abort();
    struct fake_share *share =
        mmap(NULL, SHARE_BYTES, PROT_READ | PROT_WRITE,
             file_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, file, 0);
    if (share == MAP_FAILED)
        abort();
    if (file_shared)
        close(file);
    return share;
}

void fake_share_close(struct fake_share *share)
{
    munmap(share, SHARE_BYTES);
}

// With the lock, which is released meanwhile.
static void await_change(void)
{
    const struct timespec pause = {.tv_nsec = 100000};
    if (!fake_share_folder()) {
        pthread_cond_wait(&fake_changed, &fake_lock);
        return;
    }
    pthread_mutex_unlock(&fake_lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&fake_lock);
}

void fake_share_join(struct fake_share *share, int count)
{
    atomic_fetch_add(&share->joined, 1);
    while (atomic_load(&share->joined) < count)
        await_change();
}

// With the lock: waits for all ranks. False: this one was aborted.
static bool meet(struct ncclComm *comm)
{
    struct fake_share *share = comm->clique->share;
    const unsigned long phase = atomic_fetch_add(&share->ranks[comm->rank].phase, 1) + 1;
    pthread_cond_broadcast(&fake_changed);
    for (int i = 0; i < comm->clique->count; i++)
        while (atomic_load(&share->ranks[i].phase) < phase && !is_released(comm))
            await_change();
    return !is_released(comm);
}

static void reduce(const struct fake_call *call, size_t first, char *result)
{
    const struct fake_clique *clique = call->comm->clique;
    const size_t size = fake_size(call->type);
    for (int i = 0; i < clique->count; i++) {
        const char *other = slot(clique->share, i) + first * size;
        const size_t there = atomic_load(&clique->share->ranks[i].count);
        const size_t count = there < call->count ? there : call->count;
        if (i == 0)
            memcpy(result, other, count * size);
        else
            weir_reduce(elements[call->type], reductions[call->reduction], result, other, count);
    }
    if (call->reduction == ncclAvg)
        weir_reduce_divide(elements[call->type], result, call->count, (uint32_t)clique->count);
}

// The bytes that this rank gets.
static size_t read_others(const struct fake_call *call, char *result)
{
    const struct fake_clique *clique = call->comm->clique;
    const size_t size = call->count * fake_size(call->type);
    switch (call->kind) {
    case FAKE_REDUCE:
        if (call->comm->rank != call->root)
            return 0;
        reduce(call, 0, result);
        return size;
    case FAKE_REDUCE_SCATTER:
        reduce(call, (size_t)call->comm->rank * call->count, result);
        return size;
    case FAKE_BROADCAST:
        memcpy(result, slot(clique->share, call->root), size);
        return size;
    case FAKE_ALL_GATHER:
        for (int i = 0; i < clique->count; i++)
            memcpy(result + (size_t)i * size, slot(clique->share, i), size);
        return size * (size_t)clique->count;
    default:
        reduce(call, 0, result);
        return size;
    }
}

static void collective(struct fake_call *call)
{
    struct fake_clique *clique = call->comm->clique;
    struct fake_share *share = clique->share;
    const int parts = call->kind == FAKE_REDUCE_SCATTER ? clique->count : 1;
    const size_t bytes = call->count * fake_size(call->type) * (size_t)parts;
    char *result = calloc((size_t)clique->count, bytes + 1);
    if (bytes > SLOT_BYTES || clique->count > MOST_RANKS || !result)
        abort();
    if (call->src)
        memcpy(slot(share, call->comm->rank), call->src, bytes);
    atomic_store(&share->ranks[call->comm->rank].count, call->count);
    if (meet(call->comm)) {
        const size_t size = read_others(call, result);
        if (meet(call->comm) && size)
            memcpy(call->dst, result, size);
    }
    free(result);
}

static void post(struct fake_call *call, const struct fake_message *message)
{
    struct fake_post **at = &call->comm->clique->posts;
    while (*at)
        at = &(*at)->next;
    *at = malloc(sizeof **at);
    **at = (struct fake_post){NULL, call->comm->rank, message->peer, message};
    pthread_cond_broadcast(&fake_changed);
}

// The oldest message between two ranks.
static struct fake_post **find(struct fake_clique *clique, int from, int to)
{
    struct fake_post **at = &clique->posts;
    while (*at && ((*at)->from != from || (*at)->to != to))
        at = &(*at)->next;
    return at;
}

static void receive(struct fake_call *call, const struct fake_message *message)
{
    struct ncclComm *comm = call->comm;
    while (!*find(comm->clique, message->peer, comm->rank) && !is_released(comm))
        pthread_cond_wait(&fake_changed, &fake_lock);
    struct fake_post **at = find(comm->clique, message->peer, comm->rank);
    struct fake_post *taken = *at;
    if (!taken || is_released(comm))
        return;
    memcpy(message->memory, taken->message->memory,
           message->size < taken->message->size ? message->size : taken->message->size);
    *at = taken->next;
    free(taken);
    pthread_cond_broadcast(&fake_changed);
}

static bool is_posted(const struct fake_clique *clique, const struct fake_message *message)
{
    const struct fake_post *at = clique->posts;
    while (at && at->message != message)
        at = at->next;
    return at != NULL;
}

static void withdraw(struct fake_clique *clique, const struct fake_message *message)
{
    for (struct fake_post **at = &clique->posts; *at;) {
        struct fake_post *gone = *at;
        if (gone->message != message) {
            at = &gone->next;
            continue;
        }
        *at = gone->next;
        free(gone);
    }
}

static void messages(struct fake_call *call)
{
    for (struct fake_message *at = call->messages; at; at = at->next)
        if (!at->receive)
            post(call, at);
    for (struct fake_message *at = call->messages; at; at = at->next)
        if (at->receive)
            receive(call, at);
    for (struct fake_message *at = call->messages; at; at = at->next) {
        while (!at->receive && is_posted(call->comm->clique, at) && !is_released(call->comm))
            pthread_cond_wait(&fake_changed, &fake_lock);
        withdraw(call->comm->clique, at);
    }
}

void fake_messages_drop(struct fake_message *messages)
{
    while (messages) {
        struct fake_message *next = messages->next;
        free(messages);
        messages = next;
    }
}

void fake_meet(void *user)
{
    struct fake_call *call = user;
    pthread_mutex_lock(&fake_lock);
    if (call->kind == FAKE_MESSAGES && fake_share_folder())
        abort();
    if (!call->comm->aborted && call->kind == FAKE_MESSAGES)
        messages(call);
    else if (!call->comm->aborted)
        collective(call);
    fake_messages_drop(call->messages);
    call->comm->under_way--;
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
    free(call);
}
