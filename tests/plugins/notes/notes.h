// What the test plugin `notes` offers as an extension of that name: the notes of the host that it
// has got, oldest first.
#ifndef WEIR_TESTS_PLUGINS_NOTES_H
#define WEIR_TESTS_PLUGINS_NOTES_H

#include <weir/module/module.h>

// What a test sets.
struct notes_hook {
    // Called when a queue has been finished, before the caller of that goes on.
    void (*function)(void *user); // NULL: nothing to call
    void *user;
};

struct notes {
    struct notes_hook *hook;
    struct weir_host_note list[64];
    _Atomic size_t count; // rises when the note is there
    // What the newest operations of pools were told to have; a pool's memory may be more.
    size_t allocated_bytes;
    size_t freed_bytes;
};

#endif
