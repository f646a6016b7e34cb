// Files of arrays: npy and safetensors.
#include "io/npy.h"
#include "io/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/io_made_files.h"

static struct weir_io_error error;

// Writes a .npy file with this dict as its header, of exactly its length, and `body`
// zero bytes after it.
static const char *put_dict(const char *folder, const char *dict, size_t body)
{
    static const unsigned char prefix[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    static unsigned char bytes[70000];
    const char *path = made_path(folder, "made.npy");
    size_t length = strlen(dict);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, prefix, sizeof prefix);
    bytes[8] = (unsigned char)(length & 255);
    bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + 10, dict, length + 1);
    return made_file_write(path, bytes, 10 + length + body) ? path : NULL;
}

WEIR_TEST(IoNpy, EveryRankAndTypeComesBack)
{
    const char *path = made_path(weir_test_temp_dir(), "a.npy");
    static const uint64_t shape[WEIR_IO_MAX_RANK] = {3, 2, 5, 1, 1, 2, 1, 2};
    float values[120];
    for (int i = 0; i < 120; i++)
        values[i] = (float)i * 0.25f - 7;
    for (int rank = 0; rank <= WEIR_IO_MAX_RANK; rank++) {
        for (int type = 0; type < 2; type++) {
            enum weir_io_dtype dtype = type ? WEIR_IO_I32 : WEIR_IO_F32;
            weir_test_note("rank %d type %d", rank, type);
            uint64_t count = 1;
            for (int i = 0; i < rank; i++)
                count *= shape[i];
            ASSERT_TRUE(weir_io_npy_write(path, dtype, rank, shape, values, &error));
            struct weir_io_npy array;
            ASSERT_TRUE(weir_io_npy_read(path, dtype, &array, &error));
            EXPECT_INT_EQ(array.dtype, dtype);
            EXPECT_INT_EQ(array.rank, rank);
            EXPECT_UINT_EQ(array.count, count);
            EXPECT_MEM_EQ(array.shape, shape, (size_t)rank * sizeof *shape);
            EXPECT_MEM_EQ(array.data, values, (size_t)count * 4);
            weir_io_npy_finish(&array);
            EXPECT_NULL(array.data);
        }
    }
}

WEIR_TEST(IoNpy, TheFileIsWhatNumpyWrites)
{
    const char *path = made_path(weir_test_temp_dir(), "a.npy");
    const int32_t values[6] = {1, -2, 3, 4, 5, 6};
    const uint64_t shape[2] = {2, 3};
    ASSERT_TRUE(weir_io_npy_write(path, WEIR_IO_I32, 2, shape, values, &error));
    size_t size = 0;
    unsigned char *bytes = made_file_read(path, &size);
    ASSERT_NOT_NULL(bytes);
    char want[128];
    snprintf(want, sizeof want, "%-117s\n",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }");
    EXPECT_UINT_EQ(size, 128 + sizeof values);
    EXPECT_MEM_EQ(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    EXPECT_MEM_EQ(bytes + 10, want, 118);
    EXPECT_MEM_EQ(bytes + 128, values, sizeof values);
    free(bytes);
}

// The address sanitizer sees a look beyond the longest header.
WEIR_TEST(IoNpy, RefusesAHeaderThatEndsBehindAKey)
{
    static const char begin[] = "{'descr': '<f4', 'fortran_order': False, ", end[] = "'shape'  ";
    static char dict[65536];
    struct weir_io_npy array;
    memset(dict, ' ', sizeof dict - 1);
    memcpy(dict, begin, sizeof begin - 1);
    memcpy(dict + sizeof dict - sizeof end, end, sizeof end);
    EXPECT_FALSE(
        weir_io_npy_read(put_dict(weir_test_temp_dir(), dict, 0), WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "no header");
}

WEIR_TEST(IoNpy, AcceptsOtherSpellingsOfTheDict)
{
    static const struct {
        const char *dict;
        int rank;
        size_t body;
    } rows[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }        \n", 1, 12},
        {"{'shape':(3,),'fortran_order':False,'descr':'<f4'}", 1, 12},
        {"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (1,3)}", 2, 12},
        {"  { 'descr' : '<f4' ,\n 'fortran_order' : False , 'shape' : ( 1 , 3 , ) , } ", 2, 12},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 0, 4},
    };
    const char *folder = weir_test_temp_dir();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("%s", rows[i].dict);
        struct weir_io_npy array;
        bool ok = weir_io_npy_read(put_dict(folder, rows[i].dict, rows[i].body), WEIR_IO_F32,
                                   &array, &error);
        EXPECT_STR_EQ(ok ? "" : error.message, "");
        EXPECT_INT_EQ(array.rank, rows[i].rank);
        weir_io_npy_finish(&array);
    }
}

