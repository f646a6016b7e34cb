// What a rank says of a collective to the others, and its comparison.
#ifndef WEIR_CORE_COMM_CALL_H
#define WEIR_CORE_COMM_CALL_H

#include <weir/module/operation.h>

enum {
    WEIR__CALL_FILE_SIZE = 32,
    WEIR__CALL_TEXT_SIZE = 256
};

// The same bytes on all ranks. What a kind does not use is 0.
struct weir__call {
    uint64_t number; // 0: none
    uint64_t count;
    uint32_t root;
    int32_t line;
    uint32_t kind;
    uint16_t element;
    uint16_t reduction;
    char file[WEIR__CALL_FILE_SIZE]; // its end
};

// SEND, RECV and EXCHANGE: only the ranks that they name take part, so they have no number.
static inline bool weir__call_is_direct(weir_collective kind)
{
    return kind == WEIR_SEND || kind == WEIR_RECV || kind == WEIR_EXCHANGE;
}

struct weir__call weir__call_of(const struct weir_operation *operation);

// Of kind, element, reduction, root and count: the same on all ranks.
uint64_t weir__call_hash(const struct weir__call *call);

// FNV-1a, a word at a time.
#define WEIR__CALL_SEED UINT64_C(14695981039346656037)
static inline uint64_t weir__call_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

uint64_t weir__call_likeness_of_parts(const struct weir_operation *operation, uint64_t likeness);

// Of the operands, and of an exchange's parts; never 0. This rank's own: what a kind does not use may
// count.
static inline uint64_t weir__call_likeness(const struct weir_operation *operation)
{
    const uint64_t hash =
        weir__call_mix(WEIR__CALL_SEED,
                       operation->u.collective.kind |
                           (uint64_t)(uint8_t)operation->u.collective.element << 8 |
                           (uint64_t)(uint8_t)operation->u.collective.reduction << 16 |
                           (uint64_t)operation->u.collective.root << 32);
    const uint64_t likeness = weir__call_mix(hash, operation->u.collective.count);
    return operation->u.collective.exchange_count
               ? weir__call_likeness_of_parts(operation, likeness)
               : likeness | 1;
}

// Whether two ranks have called the same.
bool weir__call_equals(const struct weir__call *a, const struct weir__call *b);

// Stores in a clause what `rank` and `peer` have called, which differs. Most ranks have called what
// `rank` has if it blames `peer`.
void weir__call_differ(const struct weir__call *own, uint32_t rank, const struct weir__call *theirs,
                       uint32_t peer, bool blames, char text[WEIR__CALL_TEXT_SIZE]);

// "all-reduce 16 (app.c:99)".
void weir__call_describe(const struct weir__call *call, char text[WEIR__CALL_TEXT_SIZE]);

#endif
