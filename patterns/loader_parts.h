// Shared by the files of the loader: its structure, and which thread may access which part.
//
// One thread reads ahead. Entries are the pinned half, a ring in the order of the source.
// Rooms are the device half; any free room can be taken, so a batch that is held for long
// blocks no other.
//
// The thread waits on the host, not on the device, for the event after which a room was
// released: so a consumer's failure never reaches the loader's queue. This costs no
// overlap, because the batch is already in pinned memory and the other batches are
// loaded.
//
// `lock` guards the states of entries and rooms. The thread alone uses an entry that is
// NONE or FILLED, and a room that is CLAIMED.
#ifndef WEIR_PATTERNS_LOADER_PARTS_H
#define WEIR_PATTERNS_LOADER_PARTS_H

#include <pthread.h>

#include "base/thread.h"
#include "patterns/fail.h"
#include "patterns/loader.h"

enum weir__entry_state {
    WEIR__ENTRY_NONE,   // delivered, or never filled
    WEIR__ENTRY_FILLED, // read, waiting for a room
    WEIR__ENTRY_BATCH,  // being copied to the device
    WEIR__ENTRY_ERROR,
    WEIR__ENTRY_END,
};

struct weir__entry {
    enum weir__entry_state state;
    weir_buffer *pinned;
    struct weir_event copied; // the copy out of pinned memory
    size_t size;
    uint32_t room;
    struct weir_error error;
};

enum weir__room_state {
    WEIR__ROOM_FREE, // free when `released` is complete
    WEIR__ROOM_CLAIMED,
    WEIR__ROOM_HELD,
};

struct weir__room {
    enum weir__room_state state;
    weir_buffer *buffer;
    uint64_t index;             // HELD: the batch's number
    struct weir_event released; // zeroed: not released after any work
    uint64_t released_order;
};

struct weir_loader {
    struct weir_loader_params params; // `label` is the copy
    char label[WEIR__PATTERN_LABEL_SIZE];
    weir_queue *queue;
    struct weir__entry *entries;
    struct weir__room *rooms;
    struct weir_thread thread;
    uint64_t loading; // the thread's: the number of the batch that it works on

    pthread_mutex_t lock;
    pthread_cond_t to_load; // the thread waits
    pthread_cond_t to_next; // consumers wait
    bool stopping;
    uint64_t head; // the next to be delivered
    uint64_t releases;
    uint32_t held;
    struct weir_loader_statistics figures;
};

// The thread; `argument` is the loader. It ends when `stopping` is set, or at the end of the source.
void weir__loader_run(void *argument);

#endif