#define BROKEN "has no header of one plain array of at most 8 dimensions"

WEIR_TEST(IoNpy, RefusesWhatItDoesNotRead)
{
    static const struct {
        const char *dict;
        size_t body;
        const char *part;
    } rows[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", 24, "astype('<f4')"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", 12, "type '>f4'"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 12, "type '<i4'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }", 12, "Fortran order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11,
         "is truncated: shape [3] needs 12"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 13, "1 bytes too many"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 0, "is truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296)}", 0,
         "impossible shape: [4294967296, 4294967296]"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 0, BROKEN},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4, BROKEN},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", 12, BROKEN},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", 12, BROKEN},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [3]}", 12, BROKEN},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 3)}", 12, BROKEN},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,", 12, BROKEN},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", 12, BROKEN},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", 12, BROKEN},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (3,)}", 12, BROKEN},
        {"{'descr': '<f4', 'fortran_order': False}", 12, BROKEN},
        {"{'descr': '<f4444444444444444444444444444444', 'fortran_order': False, 'shape': (3,)}",
         12, BROKEN},
        {"", 12, BROKEN},
    };
    const char *folder = weir_test_temp_dir();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("%s", rows[i].dict);
        struct weir_io_npy array;
        const char *path = put_dict(folder, rows[i].dict, rows[i].body);
        ASSERT_NOT_NULL(path);
        EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
        EXPECT_CONTAINS(error.message, "made.npy: ");
        EXPECT_CONTAINS(error.message, rows[i].part);
        EXPECT_NULL(array.data);
        weir_io_npy_finish(&array);
    }
}

WEIR_TEST(IoNpy, RefusesOtherFiles)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *part;
    } rows[] = {
        {"", 0, "it has 0 bytes"},
        {"PK\x03\x04 a zip file, as .npz is", 28, "is not a .npy file"},
        {"\x93NUMPY\x02\x00\x00\x00\x00\x00", 12, "format version 2.0; version 1.0 is read"},
        {"\x93NUMPY\x01\x00\x02\x00{\0", 12, "zero byte"},
    };
    const char *path = made_path(weir_test_temp_dir(), "a.npy");
    struct weir_io_npy array;
    EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "there is no such file");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ASSERT_TRUE(made_file_write(path, rows[i].bytes, rows[i].size));
        EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
        EXPECT_CONTAINS(error.message, rows[i].part);
    }
}

WEIR_TEST(IoNpy, SaysWhereItCannotWrite)
{
    const char *folder = weir_test_temp_dir();
    const uint64_t one = 1;
    const float value = 1;
    EXPECT_FALSE(
        weir_io_npy_write(made_path(folder, "no/a.npy"), WEIR_IO_F32, 1, &one, &value, &error));
    EXPECT_CONTAINS(error.message, "create the directory first");
    EXPECT_INT_EQ(made_folder_count(folder), 0);
}

WEIR_TEST(IoNpy, NamesTheFirstValueThatIsNoNumber)
{
    float values[4] = {0, -1e30f, 3, 4};
    EXPECT_TRUE(weir_io_check_finite("q.npy", "query", values, 4, &error));
    values[3] = INFINITY;
    EXPECT_FALSE(weir_io_check_finite("q.npy", "query", values, 4, &error));
    EXPECT_CONTAINS(error.message, "q.npy: the query at index 3 is infinite");
    values[1] = NAN;
    EXPECT_FALSE(weir_io_check_finite("q.npy", "query", values, 4, &error));
    EXPECT_CONTAINS(error.message, "at index 1 is NaN");
    EXPECT_TRUE(weir_io_check_finite("q.npy", "query", values, 0, &error));
}

// Safetensors.

static weir_io_safetensors *file;

static const float weight_values[6] = {1, 2, 3, 4, 5, 6};
static const float bias_values[2] = {-1, -2};
static const int32_t step_values[1] = {77};

