// What the host does between submissions: it uses the memory of buffers, and learns that work has
// finished. Plugins that check the order of uses need both, with the line of the program.
#ifndef WEIR_MODULE_HOST_NOTE_H
#define WEIR_MODULE_HOST_NOTE_H

#include <weir/weir.h>

enum weir_host_note_kind {
    // weir_host_begin() and weir_host_end(). A BEGIN that some link refuses did not take place, and the
    // library sends no END for it. So a plugin that keeps a BEGIN forwards it first; and one that refuses
    // a BEGIN which it has forwarded sends the next link an END with the same flags, place and access.
    WEIR_HOST_NOTE_BEGIN = 1,
    WEIR_HOST_NOTE_END = 2,
    // The host learned that everything before the event has finished, or has failed. Sent for
    // each event that was not still running when a call of the user about it returned, also if it
    // was already known before. The library's own queries do not send it.
    WEIR_HOST_NOTE_COMPLETE = 3,
    // The library has run the function of a HOST_CALL, or has carried out a collective for the backend
    // (<weir/comm.h>), or has failed in it. Not sent for collectives that the backend carries out, whose times
    // queue_times has, for nodes of graphs, and for what never runs, after a failure. On a thread of the
    // library's, before the queue's next operation begins.
    WEIR_HOST_NOTE_RAN = 4,
    // When the work of a NOTE ran (weir_queue_note_times()). On any thread; the NOTE came before it.
    WEIR_HOST_NOTE_TIMES = 5,
    // The function of a HOST_CALL is called now, on this thread, which sends RAN when it has returned.
    WEIR_HOST_NOTE_CALL = 6,
};

enum weir_host_note_flags {
    // Not a call of the user about this event or buffer: the pieces of memory through which
    // weir_upload() and weir_download() copy, the thread that serves weir_event_fd(), a
    // destroyed queue, whose work has finished, a collective, or a HOST_CALL that is INTERNAL.
    WEIR_HOST_NOTE_INTERNAL = 1u << 0,
    // COMPLETE: the call waited as long as it took, so it learns the same at this place of every
    // run. A query, or a wait with a limit of time, may not. A library that does not know the flag
    // does not set it.
    WEIR_HOST_NOTE_WAITED = 1u << 1,
    // RAN: a collective. Else it is a HOST_CALL.
    WEIR_HOST_NOTE_COLLECTIVE = 1u << 2,
    // BEGIN and END of such parts of transfers: how many threads copy those of the transfer, in these
    // bits. 0: the thread that calls, between the two; others begin a part at BEGIN or later, and have
    // ended it at END.
    WEIR_HOST_NOTE_THREADS_SHIFT = 8,
    WEIR_HOST_NOTE_THREADS_MASK = 0xffu << 8,
};

// Valid during the call only. Later kinds may be added; a plugin forwards those that it does not
// know.
struct weir_host_note {
    size_t struct_size;
    enum weir_host_note_kind kind;
    uint32_t flags;
    int line;         // the caller's; 0: not known
    const char *file; // the caller's; kept for the process, NULL: not known
    union {
        uint64_t room[8];
        struct {
            weir_buffer *buffer;
            size_t offset;
            size_t size;
            weir_access access;
        } access;
        // `producer` is the event's queue, alive during the call. `status` is WEIR_OK or the first
        // failure that the event depends on.
        struct {
            struct weir_event event;
            weir_queue *producer;
            weir_status status;
        } complete;
        // RAN, TIMES; CALL, without times
        struct {
            weir_queue *queue;
            uint64_t sequence;
            uint64_t begin_ns; // of CLOCK_MONOTONIC
            uint64_t end_ns;
        } ran;
    } u;
};

#endif
