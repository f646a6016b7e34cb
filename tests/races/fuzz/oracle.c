// See the header.
#include "tests/races/fuzz/oracle.h"

#include <string.h>

static uint64_t bit(int node)
{
    return UINT64_C(1) << node;
}

uint64_t bits(size_t offset, size_t size)
{
    uint64_t mask = 0;
    for (size_t i = offset; i < offset + size && i < ORACLE_BYTES; i++)
        mask |= UINT64_C(1) << i;
    return mask;
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

void oracle_create(struct oracle *oracle, int thread)
{
    oracle->host_last[thread] = oracle_add(oracle, ORACLE_HOST);
}

void oracle_join(struct oracle *oracle, int thread)
{
    const int node = oracle_add(oracle, ORACLE_HOST);
    oracle_after(oracle, node, oracle->host_last[thread]);
}

void oracle_allocate(struct oracle *oracle, int node, uint32_t buffer)
{
    oracle->born[buffer] = node;
    oracle_use(oracle, node, buffer, WEIR_ACCESS_WRITE, UINT64_MAX);
    oracle->unwritten[buffer] = UINT64_MAX;
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

// The comparison of findings with an oracle.

// All nodes that node `last` comes after, with `more` edges for each node. Edges lead to later nodes
// only.
static uint64_t all_before(const struct oracle *oracle, const uint64_t *more, int last)
{
    uint64_t before[ORACLE_NODES];
    for (int node = 0; node <= last; node++) {
        const uint64_t direct = oracle->nodes[node].after | more[node];
        before[node] = direct;
        for (int i = 0; i < node; i++)
            if (direct & bit(i))
                before[node] |= before[i];
    }
    return before[last];
}

// Whether node `b` comes after `a`, which was before it in the program, or before it: the function of a
// host call runs before all that comes after the call.
static bool are_ordered(const struct oracle *oracle, const uint64_t *more, int a, int b)
{
    const uint64_t before = all_before(oracle, more, b);
    const int ran = oracle->nodes[a].of_call, runs = oracle->nodes[b].of_call;
    return (before & bit(a)) != 0 || (ran >= 0 && (before & bit(ran)) != 0) ||
           (runs >= 0 && (all_before(oracle, more, a) & bit(runs)) != 0);
}

static bool is_host(const struct oracle_node *node)
{
    return node->queue == ORACLE_HOST || node->call;
}

// Two threads of the host race as two queues do.
static bool use_kind(const struct oracle_node *a, const struct oracle_use *first,
                     const struct oracle_node *b, const struct oracle_use *second,
                     weir_check_kind kind)
{
    if (a->frees || b->frees)
        return kind == WEIR_CHECK_AFTER_FREE;
    if (is_host(b) && !is_host(a))
        return kind ==
               (second->access & WEIR_ACCESS_WRITE ? WEIR_CHECK_HOST_WRITE : WEIR_CHECK_HOST_READ);
    if (!(first->access & WEIR_ACCESS_WRITE))
        return kind == WEIR_CHECK_WRITE_AFTER_READ;
    return kind == (second->access & WEIR_ACCESS_READ ? WEIR_CHECK_READ_AFTER_WRITE
                                                      : WEIR_CHECK_WRITE_AFTER_WRITE);
}

// Whether two nodes conflict in the way and in the bytes that the finding says.
static bool explains(const struct oracle *oracle, const struct weir_check_finding *finding,
                     int first, int second)
{
    const struct oracle_node *a = &oracle->nodes[first], *b = &oracle->nodes[second];
    const uint64_t bytes = bits(finding->offset, finding->size);
    for (size_t i = 0; i < a->use_count; i++)
        for (size_t k = 0; k < b->use_count; k++)
            if (oracle_conflict(&a->uses[i], &b->uses[k]) && bytes != 0 &&
                (bytes & ~(a->uses[i].bytes & b->uses[k].bytes)) == 0 &&
                use_kind(a, &a->uses[i], b, &b->uses[k], finding->kind))
                return true;
    return false;
}

static bool conflicts(const struct oracle_node *a, const struct oracle_node *b)
{
    for (size_t i = 0; i < a->use_count; i++)
        for (size_t k = 0; k < b->use_count; k++)
            if (oracle_conflict(&a->uses[i], &b->uses[k]))
                return true;
    return false;
}

#define DIFFER(comparison, ...) \
    snprintf((comparison)->difference, sizeof(comparison)->difference, __VA_ARGS__)

void comparison_begin(struct comparison *comparison, const struct oracle *oracle)
{
    memset(comparison, 0, sizeof *comparison);
    comparison->oracle = oracle;
    memcpy(comparison->repaired, oracle->maybe, sizeof comparison->repaired);
}

// The last that the queue, or the thread, of node `node` was given before node `until`: the plugin knows the clock of
// a point only where a record names it, and takes a later one otherwise.
static int last_of_queue(const struct oracle *oracle, int node, int until)
{
    int last = node;
    for (int i = node; i < until; i++)
        if (oracle->nodes[i].queue == oracle->nodes[node].queue &&
            (oracle->nodes[i].queue != ORACLE_HOST ||
             oracle->nodes[i].thread == oracle->nodes[node].thread))
            last = i;
    return last;
}

// A use of a pool's memory that does not come after its allocation may be told of as a race with the
// memory's former life. Returns that allocation, -1 if this is no such finding.
static int allocation_of(const struct comparison *comparison,
                         const struct weir_check_finding *finding, int first, int second)
{
    const struct oracle *oracle = comparison->oracle;
    const struct oracle_node *a = &oracle->nodes[first], *b = &oracle->nodes[second];

    for (size_t i = 0; i < a->use_count; i++)
        for (size_t k = 0; k < b->use_count; k++) {
            const int born = oracle->born[b->uses[k].buffer];
            struct oracle_use now = a->uses[i];
            now.buffer = b->uses[k].buffer;
            if (oracle->born[a->uses[i].buffer] >= 0 && born > first && born < second &&
                !are_ordered(oracle, comparison->found, born, second) &&
                oracle_conflict(&now, &b->uses[k]) &&
                use_kind(a, &now, b, &b->uses[k], finding->kind))
                return born;
        }
    return -1;
}

// Where an allocation is one of several uses that the second does not come after, only the others are
// told of.
static void repair(struct comparison *comparison, int first, int second)
{
    const struct oracle *oracle = comparison->oracle;
    const struct oracle_node *node = &oracle->nodes[second];
    uint64_t *before = &comparison->repaired[second];

    // A thread that was made later may go on where the one of `first` ended.
    *before |= bit(first) | bit(last_of_queue(oracle, first, second));
    for (size_t i = 0; i < node->use_count; i++) {
        const int born = oracle->born[node->uses[i].buffer];
        if (born >= 0 && born < second)
            *before |= bit(last_of_queue(oracle, born, second));
    }
}

// The ways in which a finding may be meant, by the nodes of its lines.
struct meanings {
    uint64_t found[ORACLE_NODES]; // edges
    int conflicting, unordered;
    bool former_life;
};

// The function of a host call may be told of with each of several operations, also where the findings
// before suppose that it has run.
static void add_meaning(struct comparison *comparison, const struct weir_check_finding *finding,
                        int first, int second, struct meanings *meanings)
{
    static const uint64_t none[ORACLE_NODES];
    const struct oracle *oracle = comparison->oracle;
    const bool late = oracle->nodes[second].of_call >= 0;
    if (first >= second)
        return;
    const int told = first;
    if (!explains(oracle, finding, first, second)) {
        first = allocation_of(comparison, finding, first, second);
        meanings->former_life = true;
    }
    if (first < 0)
        return;
    meanings->conflicting++;
    repair(comparison, first, second);
    repair(comparison, told, second);
    if (are_ordered(oracle, late ? none : comparison->found, first, second))
        return;
    meanings->unordered++;
    if (!late)
        meanings->found[second] |= bit(first);
}

// Where a finding may be meant in several ways, later ones are not held against it; nor where it is
// about the former life of memory, of which each use may be told.
static void add_pair(struct comparison *comparison, const struct weir_check_finding *finding,
                     const struct oracle_place *first, const struct oracle_place *second)
{
    struct meanings meanings = {.conflicting = 0};

    for (int i = 0; i < first->count; i++)
        for (int k = 0; k < second->count; k++)
            add_meaning(comparison, finding, first->nodes[i], second->nodes[k], &meanings);
    for (int i = 0; i < ORACLE_NODES && meanings.unordered == 1 && !meanings.former_life; i++)
        comparison->found[i] |= meanings.found[i];
    if (meanings.unordered == 0)
        DIFFER(comparison, "%s of %d and %d at bytes %zu + %zu: they %s",
               weir_check_kind_name(finding->kind), first->count ? first->nodes[0] : -1,
               second->count ? second->nodes[0] : -1, finding->offset, finding->size,
               meanings.conflicting ? "are in order" : "do not conflict so");
}

// Of the nodes at a place, those of the set.
static uint64_t nodes_in(const struct oracle_place *place, uint64_t set)
{
    uint64_t nodes = 0;
    for (int i = 0; i < place->count; i++)
        nodes |= set & bit(place->nodes[i]);
    return nodes;
}

static void add_open(struct comparison *comparison, const struct oracle_place *first,
                     const struct oracle_place *second)
{
    const int access = first->count ? first->nodes[0] : 0;
    const uint64_t nodes = nodes_in(second, comparison->oracle->opens[access]);
    comparison->opens[access] |= nodes;
    if (!nodes)
        DIFFER(comparison, "open-access of %d and %d: there is none", access,
               second->count ? second->nodes[0] : -1);
}

static void add_unwritten(struct comparison *comparison, const struct oracle_place *second)
{
    const struct oracle *oracle = comparison->oracle;
    const uint64_t nodes = nodes_in(second, oracle->reads_unwritten | oracle->may_read_unwritten);
    comparison->reads_unwritten |= nodes;
    if (!nodes)
        DIFFER(comparison, "unwritten at %d: it reads written bytes",
               second->count ? second->nodes[0] : -1);
}

void comparison_add(struct comparison *comparison, const struct weir_check_finding *finding,
                    const struct oracle_place *first, const struct oracle_place *second)
{
    if (comparison->difference[0] || finding->kind >= WEIR_CHECK_FIRST_HINT)
        return;
    if (finding->kind == WEIR_CHECK_UNWRITTEN)
        add_unwritten(comparison, second);
    else if (finding->kind == WEIR_CHECK_OPEN_ACCESS)
        add_open(comparison, first, second);
    else
        add_pair(comparison, finding, first, second);
}

// An operation that was submitted while a host call waited may take the place of one before it. The
// function of the call is then not compared with that one.
static bool may_be_replaced(const struct comparison *comparison, int first, int second)
{
    const struct oracle *oracle = comparison->oracle;
    const int call = oracle->nodes[second].of_call;
    for (int i = call + 1; call >= 0 && i < second; i++)
        if (i > first && conflicts(&oracle->nodes[i], &oracle->nodes[second]) &&
            are_ordered(oracle, comparison->repaired, first, i))
            return true;
    return false;
}

// Whether a finding supposes that the function of a host call has run, and then it runs.
static bool has_run_already(const struct comparison *comparison, int node)
{
    const struct oracle *oracle = comparison->oracle;
    const int call = oracle->nodes[node].of_call;
    for (int i = 0; call >= 0 && i < node; i++)
        if (i != call && oracle->nodes[node].after & bit(i) &&
            all_before(oracle, comparison->repaired, i) & bit(call))
            return true;
    return false;
}

static void look_for_missed(struct comparison *comparison)
{
    const struct oracle *oracle = comparison->oracle;
    for (int b = 0; b < oracle->count; b++)
        for (int a = 0; a < b; a++)
            if (conflicts(&oracle->nodes[a], &oracle->nodes[b]) &&
                !are_ordered(oracle, comparison->repaired, a, b) &&
                !may_be_replaced(comparison, a, b) && !has_run_already(comparison, b)) {
                DIFFER(comparison, "%d and %d conflict, and nothing was found", a, b);
                return;
            }
}

bool comparison_end(struct comparison *comparison)
{
    const struct oracle *oracle = comparison->oracle;
    if (!comparison->difference[0] && oracle->reads_unwritten & ~comparison->reads_unwritten)
        DIFFER(comparison, "reads of unwritten bytes: found %#llx, are %#llx",
               (unsigned long long)comparison->reads_unwritten,
               (unsigned long long)oracle->reads_unwritten);
    for (int i = 0; i < oracle->count && !comparison->difference[0]; i++)
        if (comparison->opens[i] != oracle->opens[i])
            DIFFER(comparison, "uses during the access of %d: found %#llx, are %#llx", i,
                   (unsigned long long)comparison->opens[i], (unsigned long long)oracle->opens[i]);
    if (!comparison->difference[0])
        look_for_missed(comparison);
    return comparison->difference[0] == '\0';
}
