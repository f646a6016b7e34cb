// Which piece of whose memory each rank needs for a collective, and ranks that wait for each other.
#include <string.h>

#include "base/text.h"
#include "transports/local/local.h"

// Which rank needs which piece of which other rank's memory. A collective on the whole of a buffer is
// made of chunks, one for each rank: rank i reduces, or receives of the root, chunk i, and all ranks
// copy it from there. So no rank, the root included, sends more than about twice what it holds.
// And the loop over the pieces of a phase, for ranks that read each other's memory.

struct chunk {
    size_t offset;
    size_t size;
};

static struct chunk chunk_of(const struct local_run *run, uint32_t index)
{
    const uint32_t n = run->group->count;
    const size_t element = weir_datatype_size(run->by.head.element);
    const uint64_t each = run->by.head.count / n;
    const uint64_t longer = run->by.head.count % n; // the first ones have one element more
    const uint64_t begin = each * index + (index < longer ? index : longer);
    return (struct chunk){(size_t)begin * element, (size_t)(each + (index < longer)) * element};
}

static size_t whole_of(const struct local_run *run)
{
    return (size_t)run->by.head.count * weir_datatype_size(run->by.head.element);
}

uint32_t local_phases(uint32_t kind)
{
    switch (kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_BROADCAST:
        return 2;
    case WEIR_REDUCE:
    case WEIR_ALL_GATHER:
    case WEIR_REDUCE_SCATTER:
    case WEIR_ALL_TO_ALL:
    case WEIR_GATHER:
    case WEIR_SCATTER:
    case WEIR_CALL_SPLIT:
    case WEIR_CALL_JOIN:
        return 1;
    default:
        return 0;
    }
}

static struct local_piece all_reduce_piece(const struct local_run *run, uint32_t phase,
                                           uint32_t reader, uint32_t owner)
{
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    const bool wanted = phase == 0 || reader != owner;
    return (struct local_piece){
        .of_result = phase == 1,
        .reduced = phase == 0,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

// The root copies its own `src` to its `dst`, unless that is in place.
static struct local_piece broadcast_piece(const struct local_run *run, uint32_t phase,
                                          uint32_t reader, uint32_t owner)
{
    const uint32_t root = run->by.head.root;
    if (reader == root)
        return (struct local_piece){.size = phase == 0 && owner == root ? whole_of(run) : 0};

    const bool wanted = phase == 0 ? owner == root : owner != reader;
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    return (struct local_piece){
        .of_result = owner != root,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

static struct local_piece single_piece(const struct local_run *run, uint32_t reader, uint32_t owner)
{
    const size_t whole = whole_of(run);
    const uint32_t root = run->by.head.root;
    switch (run->by.head.kind) {
    case WEIR_REDUCE:
        return (struct local_piece){.reduced = true, .size = reader == root ? whole : 0};
    case WEIR_REDUCE_SCATTER:
        return (struct local_piece){.reduced = true, .size = whole, .offset = reader * whole};
    case WEIR_ALL_GATHER:
    case WEIR_CALL_SPLIT:
    case WEIR_CALL_JOIN:
        return (struct local_piece){.size = whole, .target = owner * whole};
    case WEIR_ALL_TO_ALL:
        return (
            struct local_piece){.size = whole, .offset = reader * whole, .target = owner * whole};
    case WEIR_GATHER:
        return (struct local_piece){.size = reader == root ? whole : 0, .target = owner * whole};
    case WEIR_SCATTER:
        return (struct local_piece){.size = owner == root ? whole : 0, .offset = reader * whole};
    default:
        return (struct local_piece){.size = 0};
    }
}

bool local_piece(const struct local_run *run, uint32_t phase, uint32_t reader, uint32_t owner,
                 struct local_piece *out_piece)
{
    if (run->by.head.kind == WEIR_ALL_REDUCE)
        *out_piece = all_reduce_piece(run, phase, reader, owner);
    else if (run->by.head.kind == WEIR_BROADCAST)
        *out_piece = broadcast_piece(run, phase, reader, owner);
    else
        *out_piece = single_piece(run, reader, owner);
    return out_piece->size > 0;
}

void local_append_wait(char *text, const struct local_wait *wait)
{
    static const char more[] = ", and so on";
    size_t used = strlen(text);
    const bool full = used > WEIR_CAUSE_SIZE - WEIR_HEAD_TEXT_SIZE - WEIR_HEAD_TEXT_SIZE / 2;
    if (!full)
        weir_text_append(text, WEIR_CAUSE_SIZE, &used, "%srank %u waits in %.80s for rank %u",
                         used ? ", " : "", wait->rank, wait->call, wait->awaits);
    else if (strcmp(text + used - strlen(more), more) != 0)
        weir_text_append(text, WEIR_CAUSE_SIZE, &used, "%s", more);
}

bool local_circle(const struct local_run *run, const char *waits)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    return weir_caller_blame(&run->by, WEIR_FAULT_SILENT, UINT32_MAX,
                             "the ranks wait in a circle, for %s: %s",
                             weir_text_duration(duration, (double)run->by.timeout_ns), waits);
}

bool local_late_elsewhere(const struct local_run *run, uint32_t peer, const char *elsewhere)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    return weir_caller_blame(
        &run->by, WEIR_FAULT_SILENT, peer,
        "rank %u has not come to it in %s: it waits in %s; use communicators in the same "
        "order on all ranks",
        peer, weir_text_duration(duration, (double)run->by.timeout_ns), elsewhere);
}