static const struct weir_io_tensor tensors[] = {
    {.name = "balancer.0.weight", .rank = 2, .shape = {2, 3}, .data = weight_values},
    {.name = "balancer.0.bias", .rank = 1, .shape = {2}, .data = bias_values},
    {.name = "steps", .dtype = WEIR_IO_I32, .data = step_values},
    {.name = "none", .rank = 2, .shape = {0, 5}},
};

// Opens a file made of this header text and `body` zero bytes.
static bool open_header(const char *header, size_t body)
{
    static unsigned char bytes[4096];
    size_t length = strlen(header);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (unsigned char)(length & 255);
    bytes[1] = (unsigned char)(length >> 8);
    memcpy(bytes + 8, header, length + 1);
    error.message[0] = '\0';
    const char *path = made_path(weir_test_temp_dir(), "made");
    return made_file_write(path, bytes, 8 + length + body) &&
           weir_io_safetensors_open(path, &file, &error);
}

WEIR_TEST(IoSafetensors, WhatIsWrittenComesBack)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "w.safetensors");
    ASSERT_TRUE(weir_io_safetensors_write(path, tensors, 4, &error));
    EXPECT_INT_EQ(made_folder_count(folder), 1);
    ASSERT_TRUE(weir_io_safetensors_open(path, &file, &error));
    EXPECT_UINT_EQ(file->count, 4);

    const float *values = NULL;
    ASSERT_TRUE(
        weir_io_safetensors_find(file, "balancer.0.weight", 2, tensors[0].shape, &values, &error));
    EXPECT_MEM_EQ(values, weight_values, sizeof weight_values);
    ASSERT_TRUE(
        weir_io_safetensors_find(file, "balancer.0.bias", 1, tensors[1].shape, &values, &error));
    EXPECT_MEM_EQ(values, bias_values, sizeof bias_values);

    const struct weir_io_tensor *steps = weir_io_safetensors_get(file, "steps");
    ASSERT_NOT_NULL(steps);
    EXPECT_INT_EQ(steps->dtype, WEIR_IO_I32);
    EXPECT_INT_EQ(steps->rank, 0);
    EXPECT_UINT_EQ(steps->size_bytes, 4);
    EXPECT_MEM_EQ(steps->data, step_values, 4);
    EXPECT_NULL(weir_io_safetensors_get(file, "step"));
    weir_io_safetensors_destroy(&file);
    EXPECT_NULL(file);
    weir_io_safetensors_destroy(&file);
}

WEIR_TEST(IoSafetensors, TheFileFollowsTheFormat)
{
    const char *path = made_path(weir_test_temp_dir(), "w.safetensors");
    static const char header[] = "{\"balancer.0.bias\":{\"dtype\":\"F32\",\"shape\":[2],"
                                 "\"data_offsets\":[0,8]}}     ";
    ASSERT_TRUE(weir_io_safetensors_write(path, tensors + 1, 1, &error));
    size_t size = 0;
    unsigned char *bytes = made_file_read(path, &size);
    ASSERT_NOT_NULL(bytes);
    EXPECT_UINT_EQ(size, 8 + 72 + 8);
    EXPECT_MEM_EQ(bytes, "\x48\0\0\0\0\0\0\0", 8);
    EXPECT_MEM_EQ(bytes + 8, header, 72);
    EXPECT_MEM_EQ(bytes + 80, bias_values, 8);
    free(bytes);
}

WEIR_TEST(IoSafetensors, TensorsComeInTheOrderOfTheBody)
{
    ASSERT_TRUE(open_header("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                            "\"__metadata__\":{\"format\":\"pt\"},"
                            "\"a\":{\"shape\":[2,2],\"data_offsets\":[0,4],\"dtype\":\"U8\"}}  ",
                            8));
    ASSERT_UINT_EQ(file->count, 2);
    const struct weir_io_tensor *a = &file->tensors[0];
    const struct weir_io_tensor *b = &file->tensors[1];
    EXPECT_STR_EQ(a->name, "a");
    EXPECT_INT_EQ(a->dtype, WEIR_IO_U8);
    EXPECT_STR_EQ(b->name, "b");
    EXPECT_PTR_EQ((const char *)a->data + 4, b->data);
    EXPECT_UINT_EQ((uintptr_t)b->data % 4, 0);
    weir_io_safetensors_destroy(&file);
}

