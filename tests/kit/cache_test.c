// The kit's cache on disk: with a place, without one, and full.
#define _GNU_SOURCE // mkdtemp
#include <weir/kit/cache.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/kit/host.h"
#include "tests/support/test.h"

static void make_folder(char *folder, size_t size)
{
    const char *root = getenv("TEST_TMPDIR");
    snprintf(folder, size, "%s/kit-cache-XXXXXX", root ? root : "/tmp");
    ASSERT_NOT_NULL(mkdtemp(folder));
}

WEIR_TEST(KitCache, KeepsWhatIsWritten)
{
    struct kit_host *host = kit_host_reset();
    char folder[512];
    void *data;
    size_t size;
    make_folder(folder, sizeof folder);
    weir_kit_cache *cache = weir_kit_cache_open(&kit_test_host, "third", folder);
    ASSERT_NOT_NULL(cache);
    EXPECT_FALSE(weir_kit_cache_read(cache, "key", &data, &size));
    EXPECT_NULL(data);
    weir_kit_cache_write(cache, "key", "binary", 6);
    ASSERT_TRUE(weir_kit_cache_read(cache, "key", &data, &size));
    ASSERT_UINT_EQ(size, 6);
    EXPECT_TRUE(memcmp(data, "binary", 6) == 0);
    free(data);
    weir_kit_cache_close(&cache);
    EXPECT_NULL(cache);
    EXPECT_INT_EQ(host->allocations, 0);
    EXPECT_STR_EQ(host->message, "");
}

WEIR_TEST(KitCache, WithoutAPlaceEverythingGoesOn)
{
    struct kit_host *host = kit_host_reset();
    void *data;
    size_t size;
    weir_kit_cache *cache = weir_kit_cache_open(&kit_test_host, "third", "/dev/null/nowhere");
    EXPECT_NULL(cache);
    EXPECT_INT_EQ(host->level, WEIR_LOG_WARNING);
    EXPECT_STR_EQ(host->source, "third");
    EXPECT_CONTAINS(host->message, "/dev/null");
    weir_kit_cache_write(cache, "key", "binary", 6);
    EXPECT_FALSE(weir_kit_cache_read(cache, "key", &data, &size));
    EXPECT_UINT_EQ(size, 0);
    weir_kit_cache_close(&cache);
    EXPECT_INT_EQ(host->allocations, 0);
}

WEIR_TEST(KitCache, WithoutMemoryThereIsNone)
{
    struct kit_host *host = kit_host_reset();
    host->left = 0;
    EXPECT_NULL(weir_kit_cache_open(&kit_test_host, "third", "/tmp"));
    EXPECT_NULL(weir_kit_format(&kit_test_host, "%d", 7));
}

WEIR_TEST(KitCache, WhatCannotBeKeptIsLogged)
{
    struct kit_host *host = kit_host_reset();
    char folder[512];
    char entries[600];
    char elsewhere[600];
    make_folder(folder, sizeof folder);
    weir_kit_cache *cache = weir_kit_cache_open(&kit_test_host, "third", folder);
    ASSERT_NOT_NULL(cache);
    snprintf(entries, sizeof entries, "%s/third", folder);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    ASSERT_INT_EQ(rename(entries, elsewhere), 0);
    weir_kit_cache_write(cache, "key", "binary", 6);
    EXPECT_INT_EQ(host->level, WEIR_LOG_WARNING);
    EXPECT_STR_EQ(host->source, "third");
    EXPECT_TRUE(host->message[0] != '\0');
    weir_kit_cache_close(&cache);
}

WEIR_TEST(KitCache, KeysAreOfAnyLength)
{
    struct kit_host *host = kit_host_reset();
    char *text = weir_kit_format(&kit_test_host, "%2000d-%s", 7, "end");
    ASSERT_NOT_NULL(text);
    EXPECT_UINT_EQ(strlen(text), 2004);
    EXPECT_STR_EQ(text + 1999, "7-end");
    kit_test_host.release(text);
    EXPECT_INT_EQ(host->allocations, 0);
}
