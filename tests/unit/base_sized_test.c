// Structures whose sizes differ, as the library and its modules read and write them.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/module/module.h>

#include "base/sized.h"
#include "tests/support/test.h"

// Structures that come with their size: shorter, longer, and of sizes that cannot be.

struct known {
    size_t struct_size;
    uint32_t first;
    uint32_t second;
};

struct newer {
    struct known known;
    uint64_t third;
    uint64_t fourth;
};

static struct weir_sized_refusal refusal;

static bool read_it(const void *given, struct known *known)
{
    memset(known, 0xa5, sizeof *known);
    refusal = (struct weir_sized_refusal){.message = ""};
    return weir_sized_read("weir_call", "weir_known", given, known, sizeof *known, &refusal);
}

WEIR_TEST(Sized, EqualSizes)
{
    const struct known given = {sizeof given, 3, 4};
    struct known known;

    ASSERT_TRUE(read_it(&given, &known));
    EXPECT_UINT_EQ(known.first, 3);
    EXPECT_UINT_EQ(known.second, 4);
    EXPECT_UINT_EQ(known.struct_size, sizeof known);
}

// Each on the heap, so that a sanitizer sees a read past its end.
WEIR_TEST(Sized, ShorterOnesAreFilledWithZeros)
{
    const struct known whole = {0, 0x11111111, 0x22222222};
    struct known known;

    for (size_t size = sizeof(size_t); size < sizeof whole; size++) {
        void *given = malloc(size);
        ASSERT_NOT_NULL(given);
        memcpy(given, &whole, size);
        memcpy(given, &size, sizeof size);
        weir_test_note("%zu bytes", size);
        ASSERT_TRUE(read_it(given, &known));
        EXPECT_UINT_EQ(known.struct_size, sizeof known);
        EXPECT_UINT_EQ(known.first,
                       size < 12 ? 0x11111111 & ((1u << 8 * (size - 8)) - 1) : 0x11111111);
        EXPECT_UINT_EQ(known.second, size < 12 ? 0 : 0x22222222 & ((1u << 8 * (size - 12)) - 1));
        free(given);
    }
}

WEIR_TEST(Sized, LongerOnesMustEndInZeros)
{
    struct newer given = {.known = {sizeof given, 3, 4}};
    struct known known;

    ASSERT_TRUE(read_it(&given, &known));
    EXPECT_UINT_EQ(known.second, 4);
    EXPECT_UINT_EQ(known.struct_size, sizeof known);
    given.fourth = UINT64_C(1) << 56; // the last byte of all
    ASSERT_FALSE(read_it(&given, &known));
    EXPECT_CONTAINS(refusal.message, "weir_call: struct weir_known has 32 bytes in the program and "
                                     "16 in this library, and byte 31");
    EXPECT_CONTAINS(refusal.remedy, "leave fields zero");
    given.third = 1;
    ASSERT_FALSE(read_it(&given, &known));
    EXPECT_CONTAINS(refusal.message, "byte 16");
}

// The size of an item is told beside its array.
WEIR_TEST(Sized, ItemsAreReadAlike)
{
    struct newer given = {.known = {1, 3, 4}};
    struct known known;
    const char *caller = "weir_call";

    ASSERT_TRUE(weir_sized_read_item(caller, "weir_known", &given, sizeof given, &known,
                                     sizeof known, &refusal));
    EXPECT_UINT_EQ(known.struct_size, 1);
    EXPECT_UINT_EQ(known.second, 4);
    ASSERT_TRUE(
        weir_sized_read_item(caller, "weir_known", &given, 12, &known, sizeof known, &refusal));
    EXPECT_UINT_EQ(known.first, 3);
    EXPECT_UINT_EQ(known.second, 0);
    given.third = 1;
    ASSERT_FALSE(weir_sized_read_item(caller, "weir_known", &given, sizeof given, &known,
                                      sizeof known, &refusal));
    EXPECT_CONTAINS(refusal.message, "weir_call: struct weir_known has 32 bytes in the program and "
                                     "16 in this library, and byte 16");
}

WEIR_TEST(Sized, ImpossibleSizesAreRefused)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, WEIR_SIZED_BYTES_MAX + 1, SIZE_MAX};
    struct known given = {0, 3, 4};
    struct known known;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        given.struct_size = sizes[i];
        ASSERT_FALSE(read_it(&given, &known));
        EXPECT_CONTAINS(refusal.message, "weir_call: struct_size is ");
        EXPECT_CONTAINS(refusal.message, "struct weir_known has 16 bytes in this library");
        EXPECT_CONTAINS(refusal.remedy, "sizeof params");
    }
}

