// The interface between Weir and its modules: backends, which end a chain, and plugins,
// which come before the backend and forward to the next link.
//
// A module is one shared object, `weir_NAME.so`, which exports one symbol,
// weir_module_query().
#ifndef WEIR_MODULE_MODULE_H
#define WEIR_MODULE_MODULE_H

#include <weir/module/host_note.h>
#include <weir/module/object.h>
#include <weir/module/operation.h>
#include <weir/module/size.h>
#include <weir/weir.h>

// A module of another number is refused. Until the first release all fields, slots and kinds are of
// ABI 1, and modules are compiled with the headers of their library. After it the number is
// incremented by a change that breaks older modules. Appending slots, kinds of operation and fields
// will not, because every structure that may grow has its size in `struct_size`, set by its
// allocator, and is neither read nor written beyond that size:
//   - Test with WEIR_HAS() before reading or writing a field that was appended after the first
//     release.
//   - A module fills a structure of the library with WEIR_WRITE(), or field by field.
//   - The distance between the elements of an array is stated beside it, or is the struct_size of
//     the first element. A function declared beside the structure returns an element.
//   - An appended ability of a backend is announced by a field of weir_limits, by
//     weir_module.slot_count or by weir_module.operation_kinds, so that the front end knows of it
//     before the first use.
#define WEIR_MODULE_ABI 1u
#define WEIR_MODULE_QUERY_SYMBOL "weir_module_query"

enum weir_module_kind {
    WEIR_MODULE_BACKEND = 1,
    WEIR_MODULE_PLUGIN = 2,
    WEIR_MODULE_TRANSPORT = 3, // carries collectives: <weir/module/transport.h>
};

enum weir_module_wants {
    WEIR_MODULE_WANTS_TIMES = 1u << 0, // plugins: queues with weir_queue_setup.times
};

// The services of the front end for modules. Valid as long as the module is loaded.
struct weir_host {
    size_t struct_size;
    // Sends a message to the log callback.
    void (*log)(weir_log_level level, const char *source, const char *message);
    // Sets the calling thread's error detail and returns `detail->status`. The front end fills in
    // object, file and line if they are empty. `size` is sizeof *detail.
    weir_status (*error)(const struct weir_error *detail, size_t size);
    // Counted allocation (weir_counters_read) of zeroed memory; NULL if out of memory.
    void *(*allocate)(size_t size);
    void (*release)(void *pointer);
    // Counts a native object that was created; not called for events.
    void (*count_driver_object)(void);
    // Fails the queue from this operation on, with the calling thread's error, and completes its event.
    // For a plugin that submits on a thread of its own, where the failure of a submit reaches no caller
    // of the program's. Once for an operation, in place of another submit.
    void (*fail)(weir_queue *queue, const struct weir_operation *operation, weir_status status);
    // Whether the calling thread runs a host call or a native call of the program's, in which nothing may wait.
    bool (*in_host_call)(void);
};

struct weir_transport_ops;

// One rank of a communicator that an engine of the device makes; all ranks make theirs at once.
// Valid during the call only.
struct weir_comm_setup {
    size_t struct_size;
    uint32_t rank;
    uint32_t count;
    uint64_t timeout_ns; // for the call to return
    // Stores `size` bytes of each rank, in the order of ranks, in `all`. Every rank calls it equally
    // often and with the same sizes, or returns an error, which the others get then. Waits for
    // them, at most `timeout_ns`.
    weir_status (*all_gather)(const struct weir_comm_setup *setup, const void *own, void *all,
                              size_t size);
    void *user; // of all_gather
};

// What an engine knows of a communicator.
struct weir_comm_progress {
    size_t struct_size;
    // The collectives whose u.collective.turn is lower than this are complete.
    uint32_t turn;
    // Work that was submitted before the first incomplete one has finished, as far as is known:
    // the engine need not look at every collective.
    bool due;
};

struct weir_device_setup {
    size_t struct_size;
    size_t index;
    const char *label;
};

struct weir_queue_setup {
    size_t struct_size;
    int32_t priority;
    bool timing;
    // Some module of the chain requests times (weir_module.wants): the backend keeps the
    // begin and the end of each operation, for queue_times.
    bool times;
    // The caller's stream or command queue, to be used instead of a new one, or NULL. It
    // stays the caller's. Set only where `limits.native` is not 0.
    void *native;
};

struct weir_buffer_setup {
    size_t struct_size;
    size_t size;
    weir_placement placement;
    void *user_pointer; // HOST: memory to register; NULL: allocate
    // The caller's device memory, to be used instead of new memory: a CUdeviceptr or a
    // cl_mem; 0: allocate. With HOST, pinned memory that the driver already knows. Set
    // only where `limits.native` is not 0.
    uint64_t native;
};

