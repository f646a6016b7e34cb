// A trace: what ran on which queue and when, in memory and as a file.
//
// The plugin `trace` writes one through a weir_trace_writer; the report, the page and
// the command read it back with weir_trace_read(). Both use the structures below.
//
// The file is a JSON object in the form of PyTorch's profiler (Kineto), which Perfetto,
// chrome://tracing and HTA open: `schemaVersion`, `distributedInfo` and `weir` first, then
// `traceEvents`, one event a line, and `deviceProperties`. Lines are written as a whole, so the file
// of a killed writer only lacks its end. Weir's own data is in `args` under keys that begin with
// "weir.". Reading gives exactly what was written, but for starts of copies that were not known.
//
// Times are nanoseconds since the moment `meta.base_unix_ns`, on the host's monotonic
// clock: the plugin maps the devices' clocks to it. Texts are UTF-8; bytes that are not
// become '?'. A NULL text is written as "", and read back as "".
//
// Errors: functions that fail write one sentence into `message`, as in "base/file.h";
// 512 bytes hold every sentence.
#ifndef WEIR_REPORT_TRACE_H
#define WEIR_REPORT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The part of a device, or the host, that ran an operation. An engine runs one operation at a time,
// except KERNELS and COMMUNICATION, which may run several.
enum weir_trace_engine {
    WEIR_ENGINE_NONE = 0,          // nothing ran, or was not timed
    WEIR_ENGINE_TO_DEVICE = 1,     // copies from host memory to device memory
    WEIR_ENGINE_TO_HOST = 2,       // and back
    WEIR_ENGINE_ON_DEVICE = 3,     // copies and fills within a device, or between two
    WEIR_ENGINE_KERNELS = 4,       // launches, graphs, native work
    WEIR_ENGINE_HOST = 5,          // host calls, and copies and fills of host memory
    WEIR_ENGINE_COMMUNICATION = 6, // collectives, and kernels of NCCL
    WEIR_ENGINE_COUNT = 7,
};

// "none", "to_device", "to_host", "on_device", "kernels", "host", "communication".
const char *weir_trace_engine_name(enum weir_trace_engine engine);

// Its colour in all pictures, as CSS has it: one that is seen on white and on black, and under white text.
const char *weir_trace_engine_colour(enum weir_trace_engine engine);

// The kinds of operations. Numbers are those of enum weir_operation_kind in
// <weir/module/operation.h>. Records and waits are not operations here: a wait is
// listed with the operation after it.
enum weir_trace_kind {
    WEIR_TRACE_COPY = 1,
    WEIR_TRACE_FILL = 2,
    WEIR_TRACE_LAUNCH = 3,
    WEIR_TRACE_HOST_CALL = 4,
    WEIR_TRACE_GRAPH = 7,
    WEIR_TRACE_NATIVE = 8,
    WEIR_TRACE_COLLECTIVE = 11,
    WEIR_TRACE_NOTE = 12,
};

// "copy", "fill", "launch", "host_call", "graph", "native", "collective", "note"; "operation" for a number that is none of
// them.
const char *weir_trace_kind_name(enum weir_trace_kind kind);

// The memory of a buffer.
enum weir_trace_memory {
    WEIR_TRACE_NO_MEMORY = 0,
    WEIR_TRACE_DEVICE_MEMORY = 1,
    WEIR_TRACE_PINNED_MEMORY = 2,
    WEIR_TRACE_PAGEABLE_MEMORY = 3, // of other programs' traces: Weir has none
    WEIR_TRACE_MANAGED_MEMORY = 4,
};

struct weir_trace_meta {
    const char *program;   // the process's name, as far as it is known
    const char *weir;      // the version that wrote the trace; "" for another program's trace
    const char *backend;   // "opencl"
    const char *plugins;   // of the chain, as in the INI: "check, trace"
    const char *source;    // where device times come from: "driver", "cupti", "profiling"
    uint64_t base_unix_ns; // the moment 0, since 1970
    uint64_t process;      // the process's number
    // At the end of the trace.
    uint64_t end_ns;     // when it was closed
    uint64_t dropped;    // operations that were not kept because the buffers were full
    uint64_t beyond;     // operations that were not kept because the file had reached its limit
    uint64_t unfinished; // operations that had no times when the trace was closed
    // Set by the reader only: the file has no end, or lost lines.
    bool truncated;
};

// The variable that names the plugin's file; it takes precedence over the key in [trace], is read
// with secure_getenv(), and is set by `weir trace COMMAND`.
#define WEIR_TRACE_FILE_VARIABLE "WEIR_TRACE_FILE"

