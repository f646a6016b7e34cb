// Entries of the lists of tests that the suite excuses (suite.c).
#ifndef WEIR_TESTS_CONFORMANCE_LISTS_H
#define WEIR_TESTS_CONFORMANCE_LISTS_H

#include <string.h>

// One test on one backend. `device` is part of the device's name; NULL: any.
struct conform_entry {
    const char *backend;
    const char *device;
    const char *test; // "Suite.Name"
    const char *reason;
};

// The entry of a list, which ends with a NULL test, that fits; or NULL.
static inline const struct conform_entry *conform_find(const struct conform_entry *list,
                                                       const char *backend, const char *device,
                                                       const char *test)
{
    for (const struct conform_entry *entry = list; entry->test; entry++)
        if (strcmp(entry->test, test) == 0 && strcmp(entry->backend, backend) == 0 &&
            (!entry->device || strstr(device, entry->device)))
            return entry;
    return NULL;
}

#endif