// The time at which an operation ran, in nanoseconds on its device's timeline, which is
// that of weir_event_time_ns().
struct weir_operation_time {
    uint64_t sequence;
    uint64_t start_ns;
    uint64_t end_ns;
    // The driver reports no start: this is the time from which the queue had no other
    // work; the engine may have begun later.
    bool start_is_earliest;
};

// A graph for the backend to build. Everything is valid during the call only, except the
// objects that operations name.
struct weir_graph_setup {
    size_t struct_size;
    const struct weir_graph_node *nodes; // in an order that satisfies dependencies;
                                         // weir_graph_node_at() finds one
    uint32_t node_count;
    uint32_t branch_count; // queues that were captured; branch 0 launches the graph
};

// The ops table. `M` is mandatory for backends, `O` optional; plugins may leave every
// slot NULL, and an unset slot of a plugin forwards. For an optional slot that a backend
// does not set, the slot's line says what happens.
//
// Creates run from the outermost link to the backend and store the link's own pointer of
// the new object in `*out_data`; they do not forward. If one fails, the links before it
// are rolled back in reverse order with the matching destroy. Destroys run from the
// backend outwards, after all work that uses the object has finished, and cannot fail.
// All other slots start at the outermost link, and a plugin forwards by calling
// `link->next->ops->slot(link->next, …)`.
//
// Threads: any thread may call any slot, except that submits to one queue are
// never concurrent. No slot but `program_create`, `device_trim`, `event_wait`,
// `queue_finish` and the first `device_peer` of two devices may wait for the device.
struct weir_module_ops {
    // M. Prepares the module; loads vendor libraries. `settings` has one entry per key
    // of the module, in order, and lives as long as the link. On failure it has reported
    // to `host->error` what is missing and what to do.
    weir_status (*open)(struct weir_link *link, const struct weir_setting *const *settings,
                        void **out_state);
    // It cannot fail, but it reports to `host->error` if it could not save data, such as
    // a file: weir_close() returns that error after everything is closed.
    void (*close)(const struct weir_link *link);

    // M for backends; plugins leave both to the backend.
    size_t (*device_count)(const struct weir_link *link);
    weir_status (*device_describe)(const struct weir_link *link, size_t index,
                                   struct weir_device_info *out_info);

    // M. `weir_device_data` is NULL until it returns.
    weir_status (*device_create)(const struct weir_link *link, weir_device *device,
                                 const struct weir_device_setup *setup, void **out_data);
    void (*device_destroy)(const struct weir_link *link, weir_device *device);
    // M. Called once after creation, from the backend outwards: the backend
    // fills the limits, plugins may change them. Does not forward.
    void (*device_limits)(const struct weir_link *link, weir_device *device,
                          struct weir_limits *limits);
    // O: nothing to trim. The front end also calls it where the backend's buffer_create has returned
    // WEIR_ERROR_OUT_OF_MEMORY, and then asks for the buffer once more.
    weir_status (*device_trim)(const struct weir_link *link, weir_device *device);

    // M.
    weir_status (*queue_create)(const struct weir_link *link, weir_device *device,
                                weir_queue *queue, const struct weir_queue_setup *setup,
                                void **out_data);
    void (*queue_destroy)(const struct weir_link *link, weir_queue *queue);
    // M. Submits one operation; returns when the driver has accepted it. An error fails
    // the queue. A backend never sees HOST_CALL, IMPLIED or EMPTY. WAIT: flushes the
    // producer first, which belongs to another device only if device_peer says so for
    // the two. NATIVE, only if limits.native is not 0: calls the function as work of the
    // queue, on CUDA with the device's context current. A kind that the backend does not
    // know is refused with weir_host_unknown_kind() (<weir/module/error.h>): the front end
    // submits no kind above `operation_kinds`, but a plugin may.
    weir_status (*queue_submit)(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation);
    // O: submitting is enough.
    weir_status (*queue_flush)(const struct weir_link *link, weir_queue *queue);
    // M. Blocks until everything submitted has finished.
    weir_status (*queue_finish)(const struct weir_link *link, weir_queue *queue);

    // M. `sequence` is that of a RECORD. Both flush the queue first. Returns
    // WEIR_OK, WEIR_NOT_READY / WEIR_TIMEOUT, or the driver's error.
    weir_status (*event_query)(const struct weir_link *link, weir_queue *queue, uint64_t sequence);
    weir_status (*event_wait)(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t timeout_ns);
    // O: no timing; `limits.timing_history` is 0 then. Of a complete record.
    // WEIR_ERROR_EXPIRED when it is no longer kept.
    weir_status (*event_time)(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t *out_time_ns);

