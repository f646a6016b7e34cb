// What <weir/module/size.h> and its neighbours give modules for structures whose sizes differ:
// each is on the heap, so that a sanitizer sees an access past its end.
#include <stdlib.h>

#include <weir/module/module.h>

#include "tests/support/test.h"

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
    weir_test_note(NULL);
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
            EXPECT_SIZE_EQ(to->struct_size, room);
            EXPECT_SIZE_EQ(from->struct_size, size);
            for (size_t i = sizeof size; i < room; i++)
                EXPECT_INT_EQ(((unsigned char *)to)[i], i < least ? 0x11 : 0xa5);
            free(to);
            free(from);
        }
    weir_test_note(NULL);
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
    weir_test_note(NULL);
}
