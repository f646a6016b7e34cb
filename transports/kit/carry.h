// A collective in segments: from the caller's memory to what this rank gives, by one move between all ranks, and from
// what each has given to the caller's memory. Of a segment all is given before anything is written, so that a collective in
// place needs no other memory.
#ifndef WEIR_TRANSPORTS_CARRY_H
#define WEIR_TRANSPORTS_CARRY_H

#include <stdbool.h>
#include <weir/module/transport.h>

// Memory of a group, and what moves its bytes between the ranks.
struct weir_carrier {
    void *user;
    uint32_t rank;
    uint32_t count;
    // How many bytes a rank gives at most in one move; multiples of 8.
    size_t one;   // to all ranks or the root the same
    size_t each;  // to each rank others, for each
    size_t whole; // of a broadcast
    size_t
        small; // an all-reduce of at most so many takes one move: all ranks get all, and each adds it up
    // Where this rank writes what it gives in the next move. What has been given in the last one stays meanwhile.
    char *(*give)(void *user);
    // Moves what the ranks have given: in an ALL_GATHER or a GATHER `size` bytes of each, in a BROADCAST of the root, in an
    // ALL_TO_ALL or, of the root, a SCATTER so many for each rank. False: the group has failed.
    bool (*move)(void *user, weir_collective kind, size_t size);
    // What a rank has given this one in the last move.
    const char *(*given)(void *user, uint32_t from);
};

// Carries out a collective, without a move if it has no elements. False: a move was.
bool weir_carry(const struct weir_carrier *carrier, const struct weir_transport_call *call);

#endif