    // M. `*out_pointer` is the host address of a HOST or MANAGED buffer, which stays valid and
    // mapped; plugins do not change it. MANAGED is asked for only where limits.managed_memory
    // is not 0.
    weir_status (*buffer_create)(const struct weir_link *link, weir_device *device,
                                 weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                 void **out_data, void **out_pointer);
    void (*buffer_destroy)(const struct weir_link *link, weir_buffer *buffer);

    // M. One of `params->bundle` and `params->source` is set.
    weir_status (*program_create)(const struct weir_link *link, weir_device *device,
                                  weir_program *program, const struct weir_program_params *params,
                                  void **out_data);
    void (*program_destroy)(const struct weir_link *link, weir_program *program);
    // O: the bundle's signatures are used. Signatures of run-time source;
    // static or the program's, each with its struct_size.
    weir_status (*program_signatures)(const struct weir_link *link, weir_program *program,
                                      const struct weir_kernel_signature **out_signatures,
                                      uint32_t *out_count);

    // M. The backend fills `info`.
    weir_status (*kernel_create)(const struct weir_link *link, weir_program *program,
                                 weir_kernel *kernel, const struct weir_kernel_signature *signature,
                                 struct weir_kernel_info *info, void **out_data);
    void (*kernel_destroy)(const struct weir_link *link, weir_kernel *kernel);

    // O: delivery replays the nodes, one after the other. A plugin may set
    // create and destroy to keep data with a graph. A graph with COLLECTIVEs is created by the
    // backend only if comm_captures is true for all of them. Its first launch, and the first
    // after graph_update, come on a thread of the library and may wait for other ranks.
    weir_status (*graph_create)(const struct weir_link *link, weir_device *device,
                                weir_graph *graph, const struct weir_graph_setup *setup,
                                void **out_data);
    void (*graph_destroy)(const struct weir_link *link, weir_graph *graph);
    // Later launches use `node` in place of node `index`, which has the same kind and,
    // for a LAUNCH, the same kernel, and leave it out while it is EMPTY. Never concurrent with a launch of
    // it. The function of a NATIVE is called as graph_create does. After an error launches do what they
    // did before. Updates of HOST_CALLs come to no backend.
    weir_status (*graph_update)(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                const struct weir_graph_node *node);

    // O: no native handles; `limits.native` is 0 then.
    weir_status (*device_native)(const struct weir_link *link, weir_device *device,
                                 struct weir_native_device *out_native);
    weir_status (*queue_native)(const struct weir_link *link, weir_queue *queue,
                                struct weir_native_queue *out_native);
    weir_status (*buffer_native)(const struct weir_link *link, weir_buffer *buffer,
                                 struct weir_native_buffer *out_native);

    // O: no copies between devices. Stores whether queues of `device` can copy to and
    // from buffers of `other`, and wait for its records; enables both. Called before each
    // such operation, so a second call for two devices must be cheap. The answer is the
    // same in both directions. An error is that of a driver that could not enable them.
    weir_status (*device_peer)(const struct weir_link *link, weir_device *device,
                               weir_device *other, bool *out_peers);

    // O: no times. Moves the times of finished operations of the queue, oldest first, to
    // `times`, at most `capacity` of them, and stores how many. Only operations that
    // move data or compute have times: copies, fills, launches and graphs. A graph that
    // is replayed node by node has one for each node, all with the graph's sequence.
    // Never waits. Times that are not fetched are dropped, oldest first. The elements of
    // `times` are `time_size` bytes apart, and each is written with weir_write(). Threads:
    // one at a time for each queue.
    weir_status (*queue_times)(const struct weir_link *link, weir_queue *queue,
                               struct weir_operation_time *times, size_t time_size, size_t capacity,
                               size_t *out_count);
    // O: the two clocks are one. Stores one point in time on both the host's monotonic
    // clock and the device's timeline. May take some tens of microseconds.
    weir_status (*device_clock)(const struct weir_link *link, weir_device *device,
                                uint64_t *out_host_ns, uint64_t *out_device_ns);

    // O, plugins only: the calling thread enters a region, or leaves the innermost one
    // with `name` NULL. `number` is WEIR_NO_NUMBER if the region has none.
    void (*region)(const struct weir_link *link, const char *name, uint64_t number);

