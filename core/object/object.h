// The common part of queues, buffers, programs, kernels, pools and graphs: a private slot
// for every link of the chain, and membership of a device. core/queue/queue.c destroys them
// once no work uses them.
#ifndef WEIR_CORE_OBJECT_OBJECT_H
#define WEIR_CORE_OBJECT_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <weir/module/module.h>

#include "base/table.h"
#include "core/object/device.h"
#include "core/support/error.h"

#define WEIR__LINE_BYTES 64 // of a cache
#define WEIR__SLOTS_INSIDE 4

struct weir__member;
struct weir__shared;

// The description of an object type.
struct weir__class {
    const char *name; // "queue", for messages
    bool is_named;    // its label is a name of a program's, which is kept whole
    bool keeps_label; // as long as the chain
    // Frees an object that no work uses any more, on any thread, with no lock held.
    void (*finalize)(struct weir__member *member);
};

// What has to end before a destroyed object is finalized.
enum weir__frontier {
    WEIR__FRONTIER_NONE, // not known yet
    WEIR__FRONTIER_ITSELF,
    WEIR__FRONTIER_ALL, // queues of the device and of its peers
};

// The first member of every object but the device. The members that operations read are in
// one cache line with the slots of a chain of usual length; the members that a type adds
// begin another line.
struct weir__member {
    _Alignas(WEIR__LINE_BYTES) struct weir_object object;
    weir_device *device;
    void *slots[WEIR__SLOTS_INSIDE];
    const struct weir__class *class;
    bool internal; // created by the library; does not keep a device from closing
    // Among the device's live objects, or, after destruction, its retired ones.
    TAILQ_ENTRY(weir__member) place;
    enum weir__frontier has_frontier; // after destruction: what `frontier` holds
    atomic_uint uses;                 // by captures and graphs, which keep it alive
    struct weir_event *frontier;      // events to be complete before it is finalized
    uint32_t frontier_count;
    void *block;      // the block that contains the object
    const char *file; // where the program created it; NULL: not known
    int line;
};

#define WEIR__LABEL_SIZE 128

// A zeroed object of `size` bytes, which begins with a weir__member, with slots
// for the device's chain and a copy of `label`; or NULL. What a terminal interprets is escaped in the
// copy, and a label longer than 127 bytes is cut, so that it leaves room in messages.
void *weir__member_allocate(weir_device *device, const struct weir__class *class, size_t size,
                            const char *label);

// Frees an object that is not on a list.
void weir__member_free(struct weir__member *member);

// Puts a complete object on its device's list of live ones.
void weir__member_enlist(struct weir__member *member);

// Notes the line of the program that created it.
void weir__member_place(struct weir__member *member, const char *file, int line);

// The end of a call of the program at file:line that made an object, `*out`, or failed.
#define WEIR_RETURN_CREATED(file, line, out, status)               \
    do {                                                           \
        if ((status) == WEIR_OK)                                   \
            weir__member_place(&(*(out))->member, (file), (line)); \
        return weir__placed((status), (file), (line));             \
    } while (0)

// " (created at main.c:12)"; "" if it is not known.
void weir__member_created(const struct weir__member *member, char text[WEIR__PLACE_SIZE]);

// Takes it off that list.
void weir__member_delist(struct weir__member *member);

// An object id; ids start at 1 and are never reused.
uint64_t weir__object_next_id(void);

// The label of a device, else its name.
const char *weir__opened_name(const weir_device *device);

// What keeps a device or a runtime from being closed, as text.

#define WEIR__LEFT_LIST_SIZE 560

// The texts of such objects, each with a newline: "the queue 'q' (created at a.c:3)". Zeroed before use.
struct weir__left {
    struct weir_long_text texts; // without some if it failed
    uint32_t count;
};

void weir__left_add(struct weir__left *left, const char *format, ...) WEIR_PRINTF(2, 3);

// Stores "the queue 'q' (created at a.c:3), ...", and frees the texts. If the list has no room for some of them,
// their number is at its end, and the log has a line of each: `prefix` and its text. Without locks.
void weir__left_list(struct weir__left *left, const char *prefix, char list[WEIR__LEFT_LIST_SIZE]);

#endif
