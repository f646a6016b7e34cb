// Any bytes given to the reader of safetensors files: a refusal is a sentence that begins with the file's name, and
// leaves no file; the tensors lie in the body, side by side in their order, and fill it; each has the bytes of its
// shape, is found under its name, and its values can be read.
#include <stdio.h>
#include <string.h>

#include "io/safetensors.h"
#include "tests/fuzz/damage.h"
#include "tests/support/test.h"

static size_t accepted;

static const char *check_tensor(const weir_io_safetensors *file,
                                const struct weir_io_tensor *tensor)
{
    uint64_t bytes = 0;
    const float *values = NULL;
    struct weir_io_error error;
    if (tensor->rank < 0 || tensor->rank > WEIR_IO_MAX_RANK)
        return "a tensor's rank is outside of its limits";
    if (!weir_io_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &bytes) ||
        bytes != tensor->size_bytes)
        return "a tensor has not the bytes of its shape";
    if (weir_io_safetensors_get(file, tensor->name) != tensor)
        return "a tensor is not found under its name";
    if (!weir_io_safetensors_find(file, tensor->name, tensor->rank, tensor->shape, &values, &error))
        return NULL; // of another type than float32
    if (tensor->dtype != WEIR_IO_F32 || (const void *)values != tensor->data)
        return "a tensor's values are not its data";
    // Touches every value, so that the address sanitizer sees a wrong size.
    weir_io_check_finite("fuzz", "value", values, (size_t)(bytes / 4), &error);
    return NULL;
}

static const char *check_file(const weir_io_safetensors *file, uint64_t body)
{
    const float *values = NULL;
    struct weir_io_error error;
    uint64_t total = 0;
    const unsigned char *due = NULL;
    for (size_t i = 0; i < file->count; i++) {
        const struct weir_io_tensor *tensor = &file->tensors[i];
        const char *broken = check_tensor(file, tensor);
        if (broken)
            return broken;
        if (due && due != tensor->data)
            return "a tensor does not begin where the one before it ends";
        due = (const unsigned char *)tensor->data + tensor->size_bytes;
        total += tensor->size_bytes;
    }
    if (weir_io_safetensors_find(file, "no such tensor anywhere", 0, NULL, &values, &error))
        return "a tensor is found that is not there";
    return total == body ? NULL : "the tensors do not fill the body";
}

// NULL, or the rule that is broken.
static const char *check_bytes(const uint8_t *data, size_t size)
{
    weir_io_safetensors *file = NULL;
    struct weir_io_error error = {{0}};
    uint64_t header = 0;
    const char *path = damage_file(data, size);
    if (!path)
        return "the file cannot be written";
    if (!weir_io_safetensors_open(path, &file, &error)) {
        const size_t length = strlen(path);
        if (file)
            return "a refusal left a file";
        return strncmp(error.message, path, length) == 0 && strlen(error.message) > length + 10
                   ? NULL
                   : "a refusal is no sentence that begins with the file's name";
    }
    if (!file)
        return "a file was read and is not there";
    for (int i = 7; i >= 0; i--)
        header = header << 8 | data[i];
    const char *broken = check_file(file, size - 8 - header);
    weir_io_safetensors_destroy(&file);
    accepted++;
    return broken;
}

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

// Pieces of the format, so that the damaged text is often still JSON.
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

// Joins the length, header and body in `bytes` and returns the number of bytes.
static size_t join(uint8_t *bytes, const struct damaged *header, size_t body)
{
    memset(bytes, 0, 8 + header->size + body);
    bytes[0] = (uint8_t)(header->size & 255);
    bytes[1] = (uint8_t)(header->size >> 8);
    memcpy(bytes + 8, header->bytes, header->size);
    return 8 + header->size + body;
}

WEIR_TEST(SafetensorsFuzz, DamagedFilesKeepTheRules)
{
    uint32_t state = 20240607;
    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t which = damage_below(&state, sizeof headers / sizeof *headers);
        uint8_t header_bytes[LIMIT];
        uint8_t bytes[LIMIT + 64];
        struct damaged header = {.bytes = header_bytes, .room = sizeof header_bytes};
        damage_insert(&header, 0, headers[which], strlen(headers[which]));
        for (size_t i = damage_below(&state, 4); i > 0; i--)
            damage_change(&header, &state, words, sizeof words / sizeof *words);

        size_t size = join(bytes, &header, bodies[which] + damage_below(&state, 8) / 7);
        if (damage_below(&state, 8) == 0)
            bytes[damage_below(&state, 8)] = (uint8_t)damage_below(&state, 256);
        if (damage_below(&state, 8) == 0)
            size = damage_below(&state, size);
        const char *broken = damage_check(check_bytes, bytes, size);
        if (broken)
            WEIR_FAIL("round %zu: %s, after its length:\n%.*s", round, broken,
                      size > 8 ? (int)(size - 8) : 0, (const char *)bytes + 8);
    }
    // Both outcomes must be common, or the damage tests little.
    EXPECT_UINT_GT(accepted, ROUNDS / 20);
    EXPECT_UINT_LT(accepted, ROUNDS / 2);
}