    // O, plugins only: nothing uses the queue any more, and the destroys, which begin at
    // the backend, come next: the last opportunity to fetch its times. Called for each
    // link, the outermost first; does not forward.
    void (*queue_retire)(const struct weir_link *link, weir_queue *queue);

    // O, backends only: the user has destroyed a queue that wraps a native one, so the
    // owner of the native queue may destroy it as soon as its work is done. The last
    // record was submitted, and from now on the native queue must not be used.
    void (*queue_leave)(const struct weir_link *link, weir_queue *queue);

    // O: kernels reach memory of their own device only. Stores whether kernels of `device` can
    // use `buffer` of `other`, for which device_peer has just returned true; with `buffer` NULL,
    // whether they can use DEVICE memory that buffer_create allocated. Called before each launch
    // that has such an argument, so it must be cheap. After it a launch may have that argument.
    weir_status (*device_reach)(const struct weir_link *link, weir_device *device,
                                weir_device *other, weir_buffer *buffer, bool *out_reaches);

    // O: only `compute_units` is known, and a cooperative launch has one block. Fills in what
    // the driver tells of launches with such blocks and `local_bytes` of local memory among
    // their arguments; both are within the kernel's limits. `occupancy` has compute_units,
    // and cooperative_blocks of 1, already. Called for every cooperative launch.
    weir_status (*kernel_occupancy)(const struct weir_link *link, weir_kernel *kernel,
                                    struct weir_extent block, size_t local_bytes,
                                    struct weir_occupancy *occupancy);

    // O: `limits.device_addresses` is 0. Stores the address of byte 0 in the device's memory.
    weir_status (*buffer_address)(const struct weir_link *link, weir_buffer *buffer,
                                  uint64_t *out_address);

    // O, plugins only: what the host does between submissions (<weir/module/host_note.h>). Only a
    // WEIR_HOST_NOTE_BEGIN may be refused; weir_host_begin() returns the error.
    weir_status (*host_note)(const struct weir_link *link, const struct weir_host_note *note);
    // O, plugins only: returns what the plugin offers to programs under that name, forwards other
    // names; see weir_runtime_extension().
    const void *(*extension)(const struct weir_link *link, const char *name);

    // O, backends only: collectives run through the host. Makes the device a rank of a communicator
    // of its own engine. Stores NULL in `*out_data` if that cannot be, on all ranks alike, and has
    // told the log why; the collectives run through the host then. May wait for the other ranks.
    // From then on queue_submit gets the COLLECTIVEs of `comm`, one at a time and in their order,
    // for which comm_takes returns true. It may wait for other ranks only if this one has
    // not had an equal COLLECTIVE before; those come on a thread of the library.
    weir_status (*comm_create)(const struct weir_link *link, weir_device *device, weir_comm *comm,
                               const struct weir_comm_setup *setup, void **out_data);
    // Waits for nothing. Its collectives have finished, or it was aborted.
    void (*comm_destroy)(const struct weir_link *link, weir_comm *comm);
    // Whether the engine can carry the collective out. The answer depends on kind, element and
    // reduction only, so it is the same on all ranks.
    bool (*comm_takes)(const struct weir_link *link, weir_comm *comm,
                       const struct weir_operation *operation);
    // Ends collectives that are under way, soon and with any result, and refuses later ones. Called
    // once at most, after the first failure was booked, also while queue_submit waits. Waits for
    // nothing.
    void (*comm_abort)(const struct weir_link *link, weir_comm *comm);
    // Fills `*progress`. Called by one thread of the library now and then, also while queue_submit
    // waits, and after comm_abort if there is comm_give_up. An error is the engine's first failure.
    weir_status (*comm_query)(const struct weir_link *link, weir_comm *comm,
                              struct weir_comm_progress *progress);
    // The engine and its version, such as "NCCL 2.28.9".
    const char *(*comm_engine)(const struct weir_link *link, weir_comm *comm);

    // O, backends only: graphs with collectives are replayed. Whether a graph of the backend can hold
    // a COLLECTIVE of a communicator of its engine that comm_takes.
    bool (*comm_captures)(const struct weir_link *link, weir_comm *comm,
                          const struct weir_operation *operation);

    // O, backends only: it has graphs of other nodes. Whether a graph of the backend can hold this NATIVE
    // or HOST_CALL; one with a node that it cannot hold is replayed.
    //
    // For a NATIVE, graph_create calls the function with a native queue on which what it submits is
    // captured. For a HOST_CALL, each launch calls the function once, on any thread, after the nodes
    // that this one depends on, and ignores what it returns; launches of the graph come one after the
    // other.
    bool (*graph_takes)(const struct weir_link *link, weir_device *device,
                        const struct weir_operation *operation);

