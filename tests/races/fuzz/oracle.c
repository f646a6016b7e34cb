// See the header.
#include "tests/races/fuzz/oracle.h"

#include <string.h>

static uint64_t bit(int node)
{
    return UINT64_C(1) << node;
}

void oracle_init(struct oracle *oracle)
{
    memset(oracle, 0, sizeof *oracle);
    for (size_t i = 0; i < ORACLE_QUEUES; i++)
        oracle->last[i] = -1;
    for (size_t i = 0; i < ORACLE_BUFFERS; i++)
        oracle->born[i] = -1;
    for (size_t i = 0; i < ORACLE_THREADS; i++)
        oracle->host_last[i] = -1;
    oracle->waiting_call = -1;
    oracle->legacy = -1;
    oracle->legacy_last = -1;
}

void oracle_set_legacy(struct oracle *oracle, int queue)
{
    oracle->legacy = queue;
}

// The legacy queue comes after all queues, and all queues come after it.
static void order_legacy(struct oracle *oracle, int node, int queue)
{
    if (queue != oracle->legacy) {
        oracle_after(oracle, node, oracle->legacy_last);
        return;
    }
    for (size_t i = 0; i < ORACLE_QUEUES; i++)
        oracle_after(oracle, node, oracle->last[i]);
    oracle->legacy_last = node;
}

int oracle_add(struct oracle *oracle, int queue)
{
    const int node = oracle->count++;
    oracle->nodes[node] = (struct oracle_node){.after = oracle->known,
                                               .queue = queue,
                                               .thread = oracle->thread,
                                               .of_call = -1};
    oracle_after(oracle, node, oracle->host_last[oracle->thread]);
    if (oracle->waiting_call >= 0 && !oracle->strict)
        oracle->maybe[node] = oracle->nodes[oracle->waiting_call].after;
    if (queue == ORACLE_HOST) {
        oracle->host_last[oracle->thread] = node;
        return node;
    }
    oracle_after(oracle, node, oracle->last[queue]);
    order_legacy(oracle, node, queue);
    oracle->last[queue] = node;
    return node;
}

void oracle_after(struct oracle *oracle, int node, int earlier)
{
    if (earlier >= 0)
        oracle->nodes[node].after |= bit(earlier);
}

void oracle_wait_for_call(struct oracle *oracle, int call)
{
    oracle->waiting_call = call;
}

int oracle_run_call(struct oracle *oracle, int call)
{
    const int node = oracle->count++;
    oracle->nodes[node] = (struct oracle_node){.after = oracle->known,
                                               .queue = oracle->nodes[call].queue,
                                               .call = true,
                                               .of_call = call};
    oracle_after(oracle, node, call);
    if (!oracle->strict)
        oracle_after(oracle, node, oracle->host_last[0]);
    oracle->waiting_call = -1;
    return node;
}

bool oracle_conflict(const struct oracle_use *a, const struct oracle_use *b)
{
    return a->buffer == b->buffer && (a->bytes & b->bytes) != 0 &&
           ((a->access | b->access) & WEIR_ACCESS_WRITE) != 0;
}

void oracle_use(struct oracle *oracle, int node, uint32_t buffer, weir_access access,
                uint64_t bytes)
{
    struct oracle_node *user = &oracle->nodes[node];
    const struct oracle_use use = {buffer, access, bytes};

    user->uses[user->use_count++] = use;
    for (size_t i = 0; i < oracle->open_count && user->queue != ORACLE_HOST && !user->call; i++)
        if (oracle_conflict(&oracle->open[i].use, &use))
            oracle->opens[oracle->open[i].node] |= bit(node);
    // What is read and written may be written first, and the host may read more than it looks at.
    const bool sure = access == WEIR_ACCESS_READ && user->queue != ORACLE_HOST && user->of_call < 0;
    if (access & WEIR_ACCESS_READ && oracle->unwritten[buffer] & bytes)
        *(sure ? &oracle->reads_unwritten : &oracle->may_read_unwritten) |= bit(node);
    oracle->unwritten[buffer] &= ~bytes;
}

void oracle_host_knows(struct oracle *oracle, int node)
{
    oracle_after(oracle, oracle_add(oracle, ORACLE_HOST), node);
}

void oracle_all_know(struct oracle *oracle, int node)
{
    oracle->known |= bit(node);
}

void oracle_release(struct oracle *oracle, int key)
{
    oracle->keys[key] |= bit(oracle_add(oracle, ORACLE_HOST));
}

void oracle_acquire(struct oracle *oracle, int key)
{
    oracle->nodes[oracle_add(oracle, ORACLE_HOST)].after |= oracle->keys[key];
}

void oracle_fresh(struct oracle *oracle, uint32_t buffer, uint64_t unwritten)
{
    oracle->unwritten[buffer] = unwritten;
}

void oracle_allocate(struct oracle *oracle, int node, uint32_t buffer)
{
    oracle->born[buffer] = node;
    oracle_use(oracle, node, buffer, WEIR_ACCESS_WRITE, UINT64_MAX);
    oracle_fresh(oracle, buffer, UINT64_MAX);
}

bool oracle_open(struct oracle *oracle, int node)
{
    if (oracle->open_count == ORACLE_OPEN)
        return false;
    oracle->open[oracle->open_count++] =
        (struct oracle_open){.node = node, .use = oracle->nodes[node].uses[0]};
    return true;
}

void oracle_close(struct oracle *oracle, size_t index)
{
    oracle->open[index] = oracle->open[--oracle->open_count];
}
