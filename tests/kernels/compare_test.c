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

WEIR_TEST(CompareCases, HaveEveryKindOfArgument)
{
    struct compare_case one;
    char message[COMPARE_MESSAGE] = "";
    json_t *root;
    EXPECT_TRUE(read_case("{" HEAD ", " ARGUMENTS ", \"tolerance\": {\"relative\": 0.5}}", &one,
                          &root, message));
    EXPECT_STR_EQ(message, "");
    EXPECT_UINT_EQ(one.block.y, 4);
    EXPECT_UINT_EQ(one.grid.z, 1);
    ASSERT_UINT_EQ(one.argument_count, 6);
    EXPECT_UINT_EQ(one.arguments[0].size, 32);
    for (size_t i = 0; i < 8; i++)
        EXPECT_TRUE(fabs(compare_get(WEIR_SCALAR_F32, one.arguments[0].data, i)) <= 1);
    EXPECT_INT_EQ(((const int *)one.arguments[1].data)[1], -2);
    EXPECT_UINT_EQ(*(const unsigned *)one.arguments[2].data, 7);
    EXPECT_UINT_EQ(one.arguments[3].size, 64);
    EXPECT_UINT_EQ(one.arguments[4].size, 16);
    EXPECT_TRUE(compare_get(WEIR_SCALAR_F64, one.arguments[5].data, 4) == 4.5);
    EXPECT_TRUE(one.relative == 0.5 && one.absolute == 0);
    compare_case_finish(&one);
    json_decref(root);
}

