// Shared by the files of the plugin.
//
//   module.c   keys, the ops table, and a link's life; devices, queues and buffers as they come and go; the report and
//              the page, at the end
//   submit.c   the path of an operation: an entry in its queue's ring; threads, their regions and their waits
//   drain.c    the writing thread, which joins times of finished operations with their submissions
//
// Memory is fixed: a ring for each queue, and room for the regions and waits of threads. A
// submit never waits for the writing thread: if its ring is full, the operation is counted and not
// kept.
//
// A queue's ring has one writer, the submitter, under the front end's lock of the queue,
// and one reader, the writing thread. Entries between `tail` and `head` belong to the reader,
// except that the thread that runs a host call or a collective stores its times.
//
// In virtual time, where the links after this one have a clock, two runs write the same file: the
// writing thread only works when a submitter, or the end of a region, has to wait for it, which takes no
// virtual time; threads are numbered as they come; and nothing of the real time is in the file.
//
// No lock is taken with another one of the plugin held: docs/architecture.md.
#ifndef WEIR_PLUGINS_TRACE_PARTS_H
#define WEIR_PLUGINS_TRACE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

#include "base/clock.h"
#include "base/clock_map.h"
#include "base/host_clock.h"
#include "base/thread.h"
#include "report/output_path.h"
#include "report/trace.h"

enum {
    TRACE_SCALARS = 6,      // of a launch, as an operation keeps them
    TRACE_REGION_SIZE = 72, // of a path of regions, as an operation keeps it
    TRACE_NAME_SIZE = 48,   // of a region
    TRACE_DEPTH = 32,       // of regions
    TRACE_SPANS = 4096,     // of all threads, until they are written
    TRACE_LINKS = 16,       // of which a thread knows its regions
    TRACE_WAITS = 64,       // that an operation keeps, the last ones
    TRACE_FETCH = 256,      // times that are fetched at once
    TRACE_FETCHES = 4096,   // that often, at most
    TRACE_LABEL_SIZE = 96,  // of labels of devices
    TRACE_TITLE_SIZE = 64,  // of a collective's name
    TRACE_WAKE = 512,       // operations in a ring that wake the writing thread
};

struct trace;

// submit.c

struct trace_span_entry {
    struct weir_trace_span span; // without a name; of kind 0 it is the name of the thread
    char name[TRACE_NAME_SIZE];
};

// In the order in which they ended.
struct trace_spans {
    struct trace_span_entry items[TRACE_SPANS];
    size_t count;
};

struct trace_level {
    uint64_t begin_ns;
    uint64_t number;
    size_t length; // of the path before it
    char name[TRACE_NAME_SIZE];
};

// One thread in one link. The thread's own.
struct trace_thread {
    struct trace_thread *next; // of the thread, in a link that it has called before
    uint64_t link;             // trace.number
    uint64_t id;               // the kernel's; in virtual time 1, 2, 3 …
    uint32_t depth;            // of regions; may exceed TRACE_DEPTH
    struct trace_level levels[TRACE_DEPTH];
    char path[TRACE_REGION_SIZE];
    size_t path_length;
};

// The calling thread, which closes the link.
void trace_thread_leave(const struct trace *trace);
void trace_region(const struct weir_link *link, const char *name, uint64_t number);
weir_status trace_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                             uint64_t timeout_ns);
weir_status trace_queue_finish(const struct weir_link *link, weir_queue *object);

// One operation, or one wait, from its submit until it is written.
struct trace_entry {
    // With the number of its kind (enum weir_operation_kind), and without the waits before it. It is `timed` if it will
    // have times. These are on the host's clock, but those that are fetched are on the device's until the entry is joined.
    struct weir_trace_operation row;
    uint32_t times; // that it will have from links after this one: a graph's are those of its nodes
    uint32_t seen;  // of them
    bool internal;  // of a plugin or the library
    atomic_bool called; // its times on the host's clock are known: HOST_CALL, NOTE, COLLECTIVE
    union {
        struct weir_trace_wait wait;
        struct {
            double values[TRACE_SCALARS]; // of the scalar arguments that are kept
            uint8_t arguments[TRACE_SCALARS];
        } launch;
        struct weir_trace_collective collective;
    } u;
    char region[TRACE_REGION_SIZE];
};

weir_status trace_queue_submit(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation);

// module.c

struct trace_device {
    struct trace_device *next;
    weir_device *object;          // of the front end, while it has queues
    struct weir_device_info info; // whose texts the row has
    struct weir_trace_device row; // since its limits are known
    char label[TRACE_LABEL_SIZE]; // the row's
    bool has_collectives;         // carries them out itself
    bool enlisted;
    bool announced;
    pthread_mutex_t lock; // guards what follows
    size_t queue_count;
    struct weir_clock_map clock; // a: the device's
    uint64_t paired_ns;          // when the last pair was taken
    uint64_t pairs;
    // Used by the writing thread only.
    struct weir_clock_map clock_now; // a copy
};