    // O, backends only: work that an abort does not end is waited for without end. The work of this
    // communicator has not ended long after comm_abort. From now on calls on its device return `cause`, and
    // so do waits of the host that are under way; nothing waits for the device, and what can be freed
    // only if work has ended stays.
    void (*comm_give_up)(const struct weir_link *link, weir_comm *comm,
                         const struct weir_error *cause);
};

#define WEIR_MODULE_SLOT_COUNT (sizeof(struct weir_module_ops) / sizeof(void (*)(void)))

// The type of a slot's function, for declarations: WEIR_SLOT(open) my_open;
#define WEIR_SLOT(slot) __typeof__(*((struct weir_module_ops *)0)->slot)

// The structure that weir_module_query returns.
struct weir_module {
    uint32_t abi;         // WEIR_MODULE_ABI when the module was compiled
    uint32_t struct_size; // sizeof(struct weir_module) at that time
    enum weir_module_kind kind;
    const char *name;
    const char *version;
    const char *sanitizer; // "", "address", "thread": WEIR_MODULE_SANITIZER
    const struct weir_key *keys;
    uint32_t key_count;
    uint32_t key_size;        // these three at that time: sizeof(struct weir_key),
    uint32_t slot_count;      // WEIR_MODULE_SLOT_COUNT,
    uint32_t operation_kinds; // WEIR_OPERATION_KINDS
    const struct weir_module_ops *ops;
    // The driver's name and version, after a successful open; may be NULL.
    const char *(*driver_version)(const struct weir_link *link);
    uint32_t wants; // enum weir_module_wants
    // Further information about the module, for `weir doctor`: a name, its text, the next name, and
    // so on, then NULL. NULL: none. Names are in lower case, such as
    // "summary" (one sentence), "images" (the forms of device code that it takes), "needs"
    // (libraries of the system), "home" (an address).
    const char *const *about;

    // TRANSPORT only, and nothing else of a module is: `ops` and driver_version are NULL, slot_count
    // is 0. The number is WEIR_TRANSPORT_SLOT_COUNT at that time.
    const struct weir_transport_ops *transport;
    uint32_t transport_slot_count;
};

// Every module defines this function. It has no side effects and returns static data: it
// is also called to read the key table of a module that will not be used.
WEIR_API const struct weir_module *weir_module_query(uint32_t host_abi,
                                                     const struct weir_host *host);
typedef const struct weir_module *(*weir_module_query_function)(uint32_t host_abi,
                                                                const struct weir_host *host);

// The sanitizer that a module is being compiled with.
#if defined(__SANITIZE_ADDRESS__)
#define WEIR_MODULE_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define WEIR_MODULE_SANITIZER "thread"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_MODULE_SANITIZER "address"
#elif __has_feature(thread_sanitizer)
#define WEIR_MODULE_SANITIZER "thread"
#else
#define WEIR_MODULE_SANITIZER ""
#endif
#else
#define WEIR_MODULE_SANITIZER ""
#endif

// Defines a module's structure and weir_module_query(), which returns it: the kind, the name and the version, then the
// other fields that the module has, as designated initialisers.
//
//     WEIR_MODULE(WEIR_MODULE_PLUGIN, "count", "1.0", WEIR_MODULE_OPS(ops), .about = about)
#define WEIR_MODULE(module_kind, module_name, module_version, ...)                               \
    static const struct weir_module weir_module_data = {                                         \
        .abi = WEIR_MODULE_ABI,                                                                  \
        .struct_size = sizeof(struct weir_module),                                               \
        .kind = (module_kind),                                                                   \
        .name = (module_name),                                                                   \
        .version = (module_version),                                                             \
        .sanitizer = WEIR_MODULE_SANITIZER,                                                      \
        .key_size = sizeof(struct weir_key),                                                     \
        __VA_ARGS__,                                                                             \
    };                                                                                           \
    const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host) \
    {                                                                                            \
        (void)host_abi;                                                                          \
        (void)host;                                                                              \
        return &weir_module_data;                                                                \
    }

// The fields that a table of slots needs: of backends and plugins, and of transports.
#define WEIR_MODULE_OPS(table) \
    .ops = &(table), .slot_count = WEIR_MODULE_SLOT_COUNT, .operation_kinds = WEIR_OPERATION_KINDS
#define WEIR_MODULE_TRANSPORT_OPS(table) \
    .transport = &(table), .transport_slot_count = WEIR_TRANSPORT_SLOT_COUNT

#endif
