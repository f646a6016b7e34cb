#include "io/npy.h"

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

WEIR_TEST(IoNpy, AnEmptyArrayHasDataToPointAt)
{
    const char *path = made_path(weir_test_temp_dir(), "a.npy");
    const uint64_t shape[2] = {0, 13};
    struct weir_io_npy array;
    ASSERT_TRUE(weir_io_npy_write(path, WEIR_IO_F32, 2, shape, NULL, &error));
    ASSERT_TRUE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
    EXPECT_UINT_EQ(array.count, 0);
    EXPECT_NOT_NULL(array.data);
    weir_io_npy_finish(&array);
    weir_io_npy_finish(&array);
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
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.npy");
    struct weir_io_npy array;
    EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "there is no such file");
    EXPECT_FALSE(weir_io_npy_read(folder, WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "is a directory");
    ASSERT_TRUE(made_file_write(path, "", 0));
    EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "it has 0 bytes");
    ASSERT_TRUE(made_file_write(path, "PK\x03\x04 a zip file, as .npz is", 28));
    EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "is not a .npy file");
    ASSERT_TRUE(made_file_write(path, "\x93NUMPY\x02\x00\x00\x00\x00\x00", 12));
    EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "format version 2.0; version 1.0 is read");
    ASSERT_TRUE(made_file_write(path, "\x93NUMPY\x01\x00\x02\x00{\0", 12));
    EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F32, &array, &error));
    EXPECT_CONTAINS(error.message, "zero byte");
    EXPECT_FALSE(weir_io_npy_read(path, WEIR_IO_F64, &array, &error));
    EXPECT_CONTAINS(error.message, "cannot be read as F64");
}

WEIR_TEST(IoNpy, RefusesToWriteWhatItCannot)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.npy");
    const uint64_t one[WEIR_IO_MAX_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t huge[2] = {UINT64_MAX / 2, 4};
    const float value = 1;
    EXPECT_FALSE(weir_io_npy_write(path, WEIR_IO_F64, 1, one, &value, &error));
    EXPECT_CONTAINS(error.message, "cannot be written as F64");
    EXPECT_FALSE(weir_io_npy_write(path, WEIR_IO_F32, WEIR_IO_MAX_RANK + 1, one, &value, &error));
    EXPECT_CONTAINS(error.message, "9 dimensions; the limit is 8");
    EXPECT_FALSE(weir_io_npy_write(path, WEIR_IO_F32, 2, huge, &value, &error));
    EXPECT_CONTAINS(error.message, "exceeds the address space");
    EXPECT_FALSE(
        weir_io_npy_write(made_path(folder, "no/a.npy"), WEIR_IO_F32, 1, one, &value, &error));
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
