// Cases of comparisons: what the file may have, what it is refused for, and when results are equal.
// The kernel is only a signature; matmul_twin_test launches one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compare/compare.h"
#include "tests/support/test.h"

#define PARAMETER(...)                                            \
    {                                                             \
        .struct_size = sizeof(struct weir_parameter), __VA_ARGS__ \
    }

static const struct weir_parameter parameters[] = {
    PARAMETER(.name = "in", .type_name = "const float4 *", .kind = WEIR_PARAMETER_BUFFER),
    PARAMETER(.name = "out", .type_name = "int *", .kind = WEIR_PARAMETER_BUFFER, .writable = 1),
    PARAMETER(.name = "n", .type_name = "uint", .kind = WEIR_PARAMETER_VALUE,
              .scalar = WEIR_SCALAR_U32, .size = 4),
    PARAMETER(.name = "s", .type_name = "float *", .kind = WEIR_PARAMETER_LOCAL),
    PARAMETER(.name = "v", .type_name = "float3", .kind = WEIR_PARAMETER_VALUE, .size = 16),
    PARAMETER(.name = "p", .type_name = "struct pair *", .kind = WEIR_PARAMETER_BUFFER,
              .writable = 1),
};
static const struct weir_kernel_signature kernels[] = {
    {.struct_size = sizeof *kernels, .name = "k", .parameters = parameters, .parameter_count = 6},
    {.struct_size = sizeof *kernels,
     .name = "many",
     .parameters = parameters,
     .parameter_count = 33},
};
static const struct weir_bundle bundle = {.struct_size = sizeof bundle,
                                          .name = "//a:b",
                                          .kernels = kernels,
                                          .kernel_count = 2};

#define HEAD "\"name\": \"c\", \"kernel\": \"k\", \"grid\": [2], \"block\": [8, 4]"
#define IN "{\"count\": 2, \"random\": [-1, 1]}"
#define OUT "{\"values\": [1, -2, 3]}"
#define REST ", {\"value\": 7}, {\"local\": 64}, {\"value\": [1, 2, 3, 0]}, "
#define PAIR "{\"count\": 5, \"type\": \"double\", \"from\": 0.5}"
#define ARGUMENTS "\"arguments\": [" IN ", " OUT REST PAIR "]"

// Reads the case; false with the message.
static bool read_case(const char *text, struct compare_case *one, json_t **out_root, char *message)
{
    json_error_t error;
    *out_root = json_loads(text, 0, &error);
    if (!*out_root)
        weir_test_fail(__FILE__, __LINE__, "%s: %s", text, error.text);
    return compare_read_case(*out_root, &bundle, one, message);
}

static const struct {
    const char *text;
    const char *part;
} refused[] = {
    {"{\"kernel\": \"k\"}", "a case is an object with a 'name'"},
    {"{\"name\": \"c\", \"kernel\": \"x\"}", "case 'c': 'kernel' names none of //a:b"},
    {"{\"name\": \"c\", \"kernel\": \"k\", \"grid\": [0], \"block\": [1]}",
     "'grid' is an array of one to"},
    {"{\"name\": \"c\", \"kernel\": \"k\", \"grid\": [1]}", "'block' is an array of one to"},
    {"{\"name\": \"c\", \"kernel\": \"many\", \"grid\": [1], \"block\": [1]}",
     "more than 32 parameters"},
    {"{" HEAD ", \"colour\": 1}", "case 'c': there is no key 'colour'"},
    {"{" HEAD ", \"tolerance\": 1}", "'tolerance' is an object"},
    {"{" HEAD ", \"tolerance\": {\"absolute\": 0}}", "'tolerance' has numbers above 0"},
    {"{" HEAD ", \"tolerance\": {\"absolute\": 1, \"ulp\": 2}}", "there is no key 'ulp'"},
    {"{" HEAD "}", "'arguments' has 0, and kernel 'k' 6"},
    {"{" HEAD ", \"arguments\": [1, 2, 3, 4, 5, 6]}", "parameter 'in': a buffer has 'values', or"},
#define BAD_IN(text) "{" HEAD ", \"arguments\": [" text ", " OUT REST PAIR "]}"
    {BAD_IN("{\"count\": 2}"), "a buffer has 'values', or a 'count' and one of"},
    {BAD_IN("{\"count\": 2, \"fill\": 1, \"from\": 1}"), "a buffer has 'values', or"},
    {BAD_IN("{\"count\": 2, \"random\": [1, 1]}"), "the lowest and the highest const float4 *"},
    {BAD_IN("{\"count\": 2, \"random\": [0, 1e40]}"), "the lowest and the highest"},
    {BAD_IN("{\"count\": 0, \"fill\": 1}"), "it has no elements, or too many"},
    {BAD_IN("{\"count\": 1000000000000, \"fill\": 1}"), "it has no elements, or too many"},
    {BAD_IN("{\"values\": [1, \"x\"]}"), "its values are numbers"},
    {BAD_IN("{\"values\": [1], \"local\": 2}"), "there is no key 'local'"},
    {BAD_IN("{\"count\": 2, \"fill\": 1, \"type\": \"float5\"}"),
     "is no number or vector of numbers"},
#define BAD(out, n, s, v, p) \
    "{" HEAD ", \"arguments\": [" IN ", " out ", " n ", " s ", " v ", " p "]}"
    {BAD("{\"values\": [0.5]}", "{}", "{}", "{}", "{}"), "parameter 'out': 0.5 is no int *"},
    {BAD("{\"values\": [2147483648]}", "{}", "{}", "{}", "{}"), "2.14748e+09 is no int *"},
    {BAD("{\"count\": 9, \"from\": 2147483640}", "{}", "{}", "{}", "{}"),
     "2.14748e+09 is no int *"},
    {BAD(OUT, "{\"local\": 4}", "{}", "{}", "{}"), "parameter 'n': it is passed by value"},
    {BAD(OUT, "{\"value\": -1}", "{}", "{}", "{}"), "-1 is no uint"},
    {BAD(OUT, "{\"value\": [1, 2]}", "{}", "{}", "{}"), "a uint has 4 bytes, and the value 8"},
    {BAD(OUT, "{\"value\": 1}", "{\"value\": 1}", "{}", "{}"), "parameter 's': it is local memory"},
    {BAD(OUT, "{\"value\": 1}", "{\"local\": 4, \"count\": 1}", "{}", "{}"),
     "there is no key 'count'"},
    {BAD(OUT, "{\"value\": 1}", "{\"local\": 4}", "{\"value\": [1, 2, 3]}", "{}"),
     "a float3 has 16 bytes, and the value 12"},
    {BAD(OUT, "{\"value\": 1}", "{\"local\": 4}", "{\"value\": [1, 2, 3, 0]}",
         "{\"count\": 1, \"fill\": 0}"),
     "parameter 'p': a struct pair * is no number or vector of numbers"},
};

