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

// Of kind, element, reduction, root and count, and of an exchange's parts; never 0.
uint64_t weir__call_hash(const struct weir_operation *operation);

// Whether two ranks have called the same. If not, stores what `peer` has called in a clause.
bool weir__call_same(const struct weir__call *own, uint32_t rank, const struct weir__call *theirs,
                     uint32_t peer, char text[WEIR__CALL_TEXT_SIZE]);

// "all-reduce 16 (app.c:99)".
void weir__call_describe(const struct weir__call *call, char text[WEIR__CALL_TEXT_SIZE]);

#endif