WEIR_TEST(Sized, WritesNoMoreThanThereIsRoomFor)
{
    const struct newer from = {.known = {sizeof from, 3, 4}, .third = 5};
    struct known *shorter = calloc(1, sizeof *shorter);
    unsigned char longer[2 * sizeof from];

    ASSERT_NOT_NULL(shorter);
    weir_sized_write_back(shorter, sizeof *shorter, &from, sizeof from);
    EXPECT_UINT_EQ(shorter->second, 4);
    EXPECT_UINT_EQ(shorter->struct_size, sizeof *shorter);
    free(shorter);

    memset(longer, 0xa5, sizeof longer);
    weir_sized_write(longer, sizeof longer, &from, sizeof from);
    EXPECT_INT_EQ(memcmp(longer, &from, sizeof from), 0);
    for (size_t i = sizeof from; i < sizeof longer; i++)
        EXPECT_UINT_EQ(longer[i], 0);
}

// What <weir/module/size.h> and its neighbours give modules for structures whose sizes differ:
// each is on the heap, so that a sanitizer sees an access past its end.

struct made {
    size_t struct_size;
    uint32_t first;
    uint32_t second;
    uint64_t third;
};

static struct made *made_of(size_t size)
{
    struct made *made = malloc(size);
    if (!made)
        abort();
    memset(made, 0xa5, size);
    memcpy(made, &size, sizeof size);
    return made;
}

WEIR_TEST(ModuleSize, HasTellsWhetherAFieldIsThere)
{
    for (size_t size = sizeof(size_t); size <= 32; size++) {
        struct made *made = made_of(size);
        weir_test_note("%zu bytes", size);
        EXPECT_TRUE(WEIR_HAS(made, struct_size));
        EXPECT_TRUE(WEIR_HAS(made, first) == (size >= 12));
        EXPECT_TRUE(WEIR_HAS(made, second) == (size >= 16));
        EXPECT_TRUE(WEIR_HAS(made, third) == (size >= 24));
        free(made);
    }
}

WEIR_TEST(ModuleSize, LinkHasTellsWhetherASlotIsThere)
{
    struct weir_link link = {.struct_size = sizeof link, .slot_count = 0};
    EXPECT_FALSE(WEIR_LINK_HAS(&link, open)); // the first
    link.slot_count = 1;
    EXPECT_TRUE(WEIR_LINK_HAS(&link, open));
    EXPECT_FALSE(WEIR_LINK_HAS(&link, close));
    link.slot_count = offsetof(struct weir_module_ops, queue_leave) / sizeof(void (*)(void));
    EXPECT_FALSE(WEIR_LINK_HAS(&link, queue_leave));
    link.slot_count++;
    EXPECT_TRUE(WEIR_LINK_HAS(&link, queue_leave));
}

// Both keep their sizes, and nothing lies beyond either of them.
WEIR_TEST(ModuleSize, WriteGoesNoFurtherThanEither)
{
    for (size_t room = sizeof(size_t); room <= sizeof(struct made); room += 4)
        for (size_t size = sizeof(size_t); size <= sizeof(struct made); size += 4) {
            struct made *to = made_of(room);
            struct made *from = made_of(size);
            const size_t least = size < room ? size : room;
            memset((char *)from + sizeof size, 0x11, size - sizeof size);
            weir_test_note("%zu of %zu bytes", size, room);
            WEIR_WRITE(to, from);
            EXPECT_UINT_EQ(to->struct_size, room);
            EXPECT_UINT_EQ(from->struct_size, size);
            for (size_t i = sizeof size; i < room; i++)
                EXPECT_INT_EQ(((unsigned char *)to)[i], i < least ? 0x11 : 0xa5);
            free(to);
            free(from);
        }
}

WEIR_TEST(ModuleSize, OperationsAreCopiedWhole)
{
    struct weir_operation_room room;
    for (uint32_t size = 40; size <= WEIR_OPERATION_BYTES_MAX; size += 8) {
        unsigned char *operation = malloc(size);
        ASSERT_NOT_NULL(operation);
        memset(operation, 0x33, size);
        memcpy(operation, &size, sizeof size);
        weir_test_note("%u bytes", (unsigned)size);
        const struct weir_operation *copy =
            weir_operation_copy(&room, (const struct weir_operation *)(const void *)operation);
        EXPECT_UINT_EQ(copy->struct_size, size);
        EXPECT_INT_EQ(memcmp(copy, operation, size), 0);
        free(operation);
    }
}
