// Opens libraries at run time and looks up their functions.
//
// A module lists the functions that it needs once, as an X-macro, from which it generates both the
// structure of pointers and this table:
//
//     struct api { int (*open)(void); ... };
//     static const struct weir_kit_symbol table[] = {
//         {"open", offsetof(struct api, open), false}, ...};
//
// Threads: safe.
// Errors: one sentence in `message`, which is always terminated; 512 bytes are enough for most.
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
    bool optional; // may be missing; the pointer is then NULL
};

// Opens the first of `names` that can be opened and returns its handle, or NULL with the dynamic
// linker's reason for each name in `message`.
//
// Ownership: the library is never closed, because drivers start threads and install exit handlers
// that run its code.
void *weir_kit_library_open(const char *const *names, size_t count, char *message,
                            size_t message_size);

// Looks up each symbol of `table` and stores its address in `functions`, the structure to which the
// offsets refer. `library` names the library in the message.
//
// Errors: false if mandatory symbols are missing, with the names of the first ones and the number
// of the others.
bool weir_kit_symbols_load(void *handle, const char *library, const struct weir_kit_symbol *table,
                           size_t count, void *functions, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
