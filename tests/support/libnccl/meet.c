// Ranks meet three times in a collective: all have come, all have read what they read, all have
// written. If counts differ, each takes what there is, as NCCL does.
#include <stdlib.h>
#include <string.h>

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

bool fake_is_released(const struct ncclComm *comm)
{
    return comm->aborted && !fake_endless;
}

size_t fake_size(ncclDataType_t type)
{
    return weir_datatype_size(elements[type]);
}

// With the lock: waits for all ranks. False: this one was aborted.
static bool meet(struct ncclComm *comm)
{
    struct fake_clique *clique = comm->clique;
    const uint64_t phase = ++clique->arrived[comm->rank];
    pthread_cond_broadcast(&fake_changed);
    for (int i = 0; i < clique->count; i++)
        while (clique->arrived[i] < phase && !fake_is_released(comm))
            pthread_cond_wait(&fake_changed, &fake_lock);
    return !fake_is_released(comm);
}

// The same of the calls of a collective. A rank that was aborted has left, and its memory may be gone:
// as with NCCL, nothing ends for the others before they are aborted too.
static bool meet_in_calls(struct ncclComm *comm)
{
    const struct fake_clique *clique = comm->clique;
    if (!meet(comm))
        return false;
    for (int i = 0; i < clique->count; i++)
        while (!clique->calls[i] && !fake_is_released(comm))
            pthread_cond_wait(&fake_changed, &fake_lock);
    return !fake_is_released(comm);
}

static void reduce(const struct fake_call *call, size_t first)
{
    const struct fake_clique *clique = call->comm->clique;
    const size_t size = fake_size(call->type);
    for (int i = 0; i < clique->count; i++) {
        const struct fake_call *other = clique->calls[i];
        const size_t count = other->count < call->count ? other->count : call->count;
        if (i == 0)
            memcpy(call->result, other->src + first * size, count * size);
        else
            weir_reduce(elements[call->type], reductions[call->reduction], call->result,
                        other->src + first * size, count);
    }
    if (call->reduction == ncclAvg)
        weir_reduce_divide(elements[call->type], call->result, call->count,
                           (uint32_t)clique->count);
}

size_t fake_read_others(const struct fake_call *call)
{
    const struct fake_clique *clique = call->comm->clique;
    const size_t size = call->count * fake_size(call->type);
    switch (call->kind) {
    case FAKE_ALL_REDUCE:
        reduce(call, 0);
        return size;
    case FAKE_REDUCE:
        if (call->comm->rank != call->root)
            return 0;
        reduce(call, 0);
        return size;
    case FAKE_REDUCE_SCATTER:
        reduce(call, (size_t)call->comm->rank * call->count);
        return size;
    case FAKE_BROADCAST:
        memcpy(call->result, clique->calls[call->root]->src, size);
        return size;
    case FAKE_ALL_GATHER:
        for (int i = 0; i < clique->count; i++)
            memcpy(call->result + (size_t)i * size, clique->calls[i]->src, size);
        return size * (size_t)clique->count;
    case FAKE_MESSAGES:
        break;
    }
    return 0;
}

static void collective(struct fake_call *call)
{
    struct fake_clique *clique = call->comm->clique;
    const size_t room = call->count * fake_size(call->type) * (size_t)clique->count;
    call->result = calloc(1, room + 1);
    clique->calls[call->comm->rank] = call;
    if (meet_in_calls(call->comm)) {
        const size_t size = fake_read_others(call);
        if (meet(call->comm) && size)
            memcpy(call->dst, call->result, size);
        (void)meet(call->comm);
    }
    clique->calls[call->comm->rank] = NULL;
    free(call->result);
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
    while (!*find(comm->clique, message->peer, comm->rank) && !fake_is_released(comm))
        pthread_cond_wait(&fake_changed, &fake_lock);
    struct fake_post **at = find(comm->clique, message->peer, comm->rank);
    struct fake_post *taken = *at;
    if (!taken || fake_is_released(comm))
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
    while (call->messages) {
        struct fake_message *at = call->messages;
        while (!at->receive && is_posted(call->comm->clique, at) && !fake_is_released(call->comm))
            pthread_cond_wait(&fake_changed, &fake_lock);
        withdraw(call->comm->clique, at);
        call->messages = at->next;
        free(at);
    }
}

void fake_meet(void *user)
{
    struct fake_call *call = user;
    pthread_mutex_lock(&fake_lock);
    if (!call->comm->aborted) {
        if (call->comm->clique->share)
            fake_share_collective(call);
        else if (call->kind == FAKE_MESSAGES)
            messages(call);
        else
            collective(call);
    }
    while (call->messages) {
        struct fake_message *at = call->messages;
        call->messages = at->next;
        free(at);
    }
    call->comm->under_way--;
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
    free(call);
}