struct trace_queue {
    struct trace_queue *next;
    struct trace *trace;
    struct trace_device *device;
    struct weir_trace_queue row;
    struct trace_entry *ring;
    uint64_t mask;                      // of it
    atomic_bool destroyed;              // the front end's queue is gone
    bool enlisted;                      // the submitter's, as what follows
    _Alignas(64) _Atomic uint64_t head; // entries of which the submit has returned
    _Atomic uint64_t begun;             // and with the one that has not
    uint64_t tail_seen;
    _Atomic uint64_t dropped;
    _Atomic uint64_t last_timed; // sequence of the last operation that will have times
    uint64_t unwritten; // operations, and nodes of graphs, since the writing thread was woken
    // The draining thread's.
    _Alignas(64) _Atomic uint64_t tail;
    uint64_t joined; // entries before it have their times, or will have none
    uint64_t end_ns; // of the last entry
    bool announced;
    struct weir_trace_wait waits[TRACE_WAITS];
    size_t wait_count;
    pthread_mutex_t lock;              // guards what follows
    weir_queue *object;                // NULL: destroyed, after its last times were fetched
    uint64_t noted;                    // entries before it are older than the last time
    struct weir_operation_time *times; // ring of the last ones, for the links before this one
    uint64_t fetched;                  // times ever
    uint64_t passed_on;                // of them, to those links
    uint64_t last_fetched;             // sequence
};

// The state of a link.
struct trace {
    const struct weir_link *link;
    char path[WEIR_OUTPUT_PATH_SIZE];
    char report_path[WEIR_OUTPUT_PATH_SIZE]; // "": none
    char html_path[WEIR_OUTPUT_PATH_SIZE];
    uint64_t ring_size;
    uint64_t flush_ns;
    const struct weir_host_clock *clock; // of the links after this one; NULL: the system's
    uint64_t base_ns;                    // of the host's clock: the trace's moment 0
    uint64_t process;
    uint64_t number;       // no other link of the process has it
    pthread_mutex_t lists; // guards what follows, up to the count of devices
    struct trace_device *devices;
    struct trace_queue *queues;
    uint64_t thread_count;
    struct trace_spans spans[2]; // one is being filled, the other one is the writing thread's
    unsigned filling;
    uint64_t spans_dropped;
    uint32_t device_count;
    // The draining thread's.
    struct weir_thread thread;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t wake;
    bool stop;
    bool pressed; // a ring is filling up
    pthread_cond_t written;
    uint64_t asked; // how many have waited for `written`
    uint64_t served;
    weir_trace_writer *writer;
    bool write_failed; // and was logged
    uint64_t limit;    // bytes of the file
    uint64_t beyond;   // operations that are not in the file, because it had that size
    bool full;         // which was logged
    char failure[512]; // why the file, the report or the page is missing; "" if none is
    uint64_t flushed_ns;
    uint64_t dropped; // of destroyed queues
    uint64_t unfinished;
};

WEIR_STATE_OF(trace_of, struct trace)

// The host's clock. Waits of the writing thread are by the system's.
static inline uint64_t trace_now_ns(const struct trace *trace)
{
    return trace->clock ? trace->clock->now_ns(trace->clock->user) : weir_clock_now_ns();
}

WEIR_DATA_OF(trace_queue_of, struct trace_queue, weir_queue)
WEIR_DATA_OF(trace_device_of, struct trace_device, weir_device)
WEIR_DATA_OF(trace_memory_of, const enum weir_trace_memory, weir_buffer)

// drain.c

weir_status trace_host_note(const struct weir_link *link, const struct weir_host_note *note);
// Stores the times that the backend has so far with their entries. With the queue's lock held, before the queue is
// destroyed.
void trace_fetch(struct trace_queue *queue);
weir_status trace_queue_times(const struct weir_link *link, weir_queue *object,
                              struct weir_operation_time *times, size_t time_size, size_t capacity,
                              size_t *out_count);
void trace_queue_free(struct trace_queue *queue);
// The writing thread, until `stop` is set: then it writes the rest and closes the file. A failure is described in `failure`.
void trace_drain(void *trace);
// In virtual time: waits until all that is complete now is written. With no lock of the plugin held.
void trace_drain_now(struct trace *trace);
// Reads the device's clock if the last reading is old or `now` is true. With the device's lock
// held, while the device has a queue.
void trace_pair_clocks(const struct weir_link *link, struct trace_device *device, bool now);

#endif
