// Structures that come with their size, from programs and modules whose headers may be older
// or newer than ours. <weir/common.h> tells the rule to programs, <weir/module/module.h> to
// modules.
//
// Threads: safe; nothing here keeps state.
#ifndef WEIR_BASE_SIZED_H
#define WEIR_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>

// No structure is larger; a size above this is rubbish.
#define WEIR_SIZED_BYTES_MAX 4096

// The size of a structure whose last field is `field`.
#define WEIR_SIZED_UP_TO(type, field) (offsetof(type, field) + sizeof((type *)0)->field)

// What a structure that the library hands out by pointer has room for, in bytes. What is not
// the structure's is zero and stays so: a program with newer headers finds its fields there.
#define WEIR_SIZED_ROOM 512
#define WEIR_SIZED_ROOM_LARGE 2048

// `name` is such a structure, in such a room.
#define WEIR_SIZED_CELL(type, name, room) \
    union {                               \
        type name;                        \
        unsigned char name##_room[room];  \
    }

// Why a structure was refused: a sentence, and what to do about it.
struct weir_sized_refusal {
    char message[320];
    const char *remedy;
};

// Reads `*given`, a structure of the type of that name that begins with a size_t of its own
// size, into the `size` bytes at `known`. As copy_struct_from_user() of the Linux kernel does:
// what a shorter one lacks is zero, and a longer one is refused unless the rest of it is. The
// size in `known` is `size`. Returns false, with the refusal, for that and for a size that
// cannot be; `caller` is the function that was called.
bool weir_sized_read(const char *caller, const char *type, const void *given, void *known,
                     size_t size, struct weir_sized_refusal *refusal);

// The same of an item of an array, which does not begin with its size: `given_size`, the distance
// between items, was told beside the array and is one that can be.
bool weir_sized_read_item(const char *caller, const char *type, const void *given,
                          size_t given_size, void *known, size_t size,
                          struct weir_sized_refusal *refusal);

// Writes a structure of `size` bytes to one of the program's that has `room` bytes: no more
// than it has room for, and zeros to the rest of it.
void weir_sized_write(void *to, size_t room, const void *from, size_t size);

// The same of a structure that begins with a size_t of its own size: the program's says how
// much of it was written.
void weir_sized_write_back(void *to, size_t room, const void *from, size_t size);

#endif
