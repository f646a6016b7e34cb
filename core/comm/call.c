#include "core/comm/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool is_reduction(weir_collective kind)
{
    return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

static bool is_rooted(weir_collective kind)
{
    return kind == WEIR_REDUCE || kind == WEIR_BROADCAST || kind == WEIR_GATHER ||
           kind == WEIR_SCATTER || kind == WEIR_SEND || kind == WEIR_RECV;
}

struct weir__call weir__call_of(const struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    const bool sized = kind != WEIR_EXCHANGE && kind != WEIR_BARRIER;
    struct weir__call call = {
        .number = operation->u.collective.number,
        .count = sized ? operation->u.collective.count : 0,
        .root = is_rooted(kind) ? operation->u.collective.root : 0,
        .line = operation->line,
        .kind = kind,
        .element = (uint16_t)(sized ? operation->u.collective.element : 0),
        .reduction = (uint16_t)(is_reduction(kind) ? operation->u.collective.reduction : 0),
    };
    const char *file = operation->file ? operation->file : "";
    const size_t length = strlen(file);
    const size_t skipped = length < sizeof call.file ? 0 : length + 1 - sizeof call.file;
    memcpy(call.file, file + skipped, length - skipped); // the rest is 0
    return call;
}

uint64_t weir__call_hash(const struct weir__call *call)
{
    const uint64_t hash =
        weir__call_mix(WEIR__CALL_SEED, call->kind | (uint64_t)call->element << 16 |
                                            (uint64_t)call->reduction << 32);
    return weir__call_mix(weir__call_mix(hash, call->count), call->root);
}

uint64_t weir__call_likeness_of_parts(const struct weir_operation *operation, uint64_t likeness)
{
    for (uint32_t i = 0; i < operation->u.collective.exchange_count; i++) {
        const struct weir_exchange *part = &operation->u.collective.exchanges[i];
        likeness = weir__call_mix(likeness, part->peer * 2 + part->receive);
        likeness = weir__call_mix(likeness, part->count * 16 + part->element);
    }
    return likeness | 1;
}

void weir__call_describe(const struct weir__call *call, char text[WEIR__CALL_TEXT_SIZE])
{
    char said[WEIR__CALL_FILE_SIZE];
    char file[WEIR__CALL_FILE_SIZE];
    snprintf(said, sizeof said, "%.*s", WEIR__CALL_FILE_SIZE - 1, call->file);
    weir_text_escape(file, sizeof file, said, "");
    snprintf(text, WEIR__CALL_TEXT_SIZE, "%s %" PRIu64 " (%s:%" PRId32 ")",
             weir_collective_name((weir_collective)call->kind), call->number, file, call->line);
}

bool weir__call_equals(const struct weir__call *a, const struct weir__call *b)
{
    return a->kind == b->kind && a->element == b->element && a->count == b->count &&
           a->reduction == b->reduction && a->root == b->root;
}

void weir__call_differ(const struct weir__call *own, uint32_t rank, const struct weir__call *theirs,
                       uint32_t peer, bool blames, char text[WEIR__CALL_TEXT_SIZE])
{
    char called[WEIR__CALL_TEXT_SIZE];
    char right[WEIR__CALL_TEXT_SIZE];
    const char *element = weir_datatype_name((weir_datatype)theirs->element);
    weir__call_describe(theirs, called);
    weir__call_describe(own, right);
    if (own->kind != theirs->kind && blames)
        snprintf(text, WEIR__CALL_TEXT_SIZE, "rank %" PRIu32 " has called %.160s instead", peer,
                 called);
    else if (own->kind != theirs->kind)
        snprintf(text, WEIR__CALL_TEXT_SIZE,
                 "rank %" PRIu32 " has called %.90s, and rank %" PRIu32 " %.90s", peer, called,
                 rank, right);
    else if (own->element != theirs->element || own->count != theirs->count)
        snprintf(text, WEIR__CALL_TEXT_SIZE,
                 "rank %" PRIu32 " has called %.120s with %" PRIu64 " %s, and rank %" PRIu32
                 " with %" PRIu64 " %s",
                 peer, called, theirs->count, element, rank, own->count,
                 weir_datatype_name((weir_datatype)own->element));
    else if (own->reduction != theirs->reduction)
        snprintf(text, WEIR__CALL_TEXT_SIZE,
                 "rank %" PRIu32 " has called %.120s with the reduction %s, and rank %" PRIu32
                 " with %s",
                 peer, called, weir_reduction_name((weir_reduction)theirs->reduction), rank,
                 weir_reduction_name((weir_reduction)own->reduction));
    else
        snprintf(text, WEIR__CALL_TEXT_SIZE,
                 "rank %" PRIu32 " has called %.120s with the root %" PRIu32 ", and rank %" PRIu32
                 " with %" PRIu32,
                 peer, called, theirs->root, rank, own->root);
}