struct weir_trace_device {
    uint32_t index;   // in the trace, from 0; the pid of its rows
    const char *name; // as struct weir_device_info has it
    const char *platform;
    const char *driver;
    const char *label;
    uint64_t memory_bytes;
    uint32_t compute_units;
    // As struct weir_limits has them; all of them 0: not known.
    uint32_t copy_engines_to_device;
    uint32_t copy_engines_to_host;
    uint32_t concurrent_kernels;
    uint32_t kind; // one of weir_device_kind; 0 in other programs' traces
};

struct weir_trace_queue {
    uint64_t id;     // struct weir_event's; the tid of its row
    uint32_t device; // index
    int32_t priority;
    const char *label;
    // Set by the reader: its device in weir_trace.devices. Its operations are contiguous, in the order of submission.
    size_t device_index;
    size_t first_operation;
    size_t operation_count;
};

struct weir_trace_thread {
    uint64_t id; // the operating system's
    const char *name;
};

#define WEIR_TRACE_NO_INDEX SIZE_MAX

// One wait of a queue for the event {queue, sequence} of another one.
struct weir_trace_wait {
    uint64_t queue;    // of the producer
    uint64_t sequence; // of the record there
    const char *file;  // of the wait's caller
    int line;
    // Set by the reader: the last operation of the producer up to the record, an index
    // into weir_trace.operations; WEIR_TRACE_NO_INDEX where the trace does not hold it.
    size_t operation;
};

// A scalar argument of a launch: an integer or a floating-point number.
struct weir_trace_scalar {
    uint32_t argument; // its place, from 0
    double value;      // rounded to a double
};

// A collective, with the names of <weir/comm.h>.
struct weir_trace_collective {
    const char *kind;      // "all-reduce"
    const char *element;   // "f32"; "" for an exchange or a barrier
    const char *reduction; // "sum"; "" for one that reduces nothing
    uint64_t count;        // of elements
    uint64_t number;       // among the collectives of its communicator
    uint32_t rank;
    uint32_t rank_count;
    uint32_t root; // or peer; 0 for others
};

struct weir_trace_operation {
    uint64_t queue;       // id
    uint32_t queue_index; // set by the reader: in weir_trace.queues
    uint64_t sequence;    // rising within its queue
    enum weir_trace_kind kind;
    enum weir_trace_engine engine;
    uint64_t bytes;
    const char *name;  // of the kernel or graph; "" for others
    const char *label; // a name that the user gave this operation; of a collective the
                       // communicator's label; usually ""
    // Copies have both, fills `dst`.
    const char *dst_label;
    const char *src_label;
    enum weir_trace_memory dst_memory;
    enum weir_trace_memory src_memory;
    uint32_t grid[3]; // of launches, in blocks
    uint32_t block[3];
    uint64_t argument_bytes; // of launches: of the ranges of their buffers
    // Of launches: the first scalar arguments, as many as the plugin keeps.
    const struct weir_trace_scalar *scalars;
    size_t scalar_count;
    const struct weir_trace_collective *collective; // of collectives, or NULL
    const char *file;
    int line;
    const char *region; // the path of regions that the thread was in: "frame 12/texture"
    // What the plugin `check` has found of the operation's line, by `weir trace mark`; "" in all three: nothing.
    const char *finding_kind;
    const char *finding;
    const char *remedy;
    uint64_t thread;
    uint64_t submit_ns;     // the call began
    uint64_t submit_end_ns; // the call returned; 0: not known
    bool timed;             // the two below are known
    uint64_t start_ns;
    uint64_t end_ns;
    // The engine may have begun later: from this time on the queue had no other work. The reader makes the start exact
    // where it can.
    bool start_is_earliest;
    uint64_t latest_start_ns; // set by the reader
    bool failed;              // at submit
    // Waits between the queue's operation before this one and this one.
    const struct weir_trace_wait *waits;
    size_t wait_count;
};

enum weir_trace_span_kind {
    WEIR_TRACE_REGION = 1, // between weir_region_push and _pop
    WEIR_TRACE_SYNC = 2,   // the host waited: weir_event_sync, weir_queue_sync
};

// An interval of a host thread.
struct weir_trace_span {
    enum weir_trace_span_kind kind;
    uint64_t thread;
    const char *name; // REGION: the user's; SYNC: the call's
    uint64_t number;  // WEIR_NO_NUMBER of <weir/region.h>: none
    uint64_t begin_ns;
    uint64_t end_ns;
};

