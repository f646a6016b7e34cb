// A beginner's mistakes, and what the library says about each to a program that sets no log callback and
// looks at no status. Each row has the mistake, what a message about it names, and a word of what to do
// about it; sentences are free to change.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/test.h"

// Prefixes of the command.
#define DEBUG "WEIR_DEBUG=1"
#define DEVICE "WEIR_DEBUG=1 POCL_DEVICES=pthread" // not for null, where work takes no time
#define CHECK "WEIR_DEBUG=1 WEIR_PLUGINS=check"

static const struct row {
    int number;
    const char *name;
    const char *environment;
    const char *object; // its label, or what else tells it from others
    const char *remedy;
} rows[] = {
    {1, "grid_in_items", DEBUG, "'scale'", "weir_queue_launch_count"},
    {2, "no_blocks", DEBUG, "'scale'", "weir_queue_launch_count"},
    {3, "range_in_elements", DEBUG, "'in'", "Multiply it by 4"},
    {4, "buffer_in_elements", DEBUG, "'small'", "Multiply it by 4"},
    {5, "range_past_the_end", DEBUG, "'in'", "count bytes"},
    {6, "copy_too_large", DEBUG, "'out'", "count bytes"},
    {7, "fill_in_elements", DEBUG, "'out'", "count bytes"},
    {8, "pitch_in_elements", DEBUG, "dst", "count bytes"},
    {9, "argument_missing", DEBUG, "'scale'", "one for each"},
    {10, "double_for_float", DEBUG, "'factor'", "2.0f"},
    {11, "arguments_swapped", DEBUG, "'factor'", "cast"},
    {12, "no_local_memory", DEBUG, "scratch", "one for each"},
    {13, "block_too_large", DEBUG, "'scale'", "smaller block"},
    {14, "kernel_misspelt", DEBUG, "'scael'", "did you mean 'scale'"},
    {15, "destroyed_twice", DEBUG, "'in'", "own"},
    {16, "used_after_destroy", DEBUG, "'in'", "move"},
    {17, "closed_too_early", DEBUG, "device", "weir_device_close()"},
    {18, "host_access_to_device_memory", DEBUG, "'in'", "weir_download()"},
    {19, "event_never_recorded", DEBUG, "'work'", "weir_queue_record()"},
    {20, "wait_of_nanoseconds", DEBUG, "'work'", "WEIR_MS(5)"},
    {20, "wait_of_nanoseconds", "WEIR_LOG=info", "", ""}, // a result that is no error is not told
    {21, "host_call_that_does_not_return", DEBUG, "'work', whose host call", "must return"},
    {21, "close_with_a_host_call_that_does_not_return", DEBUG, "'work', whose host call",
     "must return"},
    {21, "wait_for_another_queues_host_call", DEBUG, "'other', whose host call", "must return"},
    {21, "wait_for_the_device", DEVICE, "a launch of 'spin'", "wait longer"},
    {22, "sync_in_a_host_call", DEBUG, "'other'", "submit a wait"},
    {23, "work_after_a_failure", DEBUG, "copy was refused", "weir_queue_recover()"},
    {25, "access_not_ended", DEBUG, "'host'", "weir_host_end()"},
    {25, "access_not_ended", CHECK, "'host'", "weir_host_end"},
    {26, "wait_missing", CHECK, "'in'", "wait on 'other'"},
    {27, "read_without_a_sync", CHECK, "'host'", "sync with that event"},
    {28, "wrapped_memory_gone", DEBUG, "'wrapped'", "keep the memory"},
    {29, "upload_from_memory_that_is_gone", DEBUG, "weir_upload: memory", "keep the memory"},
    {30, "stale_host_pointer", DEBUG, "'host'", "weir_host_begin()"},
    {30, "stale_host_pointer_that_is_read", DEBUG, "'host'", "weir_host_begin()"},
    {30, "host_pointer_of_a_buffer_that_is_gone", DEBUG, "'host'", "destruction"},
    {30, "write_during_a_read", DEBUG, "'host'", "WEIR_ACCESS_WRITE"},
};

// What the mistake's process prints; "" if it cannot be run.
static void make(const struct row *row, char *text, size_t size)
{
    char command[256];
    text[0] = '\0';
    snprintf(command, sizeof command, "%s timeout 60 tests/mistakes/mistakes %s 2>&1",
             row->environment, row->name);
    FILE *pipe = popen(command, "r");
    ASSERT_NOT_NULL(pipe);
    text[fread(text, 1, size - 1, pipe)] = '\0';
    pclose(pipe);
}

// The message is one of the library's, and about a line of the mistakes.
static void expect_message(const struct row *row, const char *text)
{
    if (!row->object[0]) {
        EXPECT_STR_EQ(text, "");
        return;
    }
    EXPECT_CONTAINS(text, "weir: ");
    EXPECT_CONTAINS(text, "mistakes.c:");
    EXPECT_CONTAINS(text, row->object);
    EXPECT_CONTAINS(text, row->remedy);
}

WEIR_TEST(Mistakes, AreNamedWithWhatToDo)
{
    static char text[1 << 16];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].environment, DEVICE) == 0 && strcmp(getenv("WEIR_BACKEND"), "null") == 0)
            continue;
        make(&rows[i], text, sizeof text);
        expect_message(&rows[i], text);
        printf("%2d %s\n%s", rows[i].number, rows[i].name, text);
    }
}

// Nothing is printed unless the user asks, and WEIR_LOG alone asks too.
WEIR_TEST(Mistakes, AreToldToThoseWhoAsk)
{
    static char text[1 << 16];
    static const char *const silent[] = {"WEIR_DEBUG=0", "WEIR_DEBUG=1 WEIR_LOG=off", ""};
    static const char *const loud[] = {"WEIR_LOG=error", "WEIR_LOG=info WEIR_DEBUG=0",
                                       "WEIR_LOG=wrong", "WEIR_DEBUG=2"};
    struct row row = {.name = "copy_too_large"};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        row.environment = silent[i];
        make(&row, text, sizeof text);
        EXPECT_STR_EQ(text, "");
    }
    for (size_t i = 0; i < sizeof loud / sizeof *loud; i++) {
        row.environment = loud[i];
        make(&row, text, sizeof text);
        EXPECT_CONTAINS(text, "weir: error: ");
    }
}
