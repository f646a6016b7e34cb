// The plugin's list: a line for each operation, with tabs between its fields. The plugin has
// escaped the texts.
#define _DEFAULT_SOURCE // strsep

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/fault/fault.h"

enum {
    LIST_LIMIT = 1 << 30
};

static void take(char **line, char *text, size_t size)
{
    const char *field = strsep(line, "\t");
    snprintf(text, size, "%s", field ? field : "");
}

static void read_item(char *line, struct fault_item *item)
{
    char number[32];
    take(&line, number, sizeof number);
    item->number = strtoull(number, NULL, 10);
    take(&line, item->kind, sizeof item->kind);
    take(&line, item->queue, sizeof item->queue);
    take(&line, item->label, sizeof item->label);
    take(&line, item->file, sizeof item->file);
    take(&line, number, sizeof number);
    item->line = (int)strtol(number, NULL, 10);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

bool fault_list_read(const char *path, struct fault_item **out_items, size_t *out_count)
{
    char message[512];
    void *data;
    size_t size;
    *out_items = NULL;
    *out_count = 0;
    if (access(path, F_OK) != 0)
        return true;
    if (!weir_file_read(path, LIST_LIMIT, &data, &size, message, sizeof message)) {
        cli_error("%s", message);
        return false;
    }
    char *text = strndup(data, size);
    free(data);
    const size_t count = text ? count_lines(text) : 0;
    struct fault_item *items = calloc(count + 1, sizeof *items);
    char *rest = text;
    for (size_t i = 0; items && i < count; i++)
        read_item(strsep(&rest, "\n"), &items[i]);
    free(text);
    if (!text || !items) {
        free(items);
        cli_error("no memory is left for the operations of the program; use --every with a larger "
                  "number, or --kinds");
        return false;
    }
    *out_items = items;
    *out_count = count;
    return true;
}

const char *fault_item_text(const struct fault_item *item, char *text, size_t size)
{
    size_t used = 0;
    weir_text_append(text, size, &used, "%s", item->kind);
    if (item->label[0])
        weir_text_append(text, size, &used, " '%s'", item->label);
    if (item->queue[0] && strcmp(item->kind, "new-queue") != 0)
        weir_text_append(text, size, &used, " on '%s'", item->queue);
    return text;
}

const char *fault_item_place(const struct fault_item *item, char *text, size_t size)
{
    const char *slash = strrchr(item->file, '/');
    text[0] = '\0';
    if (item->file[0])
        snprintf(text, size, "%s:%d", slash ? slash + 1 : item->file, item->line);
    return text;
}
