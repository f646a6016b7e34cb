// What a module writes for someone whose structures may be smaller or larger than its own.
#ifndef WEIR_MODULE_SIZE_H
#define WEIR_MODULE_SIZE_H

#include <string.h>

#include <weir/common.h>

// Copies `size` bytes of `from` to `to`, or `room` if those are fewer. What is left of `to`
// stays as it was.
static inline void weir_write(void *to, size_t room, const void *from, size_t size)
{
    memcpy(to, from, size < room ? size : room);
}

// The same without the first field of both, a `size_t struct_size`.
static inline void weir__write_fields(void *to, size_t room, const void *from, size_t size)
{
    const size_t least = size < room ? size : room;
    if (least > sizeof(size_t))
        memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
               least - sizeof(size_t));
}

// Copies what `*from` has and `*to` has room for. Both begin with a struct_size, which says
// that, and keep their own. The way to assign to a structure that one is handed.
#define WEIR_WRITE(to, from) \
    weir__write_fields((to), (to)->struct_size, (from), (from)->struct_size)

#endif
