// The conformance matrix of collectives: kinds, datatypes, reductions, in place and not, sizes from 0 to more than
// any transport moves at once; what each rank has to send, and what it has to get, computed in float64.
#ifndef WEIR_TESTS_COMM_MATRIX_H
#define WEIR_TESTS_COMM_MATRIX_H

#include <stdbool.h>
#include <weir/comm.h>

// Of the ranges that the largest case reads and writes.
#define MATRIX_BYTES ((size_t)616 << 10)

struct matrix_case {
    weir_collective kind;
    weir_datatype element;
    weir_reduction reduction;
    size_t count;
    bool in_place;
    uint32_t ranks;
};

// Calls `run` for each case of that many ranks; ends, and returns false, when that does. The largest
// size goes with the sum alone, and with elements of 4 bytes and more.
bool matrix_each(uint32_t ranks, bool (*run)(void *user, const struct matrix_case *it), void *user);

// The root of those that have one.
uint32_t matrix_root(const struct matrix_case *it);
// The bytes that a rank reads at `*out_src_offset` of a buffer, and writes at `*out_dst_offset`: in place of the same
// buffer, else of another one. 0 where it reads or writes nothing.
size_t matrix_read(const struct matrix_case *it, uint32_t rank, size_t *out_src_offset);
size_t matrix_written(const struct matrix_case *it, uint32_t rank, size_t *out_dst_offset);
// What the rank sends: as many bytes as it reads.
void matrix_fill(const struct matrix_case *it, uint32_t rank, char *to);
// Whether `got` is what the rank has to get. Else the text says what is wrong.
bool matrix_check(const struct matrix_case *it, uint32_t rank, const char *got, char *text,
                  size_t size);
// Whether all ranks get the same.
bool matrix_is_equal(const struct matrix_case *it);

#endif
