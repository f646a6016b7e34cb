// NOLINTNEXTLINE(bugprone-reserved-identifier): for vasprintf()
#define _GNU_SOURCE
#include "cli/common/own.h"

#include <string.h>

struct owned {
    struct owned *next;
    void (*destroy)(void *object);
    void *object;
};

static struct owned *first;
static bool failed_late;

void cli_own(void (*destroy)(void *object), void *object)
{
    struct owned *owned = malloc(sizeof *owned);
    if (!owned) {
        destroy(object);
        cli_fail(CLI_FAILED, "no memory for the command");
    }
    *owned = (struct owned){first, destroy, object};
    first = owned;
}

void cli_destroy_owned(void)
{
    for (struct owned *owned = first; owned; owned = first) {
        first = owned->next;
        owned->destroy(owned->object);
        free(owned);
    }
}

void cli_fail_late(void)
{
    failed_late = true;
}

static void *own_memory(void *memory, size_t size)
{
    if (!memory)
        cli_fail(CLI_FAILED, "no memory for %zu bytes; ask for smaller sizes, or for fewer things",
                 size);
    cli_own(free, memory);
    return memory;
}

void *cli_allocate(size_t count, size_t size)
{
    return own_memory(calloc(count, size), count * size);
}

void *cli_grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 64;
    void *grown = cli_allocate(*capacity, size);
    if (count > 0)
        memcpy(grown, items, count * size);
    return grown;
}

char *cli_copy(const char *text)
{
    return own_memory(strdup(text), strlen(text) + 1);
}

char *cli_text(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return own_memory(length < 0 ? NULL : text, strlen(format));
}

char *cli_take_text(struct weir_long_text *text)
{
    if (text->failed) {
        free(text->text);
        text->text = NULL;
    }
    return own_memory(text->text, text->used);
}

int cli_flush(int code)
{
    cli_destroy_owned();
    code = code == CLI_OK && failed_late ? CLI_FAILED : code;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    cli_error("standard output cannot be written: what it holds is incomplete; free space or "
              "redirect it elsewhere");
    return code == CLI_OK ? CLI_FAILED : code;
}

void cli_end(int code)
{
    exit(cli_flush(code));
}

void cli_fail(int code, const char *format, ...)
{
    char text[4096]; // as much as a message has
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_error("%s", text);
    cli_end(code);
}

void cli_fail_weir(void)
{
    cli_end(cli_weir_error());
}

void cli_go_on(int code)
{
    if (code != CLI_OK)
        cli_end(code);
}

void cli_fine(weir_status status)
{
    if (status != WEIR_OK)
        cli_fail_weir();
}
