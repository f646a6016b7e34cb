// See the header.
#include "tests/conformance/lists.h"

#include <string.h>

const struct conform_entry conform_unsupported[] = {
    {NULL, NULL, NULL, NULL},
};

const struct conform_entry conform_expected_failures[] = {
    {NULL, NULL, NULL, NULL},
};

const struct conform_entry *conform_find(const struct conform_entry *list, const char *backend,
                                         const char *device, const char *test)
{
    for (const struct conform_entry *entry = list; entry->test; entry++)
        if (strcmp(entry->test, test) == 0 && strcmp(entry->backend, backend) == 0 &&
            (!entry->device || strstr(device, entry->device)))
            return entry;
    return NULL;
}
