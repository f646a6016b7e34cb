// How modules keep state with the front end's objects.
//
// Objects belong to the front end. Each has one private pointer (slot) for every link of the
// chain, so a plugin passes handles through unchanged and keeps its data in its own slot. Slots
// are only accessible through the functions below; define one accessor per type in your module on
// top of them:
//
//     WEIR_DATA_OF(cl_queue_of, struct cl_queue, weir_queue)
#ifndef WEIR_MODULE_OBJECT_H
#define WEIR_MODULE_OBJECT_H

#include <weir/weir.h>

struct weir_host;
struct weir_module_ops;

// One module's place in one chain. Read-only for modules.
struct weir_link {
    size_t struct_size;
    const struct weir_module_ops *ops; // with unset slots filled by forwarders
    const struct weir_link *next;      // NULL at the backend
    const struct weir_link *backend;
    const struct weir_host *host;
    void *state;      // the pointer that `open` stored
    const char *name; // the module's
    uint32_t index;   // position in the chain, 0 is outermost
    // The number of slots of `ops`, and of the kinds of operation that this link and those after it
    // know. Both are smaller than in the module's own headers if the library is older than those.
    uint32_t slot_count;
    uint32_t operation_kinds;
};

// Whether the link's table has that slot, for slots that are appended after the first release.
#define WEIR_LINK_HAS(link, slot) \
    (offsetof(struct weir_module_ops, slot) / sizeof(void (*)(void)) < (link)->slot_count)

// The beginning of every object of the front end. Read-only for modules. Closed.
struct weir_object {
    void **data;       // one slot per link
    const char *label; // never NULL; for plugins valid as long as the link, but for a device's
    uint64_t id;       // never reused within the process
};

#define WEIR__OBJECT_ACCESSORS(type)                                                  \
    static inline const struct weir_object *type##_object(const type *object)         \
    {                                                                                 \
        return (const struct weir_object *)(const void *)object;                      \
    }                                                                                 \
    static inline void *type##_data(const struct weir_link *link, const type *object) \
    {                                                                                 \
        return type##_object(object)->data[link->index];                              \
    }
WEIR__OBJECT_ACCESSORS(weir_device)
WEIR__OBJECT_ACCESSORS(weir_queue)
WEIR__OBJECT_ACCESSORS(weir_buffer)
WEIR__OBJECT_ACCESSORS(weir_program)
WEIR__OBJECT_ACCESSORS(weir_kernel)
WEIR__OBJECT_ACCESSORS(weir_graph)
// Only the backend's comm_create stores data.
WEIR__OBJECT_ACCESSORS(weir_comm)
#undef WEIR__OBJECT_ACCESSORS

// Defines `name`, which returns what the module's `open` stored.
#define WEIR_STATE_OF(name, state_type)                          \
    static inline state_type *name(const struct weir_link *link) \
    {                                                            \
        return link->state;                                      \
    }

// Defines `name`, which returns a module's data of an object.
#define WEIR_DATA_OF(name, data_type, type)                                         \
    static inline data_type *name(const struct weir_link *link, const type *object) \
    {                                                                               \
        return type##_data(link, object);                                           \
    }

#endif
