// Libraries that are opened at run time, and tables of their functions.
//
// A module lists the functions that it needs once, as an X-macro, and makes both the
// structure of pointers and this table from it:
//
//     struct api { int (*open)(void); ... };
//     static const struct weir_kit_symbol table[] = {
//         {"open", offsetof(struct api, open), false}, ...};
//
// Threads: safe.
// Errors: one sentence in `message`, always terminated; 512 bytes hold most.
#ifndef WEIR_KIT_SYMBOLS_H
#define WEIR_KIT_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_kit_symbol {
    const char *name;
    size_t offset; // of its pointer in the structure
    bool optional; // may be missing; its pointer is NULL then
};

// Opens the first of `names` that can be opened, and returns its handle, or
// NULL with the linker's reason for every name in `message`.
//
// Ownership: there is nothing to close; a library stays until the process ends,
// because drivers leave threads and exit handlers running.
void *weir_kit_library_open(const char *const *names, size_t count, char *message,
                            size_t message_size);

// Looks up every symbol of `table` and stores its address in `functions`, the
// structure that the offsets refer to. `library` is the name for the message.
//
// Errors: false, naming the first mandatory symbols that are missing, and how many.
bool weir_kit_symbols_load(void *handle, const char *library, const struct weir_kit_symbol *table,
                           size_t count, void *functions, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
