// What a rank says of a call to the others, its comparison, and the clause about two that differ.
#ifndef WEIR_BASE_CALL_H
#define WEIR_BASE_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/module/transport.h>

#define WEIR_HEAD_FILE_SIZE 64
#define WEIR_HEAD_TEXT_SIZE 128
#define WEIR_CALLS_TEXT_SIZE 320

// Kinds of calls beside those of weir_collective.
enum {
    WEIR_CALL_JOIN = 100,
    WEIR_CALL_SPLIT,
};

// The same bytes on all ranks.
struct weir_head {
    uint32_t kind;
    uint32_t element;
    uint32_t reduction;
    uint32_t root;
    uint64_t count;
    uint64_t number; // 0: none
    uint64_t
        new_group; // from MPI's rank 0: the number of the group that a join or a split makes; not compared
    int32_t line;
    char file[WEIR_HEAD_FILE_SIZE]; // the end of the file's name; "" if it is not known
};

static inline bool weir_is_reduction(uint32_t kind)
{
    return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

// Whether all ranks take part, and count it.
static inline bool weir_is_numbered(uint32_t kind)
{
    return kind != WEIR_SEND && kind != WEIR_RECV && kind != WEIR_EXCHANGE;
}

// From or to one rank of all.
static inline bool weir_is_rooted(uint32_t kind)
{
    return kind == WEIR_REDUCE || kind == WEIR_BROADCAST || kind == WEIR_GATHER ||
           kind == WEIR_SCATTER;
}

// What a kind does not use is 0, and so equal on all ranks.
struct weir_head weir_head_of(const struct weir_transport_call *call);
struct weir_head weir_head_of_line(uint32_t kind, uint64_t number, const char *file, int line);
// "all-reduce 16"
void weir_head_append(char *text, size_t size, size_t *used, const struct weir_head *head);
// The file without characters that control a terminal, since another rank names it as it likes. Whether it is known.
bool weir_head_file(const struct weir_head *head, char file[WEIR_HEAD_FILE_SIZE]);
// "all-reduce 16 (app.c:120)"
const char *weir_head_describe(const struct weir_head *head, char text[WEIR_HEAD_TEXT_SIZE]);
bool weir_head_equals(const struct weir_head *own, const struct weir_head *theirs);
// What `rank` and `peer` have called, which differs. If it `blames` the peer, most have called what `rank` has.
const char *weir_head_differ(const struct weir_head *own, uint32_t rank,
                             const struct weir_head *theirs, uint32_t peer, bool blames,
                             char text[WEIR_CALLS_TEXT_SIZE]);

// The call of a rank; NULL: it has not come, or its call is not known.
typedef const struct weir_head *weir_head_find(const void *user, uint32_t rank);

// Two ranks that have called different things.
struct weir_odd {
    uint32_t
        rank; // of those that have called what more than half of all have; else of those that have come
    uint32_t peer;
    bool is_odd; // the peer, since `rank` has called what most have; else either may be wrong
};

// Finds the first two. False: all ranks that have come have called the same.
bool weir_heads_find_odd(uint32_t count, weir_head_find *find, const void *user,
                         struct weir_odd *out_odd);

#endif
