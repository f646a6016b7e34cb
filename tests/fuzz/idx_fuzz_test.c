// Damaged files in the format of MNIST: each is read, and then every byte of every sample can be, or
// it is refused with a sentence that names the file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/train/data.h"
#include "tests/fuzz/damage.h"
#include "tests/support/test.h"

enum {
    ROUNDS = 1500,
    LIMIT = 128
};

static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0,
                                 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2};
static const uint8_t colours[] = {0, 0, 8, 4, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0,
                                  1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 4, 0, 9};

static size_t accepted;
static char image_path[256];
static char label_path[256];

// No sync, unlike base/file.h.
static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ASSERT_NOT_NULL(file);
    EXPECT_UINT_EQ(fwrite(bytes, 1, size, file), size);
    EXPECT_INT_EQ(fclose(file), 0);
}

static const char *check_set(const weir_train_data *data)
{
    const struct weir_train_shape shape = weir_train_data_shape(data);
    const size_t numbers = (size_t)shape.height * shape.width * shape.channels;
    const uint64_t count = weir_train_data_count(data);
    if (numbers == 0 || count == 0)
        return "a set is empty";
    if (numbers * count > LIMIT)
        return "a set is larger than its file";
    uint8_t *bytes = malloc(numbers);
    if (!bytes)
        return "no memory";
    const char *broken = NULL;
    for (uint64_t i = 0; i < count; i++)
        if (weir_train_data_bytes(data, i, bytes) >= weir_train_data_classes(data))
            broken = "a label is no class";
    free(bytes);
    return broken;
}

static const char *check(void)
{
    weir_train_data *data;
    weir_error_set(NULL);
    if (weir_train_data_open(image_path, label_path, &data) == WEIR_OK) {
        const char *broken = check_set(data);
        accepted++;
        weir_train_data_destroy(&data);
        return broken;
    }
    const char *text = weir_last_error()->message;
    if (data || weir_last_error()->status != WEIR_ERROR_IO)
        return "a refusal left a set, or is another error";
    return strstr(text, "/images: ") || strstr(text, "/labels: ") ? NULL
                                                                  : "a refusal names no file";
}

static void damage(struct damaged *damaged, const uint8_t *from, size_t size, uint32_t *state)
{
    damaged->size = 0;
    damage_insert(damaged, 0, from, size);
    for (size_t i = damage_below(state, 3); i > 0; i--) {
        const size_t at = damage_below(state, damaged->size);
        const uint8_t byte = (uint8_t)damage_below(state, 256);
        switch (damage_below(state, 4)) {
        case 0:
            damaged->bytes[at] = (uint8_t)damage_below(state, 5);
            break;
        case 1:
            damaged->bytes[at] ^= (uint8_t)(1u << byte % 8);
            break;
        case 2:
            damage_erase(damaged, at, 1 + damage_below(state, damaged->size - at));
            break;
        default:
            damage_insert(damaged, at, &byte, 1);
        }
        if (damaged->size == 0)
            break;
    }
}

WEIR_TEST(IdxFuzz, DamagedFilesKeepTheRules)
{
    uint32_t state = 20261123;
    uint8_t bytes[LIMIT];
    struct damaged file = {.bytes = bytes, .room = sizeof bytes};
    snprintf(image_path, sizeof image_path, "%s/images", weir_test_temp_dir());
    snprintf(label_path, sizeof label_path, "%s/labels", weir_test_temp_dir());
    for (size_t round = 0; round < ROUNDS; round++) {
        if (damage_below(&state, 2))
            damage(&file, images, sizeof images, &state);
        else
            damage(&file, colours, sizeof colours, &state);
        write_file(image_path, bytes, file.size);
        damage(&file, labels, sizeof labels, &state);
        write_file(label_path, bytes, file.size);
        const char *broken = check();
        if (broken)
            WEIR_FAIL("round %zu: %s: %s", round, broken, weir_last_error()->message);
    }
    // Both outcomes must be common, or the damage tests little.
    EXPECT_UINT_GT(accepted, ROUNDS / 20);
    EXPECT_UINT_LT(accepted, ROUNDS / 2);
}
