// Devices: listing, opening and closing them, and their limits.
#ifndef WEIR_DEVICE_H
#define WEIR_DEVICE_H

#include <weir/common.h>
#include <weir/status.h>

// Properties of a device, which need not be open.
struct weir_device_info {
    size_t struct_size;
    char name[128];     // "NVIDIA H200", "pthread-skylake-avx512"
    char platform[128]; // "NVIDIA CUDA", "Portable Computing Language"
    char driver[128];   // the driver's version in its own words
    uint64_t memory_bytes;
};

// How many devices the chain's backend lists.
WEIR_API size_t weir_device_count(const weir_runtime *runtime);

// Describes device `index` of the chain's backend.
//
// Errors: WEIR_ERROR_NO_DEVICE for an index past the last device.
WEIR_CALL weir_status weir_device_describe_sized(const weir_runtime *runtime, size_t index,
                                                 struct weir_device_info *out_info, size_t size);
#define weir_device_describe(runtime, index, out_info) \
    weir_device_describe_sized(runtime, index, out_info, sizeof(struct weir_device_info))

// What a device is, for figures and choices of sizes. What it can do is told by the other limits.
typedef enum weir_device_kind {
    WEIR_DEVICE_OTHER = 0, // none of these, or the driver does not tell
    WEIR_DEVICE_CPU = 1,
    WEIR_DEVICE_GPU = 2,
    WEIR_DEVICE_ACCELERATOR = 3,
} weir_device_kind;

// The abilities of an opened device. Programs decide by these limits, never by the backend's name.
// Zero means: not supported.
struct weir_limits {
    size_t struct_size;

    // Memory.
    uint64_t memory_bytes;             // total, of the device
    uint64_t max_buffer_bytes;         // the largest DEVICE or HOST buffer
    uint64_t argument_alignment_bytes; // offsets of launch arguments that are multiples of it are
                                       // always valid; others, see byte_offsets
    uint32_t unified_memory;           // device and host share one memory
    uint32_t host_in_kernels;          // HOST buffers may be launch arguments

    // Launches.
    uint32_t max_block_items;     // work-items in a block
    struct weir_extent max_block; // work-items in a block, per dimension
    struct weir_extent max_grid;  // blocks per dimension
    uint64_t max_local_bytes;     // local memory of a block
    uint32_t compute_units;

    // Overlap.
    uint32_t concurrent_kernels; // kernels that may run at once
    uint32_t copy_engines_to_device;
    uint32_t copy_engines_to_host;
    int32_t priority_lowest;  // lowest and highest are equal where
    int32_t priority_highest; // queues have no priorities

    // Timing, for queues created with `timing`.
    uint32_t timing_resolution_ns;
    uint32_t timing_history; // timed records of a queue that are kept

    uint32_t native;      // <weir/interop.h> works: native handles can be read and wrapped
    uint32_t cuda_source; // programs are compiled from weir_program_params.cuda_source

    uint32_t managed_memory; // MANAGED buffers: the host uses them through weir_host_begin(), also
                             // while the device works, and kernels and copies use them in place

    // Arguments of launches.
    uint32_t byte_offsets;       // offsets of arguments need only be multiples of the parameter's
                                 // weir_parameter.alignment, where that is known
    uint32_t device_addresses;   // weir_buffer_address() works, and kernels may use addresses
    uint64_t max_constant_bytes; // the largest range for a pointer to __constant memory

    // What carries collectives out (<weir/comm.h>): 1 is the host; 2 an engine of the device, if its
    // library is there when the first communicator is created (see weir_comm_engine()).
    uint32_t collectives;

    uint32_t kind; // one of weir_device_kind; in virtual time, that of the modelled device
};

struct weir_device_params {
    size_t struct_size;
    const char *label;
    // A device's index in decimal digits, or part of its name, ignoring case;
    // NULL: the configuration's `device`, else the first device.
    const char *select;
    bool default_timing; // weir_event_time_ns() works on events of the device's default queues: the
                         // legacy queue and those of threads (<weir/migration.h>)
};

