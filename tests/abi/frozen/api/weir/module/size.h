// Writing to structures that may be smaller or larger than in the module's own headers.
#ifndef WEIR_MODULE_SIZE_H
#define WEIR_MODULE_SIZE_H

#include <string.h>

#include <weir/common.h>

// Copies `size` bytes of `from` to `to`, but at most `room`. The rest of `to` does not change.
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

// Assigns `*from` to `*to`, as far as both extend. Both begin with a struct_size, which neither
// changes. For every structure that a module gets from the library in order to fill it.
#define WEIR_WRITE(to, from) \
    weir__write_fields((to), (to)->struct_size, (from), (from)->struct_size)

#endif
