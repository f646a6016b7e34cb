// Buckets of a small model on the ranks of one process.
#ifndef WEIR_TESTS_PATTERNS_BUCKETS_RIG_H
#define WEIR_TESTS_PATTERNS_BUCKETS_RIG_H

#include "patterns/buckets.h"
#include "tests/comm/rig.h"
#include "tests/support/own.h"

enum {
    BUCKETS_RIG_PARAMETERS = 6,
    BUCKETS_RIG_MOST = 1100, // elements of the largest parameter
};

struct buckets_rig {
    struct comm_rig comm;
    struct weir_bucket_parameter parameters[BUCKETS_RIG_PARAMETERS];
    struct weir_buckets_params params;
    weir_buckets *buckets[COMM_RIG_MOST];
};

// Opens so many ranks; and fills `params` in, for a model of which parameter 2 is optional, with a cap
// of 4 KiB and a first bucket of 900 bytes: three buckets, of parameters 0 and 1, 2 to 4, and 5. A test may change them
// before it creates the buckets.
void buckets_rig_open(struct buckets_rig *rig, uint32_t ranks);
void buckets_rig_create(struct buckets_rig *rig);
void buckets_rig_close(struct buckets_rig *rig);
// A test on so many ranks, with the file's own `rig`.
#define BUCKETS_TEST(suite, name, ranks) \
    WEIR_TEST_BETWEEN(suite, name, buckets_rig_open(&rig, ranks), buckets_rig_close(&rig))

// The gradient of an element that a rank computes in one pass: a whole number, so that sums and the
// averages of 2 and 4 ranks are exact.
float buckets_rig_number(uint32_t rank, uint32_t parameter, size_t element);

// Writes it, times `factor`, through the rank's queue, and marks the parameter.
void buckets_rig_mark(struct buckets_rig *rig, uint32_t rank, uint32_t parameter, float factor);

// A whole step of one pass: all ranks mark all parameters in order, and finish.
void buckets_rig_step(struct buckets_rig *rig, float factor);

// Expects that the rank's gradient is the average over all ranks, times `factor`.
void buckets_rig_expect(struct buckets_rig *rig, uint32_t rank, uint32_t parameter, float factor);
void buckets_rig_expect_all(struct buckets_rig *rig, float factor);

#endif
