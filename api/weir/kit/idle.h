// Deferred frees. Some driver calls wait for the whole device although they only free something:
// unloading a module, freeing pinned memory, unregistering memory of the host. A destroy must not
// wait, so these calls are deferred until the device has no work: to the end of a wait on the
// host, to program_create, to device_trim or to close.
//
// Pinned memory is not freed but kept for the next buffer: see weir_kit_blocks.
//
// Threads: safe.
#ifndef WEIR_KIT_IDLE_H
#define WEIR_KIT_IDLE_H

#include <pthread.h>
#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

// The deferred frees of one device.
typedef struct weir_kit_idle weir_kit_idle;

// Registered memory of the host. Registrations belong to the process, not to a device: a backend
// has one static list, set to WEIR_KIT_REGISTRATIONS, and buffers over the same memory share a
// registration, also if they are of two devices. Only the kit uses the list's members.
struct weir_kit_registration;
struct weir_kit_registrations {
    pthread_mutex_t lock;
    struct weir_kit_registration *first;
};
// clang-format off
#define WEIR_KIT_REGISTRATIONS {PTHREAD_MUTEX_INITIALIZER, NULL}
// clang-format on

struct weir_kit_idle_params {
    const struct weir_host *host;
    void *device; // passed to the functions below
    // Whether no queue of the device has work. Must not wait.
    bool (*is_idle)(void *device);
    // The backend's list, and the function that ends a registration. NULL: the backend registers
    // no memory.
    struct weir_kit_registrations *registrations;
    void (*unregister)(void *device, void *pointer);
};

// Ownership: the caller's, until weir_kit_idle_destroy(), which accepts a pointer to NULL. Drain
// before destroying.
weir_status weir_kit_idle_create(const struct weir_kit_idle_params *params,
                                 weir_kit_idle **out_idle);
void weir_kit_idle_destroy(weir_kit_idle **idle);

// A deferred free. It is a member of the object to be freed, so that deferring it allocates
// nothing. Zeroed before use.
struct weir_kit_idle_entry {
    struct weir_kit_idle_entry *next;
    // Frees the object, including the memory of the entry.
    void (*give_back)(struct weir_kit_idle_entry *entry);
};

// Defers a free. Never waits.
void weir_kit_idle_put(weir_kit_idle *idle, struct weir_kit_idle_entry *entry);
// Runs the deferred frees if the device is idle. Costs one load if there are none. For slots that
// may wait.
void weir_kit_idle_settle(weir_kit_idle *idle);
// Runs all deferred frees. May wait for the device.
void weir_kit_idle_drain(weir_kit_idle *idle);

// Returns a registration that covers the range, with the caller as a further user, or NULL if
// there is none. Unused registrations that overlap the range are ended first, which may wait for
// the device: their memory may have been unmapped since, and other memory mapped at its address.
struct weir_kit_registration *weir_kit_registration_share(weir_kit_idle *idle, void *pointer,
                                                          size_t size);
// Adds a registration that the driver has just made, with the caller as its first user. Returns
// NULL if out of memory; the caller then unregisters the range.
struct weir_kit_registration *weir_kit_registration_add(weir_kit_idle *idle, void *pointer,
                                                        size_t size);
// Ends the caller's use. After the last use, ending the registration is a deferred free. Never
// waits.
void weir_kit_registration_put(weir_kit_idle *idle, struct weir_kit_registration *registration);
// Whether a registration, in use or not, overlaps the range.
bool weir_kit_registration_touches(const weir_kit_idle *idle, void *pointer, size_t size);

// Memory of destroyed buffers, kept for the next buffers of about the same size until trim, close,
// or a lack of memory. Only the kit uses the members.
struct weir_kit_block;
struct weir_kit_blocks {
    pthread_mutex_t lock;
    struct weir_kit_block *first;
};

// A piece of such memory, allocated by the backend.
struct weir_kit_block {
    struct weir_kit_block *next;
    void *pointer;
    size_t size;
    void *native; // the driver's object, or NULL
};

// An empty list, and the end of one, which must be empty again.
void weir_kit_blocks_init(struct weir_kit_blocks *blocks);
void weir_kit_blocks_finish(struct weir_kit_blocks *blocks);

// Returns `size` rounded up to a multiple of 4 KiB, and by at most an eighth from 64 KiB on, so
// that buffers of similar sizes can share blocks.
size_t weir_kit_block_size(size_t size);
// Removes and returns the smallest kept block of at least `size` and at most `limit` bytes, or
// NULL.
//
// Ownership: the caller's, until it is put.
struct weir_kit_block *weir_kit_block_take(struct weir_kit_blocks *blocks, size_t size,
                                           size_t limit);
void weir_kit_block_put(struct weir_kit_blocks *blocks, struct weir_kit_block *block);
// Removes every block and calls `give_back` for it, which frees the memory and the structure and
// may wait for the device.
void weir_kit_blocks_empty(struct weir_kit_blocks *blocks,
                           void (*give_back)(void *device, struct weir_kit_block *block),
                           void *device);

#ifdef __cplusplus
}
#endif

#endif
