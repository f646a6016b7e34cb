// The checks of a module's tables, on tables that are changed one entry at a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/module/loader.h"
#include "tests/support/test.h"

static void never(void)
{
    abort();
}

static const char *const colours[] = {"red", "blue", NULL};

// A valid backend with one key of each type.
struct sample {
    struct weir_module module;
    struct weir_module_ops ops;
    struct weir_key keys[4];
};

static void sample_init(struct sample *sample)
{
    *sample = (struct sample){
        .keys =
            {
                WEIR_TEXT_KEY("text", "", "A text."),
                WEIR_INTEGER_KEY("integer", "-3", -5, 5, "A number."),
                WEIR_BOOLEAN_KEY("boolean", "1", "A switch."),
                WEIR_CHOICE_KEY("choice", "blue", colours, "A colour."),
            },
        .module =
            {
                .abi = WEIR_MODULE_ABI,
                .struct_size = sizeof sample->module,
                .kind = WEIR_MODULE_BACKEND,
                .name = "sample",
                .version = "1",
                .sanitizer = WEIR_MODULE_SANITIZER,
                .key_count = 4,
                .key_size = sizeof sample->keys[0],
                .slot_count = WEIR_MODULE_SLOT_COUNT,
                .operation_kinds = WEIR_OPERATION_KINDS,
            },
    };
    sample->module.keys = sample->keys;
    sample->module.ops = &sample->ops;
    for (size_t i = 0; i < WEIR_MODULE_SLOT_COUNT; i++) {
        void (*function)(void) = never;
        memcpy((char *)&sample->ops + i * sizeof function, &function, sizeof function);
    }
}

static void clear_slot(struct sample *sample, size_t index)
{
    memset((char *)&sample->ops + index * sizeof(void (*)(void)), 0, sizeof(void (*)(void)));
}

static void expect_sound(const struct sample *sample, enum weir_module_kind kind)
{
    struct weir__finding finding = {{0}, {0}};

    EXPECT_TRUE(weir__module_check(&sample->module, "sample", kind, &finding));
    EXPECT_STR_EQ(finding.reason, "");
}

static void expect_reason(const struct sample *sample, const char *reason)
{
    struct weir__finding finding = {{0}, {0}};

    EXPECT_FALSE(weir__module_check(&sample->module, "sample", 0, &finding));
    EXPECT_CONTAINS(finding.reason, reason);
    EXPECT_STR_NE(finding.remedy, "");
}

// The sample with this change is refused.
#define EXPECT_BROKEN(change, reason)   \
    do {                                \
        struct sample sample;           \
        sample_init(&sample);           \
        sample.change;                  \
        expect_reason(&sample, reason); \
    } while (0)

WEIR_TEST(ModuleCheck, AcceptsTheSample)
{
    struct sample sample;

    sample_init(&sample);
    expect_sound(&sample, WEIR_MODULE_BACKEND);
    expect_sound(&sample, 0);
    sample.module.key_count = 0;
    sample.module.keys = NULL;
    sample.module.sanitizer = WEIR_MODULE_SANITIZER[0] ? WEIR_MODULE_SANITIZER : NULL;
    expect_sound(&sample, WEIR_MODULE_BACKEND);
}

// The slots that a full table of this kind may not lack. Each of them is named if it is missing.
static size_t count_needed(enum weir_module_kind kind)
{
    size_t needed = 0;
    for (size_t i = 0; i < WEIR_MODULE_SLOT_COUNT; i++) {
        struct sample sample;
        struct weir__finding finding = {{0}, {0}};

        sample_init(&sample);
        sample.module.kind = kind;
        clear_slot(&sample, i);
        weir_test_note("slot %zu", i);
        if (weir__module_check(&sample.module, "sample", kind, &finding))
            continue;
        needed++;
        EXPECT_CONTAINS(finding.reason, "slot `");
        EXPECT_STR_NE(finding.remedy, "");
    }
    weir_test_note(NULL);
    return needed;
}

WEIR_TEST(ModuleCheck, EverySlotMissingInTurn)
{
    EXPECT_UINT_EQ(count_needed(WEIR_MODULE_BACKEND), 27);
    EXPECT_UINT_EQ(count_needed(WEIR_MODULE_PLUGIN), 22); // what has a partner in the table
    EXPECT_BROKEN(module.slot_count = 3, "slot `");
    EXPECT_BROKEN(ops.queue_submit = NULL, "`queue_submit`");
    EXPECT_BROKEN(ops.event_wait = NULL, "`event_wait`");
    EXPECT_BROKEN(ops.graph_destroy = NULL, "`graph_create` without `graph_destroy`");
    EXPECT_BROKEN(ops.comm_query = NULL, "`comm_query`");
}

WEIR_TEST(ModuleCheck, PluginsMayLeaveAllSlotsUnset)
{
    struct sample sample;

    sample_init(&sample);
    sample.module.kind = WEIR_MODULE_PLUGIN;
    expect_sound(&sample, WEIR_MODULE_PLUGIN);
    sample.ops = (struct weir_module_ops){0};
    expect_sound(&sample, WEIR_MODULE_PLUGIN);
    sample.module.slot_count = 0;
    expect_sound(&sample, WEIR_MODULE_PLUGIN);
    sample.module.ops = NULL;
    expect_reason(&sample, "no ops table");
}

// A module of another ABI may have other members at these places.
WEIR_TEST(ModuleCheck, ReadsNothingAfterAnUnknownAbi)
{
    struct weir__finding finding;
    uint32_t *abi = calloc(1, sizeof *abi);

    ASSERT_NOT_NULL(abi);
    *abi = 99;
    EXPECT_FALSE(
        weir__module_check((const struct weir_module *)(const void *)abi, "sample", 0, &finding));
    EXPECT_CONTAINS(finding.reason, "ABI 99");
    free(abi);
}

WEIR_TEST(ModuleCheck, Identity)
{
    EXPECT_BROKEN(module.name = NULL, "calls itself ''");
    EXPECT_BROKEN(module.name = "simple", "weir_sample.so calls itself 'simple'");
    EXPECT_BROKEN(module.kind = 0, "kind 0");
    EXPECT_BROKEN(module.struct_size = offsetof(struct weir_module, transport) - 1, "bytes");
    EXPECT_BROKEN(module.operation_kinds = 0, "kind 0");
    EXPECT_BROKEN(module.operation_kinds = WEIR_OPERATION_KINDS - 1, "operations below kind");
}

WEIR_TEST(ModuleCheck, KeyTable)
{
    EXPECT_BROKEN(module.keys = NULL, "has no table");
    EXPECT_BROKEN(module.key_size = 8, "a key has 8 bytes");
    EXPECT_BROKEN(module.key_count = 1025, "1024");
    EXPECT_BROKEN(keys[2].name = NULL, "key 2");
    EXPECT_BROKEN(keys[2].name = "text", "'text' occurs twice");
    EXPECT_BROKEN(keys[0].help = "", "no help");
    EXPECT_BROKEN(keys[1].type = 9, "'integer' has the unknown type 9");
    EXPECT_BROKEN(keys[3].choices = NULL, "'choice' has no choices");
}
