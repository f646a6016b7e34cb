// The fuzzer's function over mutations of a few good files, the same on every run.
// Mutations of the header keep its length field right most of the time: else nearly
// all of them would be refused at the first check.
#include "tests/fuzz/safetensors_fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"
#include "tests/support/test.h"

enum {
    ROUNDS = 20000,
    LIMIT = 1024
};

static const char *const headers[] = {
    "{}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[16,24]}}   ",
    "{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
    "\"y\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[1,1]},"
    "\"z\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[1,9]}}",
};
static const size_t bodies[] = {0, 24, 24, 9};

// Pieces of the format, so that mutations often stay JSON.
static const char *const words[] = {
    "0",
    "1",
    "4",
    "24",
    "-1",
    "9223372036854775807",
    "18446744073709551616",
    "1e9",
    "[]",
    "{}",
    "[0,",
    ",",
    "\"F32\"",
    "\"F64\"",
    "\"a\":",
    "\"dtype\"",
    "\\u0000",
    "\"",
    "}",
    "]",
    "[[[[[[[[",
    "__metadata__",
    "\xff",
    "null",
};

static uint64_t state;

// xorshift64*: https://vigna.di.unimi.it/ftp/papers/xorshift.pdf
static size_t pick(size_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * 2685821657736338717u >> 32) % below);
}

static size_t replace(unsigned char *bytes, size_t size, size_t at, size_t removed,
                      const void *added, size_t added_size)
{
    if (size - removed + added_size > LIMIT)
        return size;
    memmove(bytes + at + added_size, bytes + at + removed, size - at - removed);
    memcpy(bytes + at, added, added_size);
    return size - removed + added_size;
}

static size_t mutate(unsigned char *bytes, size_t size)
{
    if (size == 0)
        return size;
    size_t at = pick(size);
    const char *word = words[pick(sizeof words / sizeof *words)];
    unsigned char byte = (unsigned char)pick(256);
    switch (pick(6)) {
    case 0:
        bytes[at] ^= (unsigned char)(1u << pick(8));
        return size;
    case 1:
        bytes[at] = byte;
        return size;
    case 2:
        return replace(bytes, size, at, 1 + pick(size - at), "", 0);
    case 3:
        return replace(bytes, size, at, 0, word, strlen(word));
    case 4:
        return replace(bytes, size, at, 1, word, strlen(word));
    default: {
        unsigned char copy[16];
        size_t count = size - at < sizeof copy ? size - at : sizeof copy;
        memcpy(copy, bytes + at, count);
        return replace(bytes, size, pick(size), 0, copy, count);
    }
    }
}

// Joins the length, header and body in `bytes` and returns how many there are.
static size_t join(unsigned char *bytes, const unsigned char *header, size_t header_size,
                   size_t body)
{
    memset(bytes, 0, 8 + header_size + body);
    bytes[0] = (unsigned char)(header_size & 255);
    bytes[1] = (unsigned char)(header_size >> 8);
    memcpy(bytes + 8, header, header_size);
    return 8 + header_size + body;
}

WEIR_TEST(SafetensorsFuzz, MutatedFilesAreReadOrRefused)
{
    state = 88172645463325252u;
    int accepted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t which = pick(sizeof headers / sizeof *headers);
        unsigned char header[LIMIT];
        size_t header_size = strlen(headers[which]);
        memcpy(header, headers[which], header_size);
        for (size_t i = pick(4); i > 0; i--)
            header_size = mutate(header, header_size);

        unsigned char bytes[LIMIT + 64];
        size_t size = join(bytes, header, header_size, bodies[which] + pick(8) / 7);
        if (pick(8) == 0)
            bytes[pick(8)] = (unsigned char)pick(256);
        if (pick(8) == 0)
            size = pick(size);
        // An allocation of exactly the size lets the address sanitizer see one byte too
        // many being read.
        unsigned char *exact = malloc(size > 0 ? size : 1);
        ASSERT_NOT_NULL(exact);
        memcpy(exact, bytes, size);

        EXPECT_INT_EQ(LLVMFuzzerTestOneInput(exact, size), 0);
        weir_io_safetensors *file = NULL;
        struct weir_io_error error;
        accepted += weir_io_safetensors_open_memory("x", exact, size, &file, &error);
        weir_io_safetensors_destroy(&file);
        free(exact);
    }
    // Both outcomes must be common, or the mutations say little.
    EXPECT_INT_GT(accepted, ROUNDS / 20);
    EXPECT_INT_LT(accepted, ROUNDS / 2);
}