// A whole trace, as the reader leaves it. Devices by index; queues by device and id;
// operations by queue and sequence; spans by thread and begin.
struct weir_trace {
    struct weir_trace_meta meta;
    struct weir_trace_device *devices;
    size_t device_count;
    struct weir_trace_queue *queues;
    size_t queue_count;
    struct weir_trace_thread *threads; // those with a name
    size_t thread_count;
    struct weir_trace_operation *operations;
    size_t operation_count;
    struct weir_trace_span *spans;
    size_t span_count;
    // Sentences about repairs and omissions of the reader.
    const char **notes;
    size_t note_count;
    struct weir_names *texts; // the reader's, each once
};

// Writing.

// Writes a trace incrementally. Arguments are copied or written before a call returns. After the
// first failure later calls do nothing, and weir_trace_writer_close() reports it.
//
// Threads: one writer is used by one thread at a time.
typedef struct weir_trace_writer weir_trace_writer;

// Starts the file, and replaces an older one. A path that ends in ".gz" is compressed.
// `meta` is read now, its last part at close. Returns NULL on failure.
//
// Ownership: the caller's, until weir_trace_writer_close().
weir_trace_writer *weir_trace_writer_create(const char *path, const struct weir_trace_meta *meta,
                                            char *message, size_t message_size);

// A device, queue or thread is written before everything that refers to it.
void weir_trace_writer_device(weir_trace_writer *writer, const struct weir_trace_device *device);
void weir_trace_writer_queue(weir_trace_writer *writer, const struct weir_trace_queue *queue);
// Optional: a thread without a name is shown by its number.
void weir_trace_writer_thread(weir_trace_writer *writer, const struct weir_trace_thread *thread);

// One operation that has ended, or will have no times. Operations of one queue are written in the
// order of submission, with their waits; operations of different queues in any order. Also
// writes the row of the host's call and the arrows: from the call to the operation, and
// from the operation that a wait stands for to this one, once both are written.
void weir_trace_writer_operation(weir_trace_writer *writer,
                                 const struct weir_trace_operation *operation);

void weir_trace_writer_span(weir_trace_writer *writer, const struct weir_trace_span *span);

// Of all text so far, before compression.
uint64_t weir_trace_writer_bytes(const weir_trace_writer *writer);

// Passes complete lines to the operating system. The writer does so itself after every 256 KiB.
// False after a failure.
bool weir_trace_writer_flush(weir_trace_writer *writer);

// Writes the end and destroys the writer, also on failure. `end` has the fields of struct weir_trace_meta that are known
// at the end. A trace that is `truncated` gets no end.
bool weir_trace_writer_close(weir_trace_writer **writer, const struct weir_trace_meta *end,
                             char *message, size_t message_size);

// A name by value. That of a call lives until the end of the whole expression.
struct weir_trace_name {
    char text[512];
};

// The name of an operation's row: the kernel's, "Memcpy HtoD (Pinned -> Device)",
// "Memset (Device)", "host call".
struct weir_trace_name weir_trace_operation_title(const struct weir_trace_operation *operation);

// The displayed name of a queue: its label, or "queue 7".
struct weir_trace_name weir_trace_queue_name(const struct weir_trace_queue *queue);

// Whether tools take an operation of that name for communication: "nccl", and later "Kernel".
bool weir_trace_is_communication(const char *name);

// Reading.

struct weir_trace_read_options {
    // A trace with more operations is refused with a sentence, and so is one with more than four times
    // as many waits, regions and calls together; 0: ten million.
    size_t operation_limit;
    // Called at intervals with the part of the file that has been read; may be NULL.
    void (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);
    void *user;
};

// Reads a trace, compressed or not, and stores it in `*out_trace`. A truncated file, or one with
// invalid lines, is read as far as possible: `meta.truncated` is set, and `notes` has the details.
// Traces of PyTorch's profiler are read too: their kernels, copies and memsets, and the calls that
// launched them.
//
// Ownership: the caller's, until weir_trace_destroy().
// Errors: false, and NULL in `*out_trace`, for a file that cannot be read, is empty, is
// no trace, or is too large.
bool weir_trace_read(const char *path, const struct weir_trace_read_options *options,
                     struct weir_trace **out_trace, char *message, size_t message_size);

// Sets `*trace` to NULL. A pointer to NULL is accepted.
void weir_trace_destroy(struct weir_trace **trace);

#endif