WEIR_TEST(IoSafetensors, EveryDtypeHasItsSize)
{
    static const struct {
        const char *name;
        int bytes;
    } rows[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
                {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
                {"F32", 4},  {"F64", 8}, {"I64", 8}, {"U64", 8},     {"C64", 8}};
    EXPECT_UINT_EQ(sizeof rows / sizeof *rows, WEIR_IO_DTYPE_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[256];
        weir_test_note("%s", rows[i].name);
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}", rows[i].name,
                 rows[i].bytes * 3);
        EXPECT_TRUE(open_header(header, (size_t)rows[i].bytes * 3));
        weir_io_safetensors_destroy(&file);
    }
}

WEIR_TEST(IoSafetensors, FindSaysWhatWasWantedAndFound)
{
    const char *path = made_path(weir_test_temp_dir(), "w.safetensors");
    ASSERT_TRUE(weir_io_safetensors_write(path, tensors, 4, &error));
    ASSERT_TRUE(weir_io_safetensors_open(path, &file, &error));
    const uint64_t wrong[3] = {2, 4, 1};
    const uint64_t any[2] = {WEIR_IO_ANY_SIZE, 3};
    const uint64_t none[2] = {WEIR_IO_ANY_SIZE, 4};
    const float *values = weight_values;

    EXPECT_FALSE(weir_io_safetensors_find(file, "balancer.0.weight", 2, wrong, &values, &error));
    EXPECT_CONTAINS(error.message, "w.safetensors: tensor 'balancer.0.weight' has the shape "
                                   "[2, 3], but [2, 4] is needed");
    EXPECT_NULL(values);
    EXPECT_FALSE(weir_io_safetensors_find(file, "balancer.0.weight", 3, wrong, &values, &error));
    EXPECT_CONTAINS(error.message, "[2, 4, 1] is needed");
    EXPECT_TRUE(weir_io_safetensors_find(file, "balancer.0.weight", 2, any, &values, &error));
    EXPECT_FALSE(weir_io_safetensors_find(file, "balancer.0.weight", 2, none, &values, &error));
    EXPECT_CONTAINS(error.message, "[any, 4] is needed");

    EXPECT_FALSE(weir_io_safetensors_find(file, "balancer.0.wieght", 2, any, &values, &error));
    EXPECT_CONTAINS(error.message, "has no tensor 'balancer.0.wieght'; the nearest name is "
                                   "'balancer.0.weight'");
    EXPECT_FALSE(weir_io_safetensors_find(file, "embedding", 2, any, &values, &error));
    EXPECT_CONTAINS(error.message, "none of a similar name among its 4");
    EXPECT_FALSE(weir_io_safetensors_find(file, "steps", 0, NULL, &values, &error));
    EXPECT_CONTAINS(error.message, "is of type I32, but F32 is needed");
    weir_io_safetensors_destroy(&file);
}

WEIR_TEST(IoSafetensors, AnUnalignedTensorIsNamed)
{
    const float *values = NULL;
    const uint64_t shape[1] = {1};
    ASSERT_TRUE(open_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                            "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
                            5));
    EXPECT_FALSE(weir_io_safetensors_find(file, "b", 1, shape, &values, &error));
    EXPECT_CONTAINS(error.message, "tensor 'b' begins at byte 1 of the body, no multiple of 4");
    weir_io_safetensors_destroy(&file);
}

#define F32(name, shape, offsets) \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