WEIR_TEST(CompareCases, AreRefused)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct compare_case one;
        char message[COMPARE_MESSAGE] = "";
        json_t *root;
        weir_test_note("%s", refused[i].text);
        EXPECT_FALSE(read_case(refused[i].text, &one, &root, message));
        EXPECT_CONTAINS(message, refused[i].part);
        compare_case_finish(&one);
        json_decref(root);
    }
    weir_test_note(NULL);
}

// Results x of the twin and y of the OpenCL C, of `before`.
struct results {
    const char *type;
    size_t count;
    const void *x, *y;
    double absolute, relative;
    const char *line;
};

static const float y[] = {1, -0.0f, 1000}, same[] = {1, 0.0f, 1000}, near[] = {1.5f, 0, 1001},
                   with_nan[] = {1, NAN, 1000}, infinite[] = {1, 0, INFINITY};
static const int64_t large[] = {(INT64_C(1) << 60) + 1, 5}, rounded[] = {INT64_C(1) << 60, 5};
static const uint8_t bytes[] = {1, 2, 4}, near_bytes[] = {1, 2, 3}, before[64] = {1, 2, 3};

#define F32 "float", 3
static const struct results judged[] = {
    {F32, y, y, 0, 0, "ok    c: 'out': 3 elements, equal"},
    {F32, same, y, 0, 0, "ok    c: 'out': 3 elements, equal"},
    {F32, infinite, infinite, 0, 0, "ok    c: 'out': 3 elements, equal"},
    {F32, near, y, 0.5, 0.002, "ok    c: 'out': 3 elements; the worst, 0, differs by 0.5"},
    {F32, near, y, 0, 0, "FAIL  c: 'out': 2 of 3 elements differ too much"},
    {F32, near, y, 0.75, 0, "1 of 3 elements differ too much; element 2: 1001, and 1000 by"},
    {F32, near, y, 0, 0.002, "FAIL  c: 'out': 1 of 3 elements differ too much; element 0: 1.5"},
    {F32, with_nan, y, 1e9, 0, "FAIL  c: 'out': 1 of 3 elements differ too much; element 1: nan"},
    {F32, infinite, y, 1e9, 1e9, "FAIL  c: 'out': 1 of 3 elements differ too much; element 2: inf"},
    {F32, y, with_nan, 1e9, 0, "FAIL  c: 'out': the OpenCL C writes NaN"},
    {"long", 2, rounded, large, 0, 0, "FAIL  c: 'out': 1 of 2 elements differ too much"},
    {"long", 2, rounded, large, 2, 0, "ok    c: 'out': 2 elements"},
    {"uchar", 3, near_bytes, bytes, 1, 0, "ok    c: 'out': 3 elements; the worst, 2"},
    {"uchar", 3, bytes, before, 9, 0, "FAIL  c: 'out': the OpenCL C leaves it as it was"},
};

WEIR_TEST(CompareResults, AreJudged)
{
    for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) {
        const struct results *row = &judged[i];
        const struct compare_case one = {.name = "c",
                                         .absolute = row->absolute,
                                         .relative = row->relative};
        struct compare_argument argument = {.parameter = &parameters[1],
                                            .count = row->count,
                                            .data = (void *)(uintptr_t)before,
                                            .twin = (void *)(uintptr_t)row->x,
                                            .opencl = (void *)(uintptr_t)row->y};
        ASSERT_TRUE(compare_read_type(row->type, &argument));
        argument.size = row->count * argument.type->size;
        char *text = NULL;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        weir_test_note("row %zu", i);
        const bool fine = compare_judge(to, &one, &argument);
        fclose(to);
        EXPECT_INT_EQ(fine, strncmp(text, "ok ", 3) == 0);
        EXPECT_CONTAINS(text, row->line);
        free(text);
    }
    weir_test_note(NULL);
}
