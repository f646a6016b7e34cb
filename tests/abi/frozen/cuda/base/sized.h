// Structures that are passed with their size, by programs and modules whose headers may be older or
// newer than the library's. The rules are in <weir/common.h> for programs, and in
// <weir/module/module.h> for modules.
//
// Threads: safe; the functions keep no state.
#ifndef WEIR_BASE_SIZED_H
#define WEIR_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>

// The largest plausible size of a structure; a larger size is refused as invalid.
#define WEIR_SIZED_BYTES_MAX 4096

// The size of a structure whose last field is `field`.
#define WEIR_SIZED_UP_TO(type, field) (offsetof(type, field) + sizeof((type *)0)->field)

// The bytes reserved for a structure that the library returns by pointer. Those after the structure
// are always zero: a program with newer headers reads its additional fields there.
#define WEIR_SIZED_ROOM 512
#define WEIR_SIZED_ROOM_LARGE 2048

// Declares such a structure, called `name`, with `room` bytes reserved.
#define WEIR_SIZED_CELL(type, name, room) \
    union {                               \
        type name;                        \
        unsigned char name##_room[room];  \
    }

// The reason why a structure was refused, as a sentence, and the remedy.
struct weir_sized_refusal {
    char message[320];
    const char *remedy;
};

// Reads the structure `*given`, which begins with its own size as a size_t, into the `size` bytes
// at `known`, by the rule of the Linux kernel's copy_struct_from_user(): fields that a shorter
// structure lacks are zero in `known`, and a longer structure is refused unless its additional
// bytes are zero. The size stored in `known` is `size`. Returns false, with the refusal, for such a
// longer structure and for an impossible size. `type` names the structure and `caller` the called
// function in the message.
bool weir_sized_read(const char *caller, const char *type, const void *given, void *known,
                     size_t size, struct weir_sized_refusal *refusal);

// The same for an element of an array, which does not begin with its size. `given_size` is the
// distance between elements, which was passed with the array and checked.
bool weir_sized_read_item(const char *caller, const char *type, const void *given,
                          size_t given_size, void *known, size_t size,
                          struct weir_sized_refusal *refusal);

// Writes a structure of `size` bytes to the program's structure of `room` bytes: at most `room`
// bytes, and zeros to the rest of it.
void weir_sized_write(void *to, size_t room, const void *from, size_t size);

// The same for a structure that begins with its own size as a size_t, which is set to the number of
// bytes that were written.
void weir_sized_write_back(void *to, size_t room, const void *from, size_t size);

#endif
