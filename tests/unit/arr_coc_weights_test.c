// The seeded weights as the pipeline reads them: every tensor has its shape,
// and the mean and deviation that the generator promises.

#include <math.h>

#include "io/safetensors.h"
#include "tests/support/test.h"

enum {
    QUERY_SIZE = 1536
};

static void expect_moments(const weir_io_safetensors *file, const char *name, uint64_t rows,
                           uint64_t columns, double deviation)
{
    struct weir_io_error error = {""};
    const float *values = NULL;
    uint64_t shape[2] = {rows, columns};
    int rank = columns > 0 ? 2 : 1;
    uint64_t count = rank == 2 ? rows * columns : rows;
    if (!weir_io_safetensors_find(file, name, rank, shape, &values, &error)) {
        WEIR_FAIL("%s", error.message);
    }
    ASSERT_TRUE(weir_io_check_finite("weights", name, values, count, &error));

    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += values[i] / deviation;
        squares += (double)values[i] * values[i] / (deviation * deviation);
    }
    // Four standard errors of a mean and of a mean square of normally
    // distributed numbers.
    double n = (double)count;
    EXPECT_NEAR(sum / n, 0.0, 4 / sqrt(n));
    EXPECT_NEAR(squares / n, 1.0, 4 * sqrt(2 / n));
}

WEIR_TEST(ArrCocWeights, NamesShapesAndMagnitudes)
{
    struct weir_io_error error = {""};
    weir_io_safetensors *file = NULL;
    const char *path = weir_test_runfile("pipelines/arr_coc/weights/arr_coc_weights.safetensors");
    if (!weir_io_safetensors_open(path, &file, &error)) {
        WEIR_FAIL("%s", error.message);
    }
    EXPECT_SIZE_EQ(weir_io_safetensors_count(file), 10);
    expect_moments(file, "participatory.0.weight", 64, 13, sqrt(2.0 / 13));
    expect_moments(file, "participatory.0.bias", 64, 0, 0.1);
    expect_moments(file, "participatory.2.weight", QUERY_SIZE, 64, sqrt(2.0 / 64));
    expect_moments(file, "participatory.2.bias", QUERY_SIZE, 0, 0.1);
    expect_moments(file, "balancer.0.weight", 128, 9 + QUERY_SIZE, sqrt(2.0 / (9 + QUERY_SIZE)));
    expect_moments(file, "balancer.0.bias", 128, 0, 0.1);
    expect_moments(file, "balancer.2.weight", 128, 128, sqrt(2.0 / 128));
    expect_moments(file, "balancer.2.bias", 128, 0, 0.1);
    expect_moments(file, "balancer.4.weight", 3, 128, sqrt(2.0 / 128));
    expect_moments(file, "balancer.4.bias", 3, 0, 0.1);
    weir_io_safetensors_destroy(&file);
}