static const struct {
    const char *text;
    const char *part;
} refused[] = {
    {"{\"kernel\": \"k\"}", "a case is an object with a 'name'"},
    {"[]", "a case is an object with a 'name'"},
    {"{\"name\": \"c\", \"kernel\": \"x\"}", "case 'c': 'kernel' names none of //a:b"},
    {"{\"name\": \"c\"}", "'kernel' names none"},
    {"{\"name\": \"c\", \"kernel\": \"k\", \"grid\": [0], \"block\": [1]}",
     "'grid' is an array of one to"},
    {"{\"name\": \"c\", \"kernel\": \"k\", \"grid\": [1,1,1,1]}", "'grid' is an array of one to"},
    {"{\"name\": \"c\", \"kernel\": \"k\", \"grid\": [1]}", "'block' is an array of one to"},
    {"{\"name\": \"c\", \"kernel\": \"many\", \"grid\": [1], \"block\": [1]}",
     "more than 32 parameters"},
    {"{" HEAD ", \"colour\": 1}", "case 'c': there is no key 'colour'"},
    {"{" HEAD ", \"tolerance\": 1}", "'tolerance' is an object"},
    {"{" HEAD ", \"tolerance\": {\"absolute\": 0}}", "'tolerance' has numbers above 0"},
    {"{" HEAD ", \"tolerance\": {\"absolute\": -1, \"relative\": 2}}",
     "'tolerance' has numbers above 0"},
    {"{" HEAD ", \"tolerance\": {\"absolute\": 1, \"ulp\": 2}}", "there is no key 'ulp'"},
    {"{" HEAD "}", "'arguments' has 0, and kernel 'k' 6"},
    {"{" HEAD ", \"arguments\": [1, 2, 3, 4, 5, 6]}", "parameter 'in': a buffer has 'values', or"},
#define BAD_IN(text) "{" HEAD ", \"arguments\": [" text ", " OUT REST PAIR "]}"
    {BAD_IN("{\"count\": 2}"), "a buffer has 'values', or a 'count' and one of"},
    {BAD_IN("{\"count\": 2, \"values\": [1]}"), "a buffer has 'values', or"},
    {BAD_IN("{\"count\": 2, \"fill\": 1, \"from\": 1}"), "a buffer has 'values', or"},
    {BAD_IN("{\"random\": [0, 1]}"), "a buffer has 'values', or"},
    {BAD_IN("{\"count\": 2, \"random\": [1, 1]}"), "the lowest and the highest const float4 *"},
    {BAD_IN("{\"count\": 2, \"random\": [0, 1e40]}"), "the lowest and the highest"},
    {BAD_IN("{\"count\": 0, \"fill\": 1}"), "it has no elements, or too many"},
    {BAD_IN("{\"count\": -1, \"fill\": 1}"), "it has no elements, or too many"},
    {BAD_IN("{\"count\": 9000000000000000000, \"fill\": 1}"), "it has no elements, or too many"},
    {BAD_IN("{\"count\": 1000000000000, \"fill\": 1}"), "it has no elements, or too many"},
    {BAD_IN("{\"values\": []}"), "it has no elements"},
    {BAD_IN("{\"values\": [1, \"x\"]}"), "its values are numbers"},
    {BAD_IN("{\"values\": [1], \"local\": 2}"), "there is no key 'local'"},
    {BAD_IN("{\"count\": 2, \"fill\": 1, \"type\": \"float5\"}"),
     "is no number or vector of numbers"},
    {BAD_IN("{\"count\": 2, \"fill\": 1, \"type\": 3}"), "is no number or vector of numbers"},
#define BAD(out, n, s, v, p) \
    "{" HEAD ", \"arguments\": [" IN ", " out ", " n ", " s ", " v ", " p "]}"
    {BAD("{\"values\": [0.5]}", "{}", "{}", "{}", "{}"), "parameter 'out': 0.5 is no int *"},
    {BAD("{\"values\": [2147483648]}", "{}", "{}", "{}", "{}"), "2.14748e+09 is no int *"},
    {BAD("{\"count\": 9, \"from\": 2147483640}", "{}", "{}", "{}", "{}"),
     "'from' is the first of 9"},
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

static void expect_file(const char *text, const char *part)
{
    char path[256], message[COMPARE_MESSAGE] = "";
    snprintf(path, sizeof path, "%s/cases.json", getenv("TEST_TMPDIR"));
    FILE *file = fopen(path, "w");
    ASSERT_TRUE(file != NULL);
    fputs(text, file);
    fclose(file);
    EXPECT_NULL(compare_read_file(path, message));
    EXPECT_CONTAINS(message, "cases.json");
    EXPECT_CONTAINS(message, part);
}

WEIR_TEST(CompareCases, FilesAreRefused)
{
    char message[COMPARE_MESSAGE] = "";
    EXPECT_NULL(compare_read_file("/nonexistent/cases.json", message));
    EXPECT_CONTAINS(message, "/nonexistent/cases.json: there is no such file");
    expect_file("{\n\"cases\": [", "cases.json:2: ");
    expect_file("{\"cases\": []}", "an object with one key, 'cases', an array that is not empty");
    expect_file("{\"cases\": [1], \"case\": 1}", "an object with one key");
    expect_file("[1]", "an object with one key");
}

static bool judged(weir_scalar scalar, const void *x, const void *y, size_t count, double absolute,
                   double relative, const char *part)
{
    static const char before[64] = {1, 2, 3};
    const struct compare_case one = {.name = "c", .absolute = absolute, .relative = relative};
    const struct compare_argument argument = {.parameter = &parameters[1],
                                              .scalar = scalar,
                                              .count = count,
                                              .size = count * compare_scalar_size(scalar),
                                              .data = (void *)(uintptr_t)before};
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    const bool fine = compare_judge(to, &one, &argument, x, y);
    fclose(to);
    EXPECT_CONTAINS(text, fine ? "ok    c: 'out': " : "FAIL  c: 'out': ");
    EXPECT_CONTAINS(text, part);
    free(text);
    return fine;
}

WEIR_TEST(CompareResults, OfFloats)
{
    const float y[] = {1, -0.0f, 1000}, same[] = {1, 0.0f, 1000}, near[] = {1.5f, 0, 1001};
    const float nan[] = {1, NAN, 1000}, infinite[] = {1, 0, INFINITY};
    EXPECT_TRUE(judged(WEIR_SCALAR_F32, y, y, 3, 0, 0, "3 elements, equal"));
    EXPECT_TRUE(judged(WEIR_SCALAR_F32, same, y, 3, 0, 0, "3 elements, equal"));
    EXPECT_FALSE(judged(WEIR_SCALAR_F32, near, y, 3, 0, 0, "2 of 3 elements differ too much"));
    EXPECT_FALSE(
        judged(WEIR_SCALAR_F32, near, y, 3, 0.75, 0,
               "1 of 3 elements differ too much; element 2: 1001, and 1000 by the OpenCL C"));
    EXPECT_FALSE(judged(WEIR_SCALAR_F32, near, y, 3, 0, 0.002, "element 0: 1.5, and 1 by"));
    EXPECT_TRUE(judged(WEIR_SCALAR_F32, near, y, 3, 0.5, 0.002,
                       "3 elements; the worst, 0, differs by 0.5"));
    EXPECT_FALSE(judged(WEIR_SCALAR_F32, nan, y, 3, 1e9, 0, "element 1: nan, and -0 by"));
    EXPECT_FALSE(judged(WEIR_SCALAR_F32, infinite, y, 3, 1e9, 1e9, "element 2: inf, and 1000"));
    EXPECT_TRUE(judged(WEIR_SCALAR_F32, infinite, infinite, 3, 0, 0, "equal"));
    EXPECT_FALSE(judged(WEIR_SCALAR_F32, y, nan, 3, 1e9, 0, "the OpenCL C writes NaN"));
}

WEIR_TEST(CompareResults, OfWholeNumbers)
{
    const int64_t y[] = {(INT64_C(1) << 60) + 1, 5}, x[] = {INT64_C(1) << 60, 5};
    const uint8_t bytes[] = {1, 2, 4}, near[] = {1, 2, 3}, before[] = {1, 2, 3};
    EXPECT_FALSE(judged(WEIR_SCALAR_I64, x, y, 2, 0, 0, "1 of 2 elements differ too much"));
    EXPECT_TRUE(judged(WEIR_SCALAR_I64, x, y, 2, 2, 0, "2 elements"));
    EXPECT_TRUE(judged(WEIR_SCALAR_U8, near, bytes, 3, 1, 0, "the worst, 2, differs by 1"));
    EXPECT_FALSE(judged(WEIR_SCALAR_U8, bytes, before, 3, 9, 0, "leaves it as it was"));
}