// Opens a device and stores it in `*out_device`. `params` may be NULL.
//
// A `runtime` of NULL is the default runtime, for short programs: that of weir_open(NULL), which the
// first such call opens. All these calls share it, so that its devices can wait for each other and copy
// to each other. The end of its last device closes it; weir_device_runtime() returns it until then.
//
//     weir_device *device;
//     WEIR_CHECK(weir_device_open(NULL, NULL, &device));
//
// Errors: WEIR_ERROR_NO_DEVICE if no device matches, with the list of devices, or if a
// name matches more than one; WEIR_ERROR_UNSUPPORTED for default_timing where
// `limits.timing_history` is 0; WEIR_ERROR_DEVICE with the native error; without a runtime, those of
// weir_open().
WEIR_CALL weir_status weir_device_open_at(weir_runtime *runtime,
                                          const struct weir_device_params *params,
                                          weir_device **out_device, const char *file, int line);
#define weir_device_open(...) weir_device_open_at(__VA_ARGS__, __FILE__, __LINE__)

// Waits for all work, frees the objects that were destroyed while in use, closes the
// device and sets `*device` to NULL.
//
// Errors: WEIR_ERROR_INVALID while queues, buffers, programs, kernels, pools or graphs of
// the device exist, with their labels and the lines that created them, and in a host call. Where the
// message has no room for all of them, each has a line in the log (<weir/log.h>). The device stays
// open then. Of the default runtime's last device also the errors of weir_close(), after which all is
// closed.
WEIR_CALL weir_status weir_device_close_at(weir_device **device, const char *file, int line);
#define weir_device_close(...) weir_device_close_at(__VA_ARGS__, __FILE__, __LINE__)

// The runtime that the device was opened from; NULL for NULL.
WEIR_API weir_runtime *weir_device_runtime(const weir_device *device);

// The device's limits, and its name, platform and driver; NULL for NULL.
WEIR_API const struct weir_limits *weir_device_limits(const weir_device *device);
WEIR_API const struct weir_device_info *weir_device_get_info(const weir_device *device);

// Whether queues of `device` can copy to and from buffers of `other`, another opened
// device of the same runtime (see weir_queue_copy()). If two devices have no direct path
// between them, a driver may copy through host memory. The first call for a pair of
// devices, or the first copy between them, enables peer access and may wait for both
// devices. If the driver fails at that, the result is false and the reason is the thread's
// error.
//
// False for NULL, and for devices of different runtimes.
WEIR_API bool weir_device_can_peer(weir_device *device, weir_device *other);

// Whether kernels on queues of `device` can use memory of `other` in place: its DEVICE buffers, and
// HOST buffers of weir_buffer_create(), may then be arguments of their launches. True for a device
// itself; else only for peers with a path between their memories, such as NVLink, and not always
// both ways. Adopted and wrapped memory of other devices is never an argument. The same waits and
// errors as weir_device_can_peer().
WEIR_API bool weir_device_can_reach(weir_device *device, weir_device *other);

// Waits on the host for everything submitted to all queues of the device so far, and for what host calls
// submit meanwhile: when the process ends, host calls that have not run never will, and the log says how
// many (<weir/log.h>). Other threads may go on submitting; that is not waited for.
//
// Errors: the first failure of any queue, after all others were waited for; WEIR_TIMEOUT;
// WEIR_ERROR_INVALID in a host call, and while a queue captures a graph.
WEIR_CALL weir_status weir_device_sync_at(weir_device *device, uint64_t timeout_ns,
                                          const char *file, int line);
#define weir_device_sync(...) weir_device_sync_at(__VA_ARGS__, __FILE__, __LINE__)

// Returns cached memory to the driver and frees the objects that were destroyed while in
// use and are idle now. May wait for the whole device.
//
// Errors: WEIR_ERROR_INVALID in a host call; WEIR_ERROR_DEVICE, _DEVICE_LOST.
WEIR_CALL weir_status weir_device_trim(weir_device *device);

#endif
