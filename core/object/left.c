// See the header. The lines are kept until no lock is held, since a log callback may call Weir.
#include "core/object/left.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/support/log.h"
#include "core/support/memory.h"

// Room for ", 4294967295 more; the log (weir_log_set) has all".
enum {
    END_SIZE = 64,
    LINE_SIZE = 400,
    LINES_FIRST = 4096
};

// False: no memory.
static bool make_room(struct weir__left *left, size_t size)
{
    if (left->lines_size - left->lines_used >= size)
        return true;
    const size_t larger = left->lines_size > 0 ? 2 * left->lines_size : LINES_FIRST;
    char *lines = weir__allocate(larger);
    if (!lines)
        return false;
    if (left->lines_used > 0)
        memcpy(lines, left->lines, left->lines_used);
    weir__release(left->lines);
    left->lines = lines;
    left->lines_size = larger;
    return true;
}

static void add_line(struct weir__left *left, const char *text)
{
    const size_t size = strlen(text) + 1;
    if (left->lines_cut || !make_room(left, size)) {
        left->lines_cut = true;
        return;
    }
    memcpy(left->lines + left->lines_used, text, size);
    left->lines_used += size;
}

void weir__left_add(struct weir__left *left, const char *text, bool listed)
{
    const size_t room = sizeof left->list - left->used - END_SIZE;
    left->count++;
    add_line(left, text);
    if (!listed)
        return;
    if (left->untold > 0 || strlen(text) + sizeof ", " > room)
        left->untold++;
    else
        weir_text_append(left->list, sizeof left->list, &left->used, ", %s", text);
}

void weir__left_end(struct weir__left *left)
{
    if (left->untold > 0)
        weir_text_append(left->list, sizeof left->list, &left->used, ", %u more%s", left->untold,
                         left->lines_cut ? "" : "; the log (weir_log_set) has all");
}

void weir__left_log(struct weir__left *left, const char *prefix)
{
    if (left->untold > 0)
        for (size_t at = 0; at < left->lines_used; at += strlen(left->lines + at) + 1) {
            char line[LINE_SIZE];
            snprintf(line, sizeof line, "%s%s still exists", prefix, left->lines + at);
            weir__log(WEIR_LOG_ERROR, "core", line);
        }
    weir__release(left->lines);
    left->lines = NULL;
}
