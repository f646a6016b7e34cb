#include "base/sized.h"

#include <stdio.h>
#include <string.h>

static bool refuse_rest(const char *caller, const char *type, size_t given, size_t size, size_t at,
                        struct weir_sized_refusal *refusal)
{
    refusal->remedy = "leave fields zero that are newer than the library, or run the program with "
                      "the library of its headers, or a newer one";
    snprintf(refusal->message, sizeof refusal->message,
             "%s: struct %s has %zu bytes in the program and %zu in this library, and byte %zu, "
             "which only the program knows, is not zero",
             caller, type, given, size, at);
    return false;
}

bool weir_sized_read_item(const char *caller, const char *type, const void *given,
                          size_t given_size, void *known, size_t size,
                          struct weir_sized_refusal *refusal)
{
    const unsigned char *bytes = given;
    for (size_t i = size; i < given_size; i++)
        if (bytes[i] != 0)
            return refuse_rest(caller, type, given_size, size, i, refusal);
    weir_sized_write(known, size, given, given_size);
    return true;
}

bool weir_sized_read(const char *caller, const char *type, const void *given, void *known,
                     size_t size, struct weir_sized_refusal *refusal)
{
    size_t given_size;

    memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof given_size || given_size > WEIR_SIZED_BYTES_MAX) {
        refusal->remedy = "start from = {.struct_size = sizeof params}";
        snprintf(refusal->message, sizeof refusal->message,
                 "%s: struct_size is %zu, but struct %s has %zu bytes in this library", caller,
                 given_size, type, size);
        return false;
    }
    if (!weir_sized_read_item(caller, type, given, given_size, known, size, refusal))
        return false;
    memcpy(known, &size, sizeof size);
    return true;
}

void weir_sized_write(void *to, size_t room, const void *from, size_t size)
{
    const size_t least = size < room ? size : room;
    memcpy(to, from, least);
    memset((char *)to + least, 0, room - least);
}

void weir_sized_write_back(void *to, size_t room, const void *from, size_t size)
{
    const size_t least = size < room ? size : room;
    weir_sized_write(to, room, from, size);
    memcpy(to, &least, sizeof least);
}