WEIR_TEST(IoSafetensors, RefusesBrokenHeaders)
{
    static const struct {
        const char *header;
        size_t body;
        const char *part;
    } rows[] = {
        {"[]", 0, "does not begin with '{'"},
        {" {}", 0, "does not begin with '{'"},
        {"{]", 0, "has a broken header: "},
        {"{} x", 0, "has a broken header: "},
        {"{\"\xff\":1}", 0, "has a broken header: "},
        {"{" F32("a", "[1]", "[0,4]") "," F32("a", "[1]", "[4,8]") "}", 8,
         "broken header: duplicate"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 8, "broken header: duplicate"},
        {"{\"a\":1}", 0, "'a' is not an object of dtype, shape and data_offsets"},
        {"{\"a\":{}}", 0, "'a' is not an object"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4,
         "'a' is not an object"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"offsets\":[0,4]}}", 4,
         "data_offsets of tensor 'a'"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "unknown dtype 'F33'"},
        {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype ''"},
        {"{" F32("a", "1", "[0,4]") "}", 4, "shape of tensor 'a'"},
        {"{" F32("a", "[-1]", "[0,4]") "}", 4, "shape of tensor 'a'"},
        {"{" F32("a", "[1.0]", "[0,4]") "}", 4, "shape of tensor 'a'"},
        {"{" F32("a", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "at most 8 whole numbers"},
        {"{" F32("a", "[99999999999999999999]", "[0,4]") "}", 4, "has a broken header: "},
        {"{" F32("a", "[1]", "[0]") "}", 4, "data_offsets of tensor 'a'"},
        {"{" F32("a", "[1]", "[0,4,8]") "}", 8, "data_offsets of tensor 'a'"},
        {"{" F32("a", "[1]", "[4,0]") "}", 4, "data_offsets of tensor 'a'"},
        {"{" F32("a", "[1]", "[0,-4]") "}", 4, "data_offsets of tensor 'a'"},
        {"{" F32("a", "[1]", "[0,4]") "}", 3, "ends at byte 4 of the body, which has 3"},
        {"{" F32("a", "[1]", "[0,9223372036854775807]") "}", 4, "ends at byte 9223372036854775807"},
        {"{" F32("a", "[2]", "[0,4]") "}", 4, "shape [2] cannot fill the 4 bytes"},
        {"{" F32("a", "[4294967296,4294967296]", "[0,0]") "}", 0, "cannot fill the 0 bytes"},
        {"{" F32("a", "[1152921504606846977,4]", "[0,16]") "}", 16, "cannot fill the 16 bytes"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[0,4]") "}", 4, "begins at byte 0"},
        {"{" F32("a", "[2]", "[0,8]") "," F32("b", "[2]", "[4,12]") "}", 12,
         "'b' begins at byte 4 of the body, where 8 was due"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[8,12]") "}", 12, "begins at byte 8"},
        {"{" F32("a", "[1]", "[4,8]") "}", 8, "begins at byte 4"},
        {"{" F32("a", "[1]", "[0,4]") "}", 5, "1 bytes after its last tensor"},
        {"{}", 1, "1 bytes after its last tensor"},
        {"{\"__metadata__\":1}", 0, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ entry 'a' is not a string"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("%s", rows[i].header);
        EXPECT_FALSE(open_header(rows[i].header, rows[i].body));
        EXPECT_NULL(file);
        EXPECT_CONTAINS(error.message, "made: ");
        EXPECT_CONTAINS(error.message, rows[i].part);
        weir_io_safetensors_destroy(&file);
    }
}

WEIR_TEST(IoSafetensors, RefusesImpossibleHeaderLengths)
{
    const char *path = made_path(weir_test_temp_dir(), "w.safetensors");
    static const struct {
        const char *bytes;
        size_t size;
        const char *part;
    } rows[] = {
        {"", 0, "it has 0 bytes"},
        {"\2\0\0\0\0\0\0", 7, "it has 7 bytes, fewer than the 8"},
        {"\0\0\0\0\0\0\0\0", 8, "does not begin with '{'"},
        {"\1\0\0\0\0\0\0\0{", 9, "has a broken header"},
        {"\2\0\0\0\0\0\0\0{", 9, "2 bytes, but only 1 follow"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
         "18446744073709551615 bytes, the limit is 100000000"},
        {"\1\xe1\xf5\5\0\0\0\0{}", 10, "100000001 bytes, the limit is 100000000"},
        {"\0\xe1\xf5\5\0\0\0\0{}", 10, "100000000 bytes, but only 2 follow"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("row %zu", i);
        ASSERT_TRUE(made_file_write(path, rows[i].bytes, rows[i].size));
        EXPECT_FALSE(weir_io_safetensors_open(path, &file, &error));
        EXPECT_CONTAINS(error.message, "w.safetensors: ");
        EXPECT_CONTAINS(error.message, rows[i].part);
        EXPECT_NULL(file);
    }
}

WEIR_TEST(IoSafetensors, SaysWhereItCannotWrite)
{
    const char *folder = weir_test_temp_dir();
    EXPECT_FALSE(weir_io_safetensors_write(made_path(folder, "no/w"), &tensors[1], 1, &error));
    EXPECT_CONTAINS(error.message, "create the directory first");
    EXPECT_INT_EQ(made_folder_count(folder), 0);
}
