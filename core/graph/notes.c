#include "core/graph/notes.h"

#include <stdlib.h>
#include <string.h>

#include "core/queue/held.h"
#include "core/queue/registry.h"
#include "core/support/memory.h"

struct weir__branch_clock {
    uint32_t count;
    uint32_t nodes[];
};

// Room for one more element, at `*array`.
static bool make_room(void *array, size_t element, uint32_t count, uint32_t *capacity)
{
    void *old;
    if (count < *capacity)
        return true;
    uint32_t grown = *capacity ? 2 * *capacity : 8;
    void *memory = weir__allocate(grown * element);
    if (!memory)
        return false;
    memcpy(&old, array, sizeof old);
    if (old)
        memcpy(memory, old, count * element);
    weir__release(old);
    memcpy(array, &memory, sizeof memory);
    *capacity = grown;
    return true;
}

// Clocks.

static uint32_t nodes_of(const struct weir__branch_clock *clock, uint32_t branch)
{
    return branch < clock->count ? clock->nodes[branch] : 0;
}

// A copy with at least `count` branches; zeros if there is no clock yet.
static struct weir__branch_clock *copy_clock(const struct weir__branch_clock *clock, uint32_t count)
{
    uint32_t known = clock ? clock->count : 0;
    if (count < known)
        count = known;
    struct weir__branch_clock *copy = weir__allocate(sizeof *copy + count * sizeof copy->nodes[0]);
    if (!copy)
        return NULL;
    copy->count = count;
    if (known)
        memcpy(copy->nodes, clock->nodes, known * sizeof copy->nodes[0]);
    return copy;
}

static bool merge_clock(struct weir__branch *branch, const struct weir__branch_clock *other)
{
    if (branch->clock->count < other->count) {
        struct weir__branch_clock *wider = copy_clock(branch->clock, other->count);
        if (!wider)
            return false;
        weir__release(branch->clock);
        branch->clock = wider;
    }
    for (uint32_t i = 0; i < other->count; i++)
        if (branch->clock->nodes[i] < other->nodes[i])
            branch->clock->nodes[i] = other->nodes[i];
    return true;
}

// Branches.

bool weir__notes_add_branch(struct weir__notes *notes, weir_queue *queue)
{
    const uint32_t count = notes->branch_count;
    struct weir__branch_clock *clock = copy_clock(NULL, count + 1);
    if (!clock ||
        !make_room(&notes->branches, sizeof *notes->branches, count, &notes->branch_capacity)) {
        weir__release(clock);
        return false;
    }
    notes->branches[count] = (struct weir__branch){
        // The caller may use the queue, so this finds it.
        .queue = weir__registry_pin(queue->member.object.id),
        .clock = clock,
        .last = WEIR__NO_NODE,
    };
    notes->branch_count++;
    return true;
}

uint32_t weir__notes_branch(const struct weir__notes *notes, const weir_queue *queue)
{
    uint32_t index = 0;
    while (notes->branches[index].queue != queue)
        index++;
    return index;
}

// Nodes.

// Whether one of the other candidates comes after node `index`, so that the edge is
// implied.
static bool is_implied(const struct weir__notes *notes, const uint32_t *candidates, uint32_t count,
                       uint32_t index)
{
    const uint32_t branch = notes->parts.nodes[index].branch;
    const uint32_t ordinal = nodes_of(notes->node_clocks[index], branch);
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i] != index &&
            nodes_of(notes->node_clocks[candidates[i]], branch) >= ordinal)
            return true;
    return false;
}

