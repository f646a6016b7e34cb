// The libraries of other packages are found, and header and archive are of one
// version: a header from one folder and an archive from another would link.

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>
#include <jansson.h>
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

static int count_key(void *user, const char *section, const char *key, const char *value)
{
    int *count = user;
    *count +=
        strcmp(section, "weir") == 0 && strcmp(key, "backend") == 0 && strcmp(value, "null") == 0;
    return 1;
}

WEIR_TEST(Libraries, InihReads)
{
    int count = 0;
    EXPECT_INT_EQ(ini_parse_string("[weir]\nbackend = null\n", count_key, &count), 0);
    EXPECT_INT_EQ(count, 1);
}

WEIR_TEST(Libraries, PngIsOfItsHeader)
{
    EXPECT_UINT_EQ(png_access_version_number(), PNG_LIBPNG_VER);
}

WEIR_TEST(Libraries, ZlibIsOfItsHeader)
{
    EXPECT_STR_EQ(zlibVersion(), ZLIB_VERSION);
}

WEIR_TEST(Libraries, JpegIsOfItsHeader)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    // Refuses a header of another version or another struct size.
    jpeg_create_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    EXPECT_INT_EQ(errors.num_warnings, 0);
}

WEIR_TEST(Libraries, JanssonReads)
{
    EXPECT_INT_EQ(jansson_version_cmp(JANSSON_MAJOR_VERSION, JANSSON_MINOR_VERSION,
                                      JANSSON_MICRO_VERSION),
                  0);
    json_error_t error;
    json_t *root = json_loads("{\"queues\": 3}", 0, &error);
    ASSERT_NOT_NULL(root);
    EXPECT_INT_EQ(json_integer_value(json_object_get(root, "queues")), 3);
    json_decref(root);
}