static int compare(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

// The direct predecessors of the branch's next node; NULL: no memory.
static uint32_t *find_dependencies(const struct weir__notes *notes,
                                   const struct weir__branch_clock *clock, uint32_t *out_count)
{
    uint32_t *candidates = weir__allocate(2 * (size_t)clock->count * sizeof *candidates);
    uint32_t count = 0;
    *out_count = 0;
    if (!candidates)
        return NULL;
    uint32_t *kept = candidates + clock->count;
    for (uint32_t i = 0; i < clock->count; i++)
        if (clock->nodes[i])
            candidates[count++] = notes->branches[i].nodes[clock->nodes[i] - 1];
    for (uint32_t i = 0; i < count; i++)
        if (!is_implied(notes, candidates, count, candidates[i]))
            kept[(*out_count)++] = candidates[i];
    memcpy(candidates, kept, *out_count * sizeof *kept);
    qsort(candidates, *out_count, sizeof *candidates, compare);
    return candidates;
}

static bool make_node_room(struct weir__notes *notes, struct weir__branch *branch)
{
    struct weir__graph_parts *parts = &notes->parts;
    uint32_t nodes = notes->node_capacity;
    uint32_t owned = notes->node_capacity;
    uint32_t clocks = notes->node_capacity;
    // All three are grown before the capacity is changed, so that a failure changes
    // nothing.
    if (!make_room(&branch->nodes, sizeof *branch->nodes, branch->node_count,
                   &branch->node_capacity) ||
        !make_room(&parts->nodes, sizeof *parts->nodes, parts->node_count, &nodes) ||
        !make_room(&parts->owned, sizeof(void *), parts->node_count, &owned) ||
        !make_room(&notes->node_clocks, sizeof(void *), parts->node_count, &clocks))
        return false;
    notes->node_capacity = nodes;
    return true;
}

bool weir__notes_add_node(struct weir__notes *notes, uint32_t index,
                          const struct weir_operation *operation)
{
    struct weir__graph_parts *parts = &notes->parts;
    struct weir__branch *branch = &notes->branches[index];
    uint32_t count;
    if (!make_node_room(notes, branch))
        return false;
    uint32_t *dependencies = find_dependencies(notes, branch->clock, &count);
    struct weir_operation *copy = weir__operation_clone(operation);
    struct weir__branch_clock *clock = copy_clock(branch->clock, 0);
    if (!dependencies || !copy || !clock) {
        weir__release(dependencies);
        weir__release(copy);
        weir__release(clock);
        return false;
    }
    const uint32_t node = parts->node_count++;
    clock->nodes[index]++;
    branch->clock->nodes[index]++;
    branch->nodes[branch->node_count++] = node;
    branch->last = node;
    copy->sequence = (uint64_t)node + 1;
    weir__operation_use(copy);
    parts->owned[node] = copy;
    notes->node_clocks[notes->clock_count++] = clock;
    parts->nodes[node] = (struct weir_graph_node){
        .struct_size = sizeof *parts->nodes,
        .operation = copy,
        .branch = index,
        .dependencies = dependencies,
        .dependency_count = count,
    };
    return true;
}

// Records.

bool weir__notes_add_record(struct weir__notes *notes, uint32_t branch, uint32_t *out_record)
{
    struct weir__branch_clock *clock = copy_clock(notes->branches[branch].clock, 0);
    if (!clock ||
        !make_room(&notes->records, sizeof(void *), notes->record_count, &notes->record_capacity)) {
        weir__release(clock);
        return false;
    }
    *out_record = notes->record_count++;
    notes->records[*out_record] = clock;
    return true;
}

bool weir__notes_follow(struct weir__notes *notes, uint32_t branch, uint32_t record)
{
    return merge_clock(&notes->branches[branch], notes->records[record]);
}

const weir_queue *weir__notes_find_loose(const struct weir__notes *notes)
{
    for (uint32_t i = 1; i < notes->branch_count; i++)
        if (notes->branches[i].node_count > nodes_of(notes->branches[0].clock, i))
            return notes->branches[i].queue;
    return NULL;
}

void weir__notes_finish(struct weir__notes *notes)
{
    for (uint32_t i = 0; i < notes->clock_count; i++)
        weir__release(notes->node_clocks[i]);
    for (uint32_t i = 0; i < notes->record_count; i++)
        weir__release(notes->records[i]);
    for (uint32_t i = 0; i < notes->branch_count; i++) {
        weir__release(notes->branches[i].clock);
        weir__release(notes->branches[i].nodes);
        weir__registry_unpin(notes->branches[i].queue);
    }
    weir__graph_parts_finish(&notes->parts);
    weir__release(notes->node_clocks);
    weir__release(notes->records);
    weir__release(notes->branches);
}
