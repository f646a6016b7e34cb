// What may only be given back while the device is idle. Drivers wait for the whole device
// where one does not expect it: as a module is unloaded, as pinned memory is freed, as memory of
// the host is unregistered. A destroy must not wait, so such things are kept until the device has
// no work: at the end of a wait on the host, in program_create, in device_trim and at close.
//
// Pinned memory is kept for the next buffer instead; see struct weir_kit_blocks.
//
// Threads: safe.
#ifndef WEIR_KIT_IDLE_H
#define WEIR_KIT_IDLE_H

#include <pthread.h>
#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of one device.
typedef struct weir_kit_idle weir_kit_idle;

// Registered memory of the host. Registrations are the process's, not a device's: a backend has
// one static list, and buffers over the same memory, of two devices perhaps, share a
// registration.
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
    void *device; // given to the functions
    // Whether no queue of the device has work, as far as the driver tells without waiting.
    bool (*is_idle)(void *device);
    // The backend's list, and what ends a registration; NULL: it registers no memory.
    struct weir_kit_registrations *registrations;
    void (*unregister)(void *device, void *pointer);
};

// Ownership: the caller's, until weir_kit_idle_destroy(), which accepts a pointer to NULL and
// is called after a drain.
weir_status weir_kit_idle_create(const struct weir_kit_idle_params *params,
                                 weir_kit_idle **out_idle);
void weir_kit_idle_destroy(weir_kit_idle **idle);

// A thing that waits to be given back. It lies in the thing itself, so that a destroy needs no
// memory; zeroed before it is used.
struct weir_kit_idle_entry {
    struct weir_kit_idle_entry *next;
    // Gives the thing back, the entry's memory included.
    void (*give_back)(struct weir_kit_idle_entry *entry);
};

// Never waits.
void weir_kit_idle_put(weir_kit_idle *idle, struct weir_kit_idle_entry *entry);
// Gives back what is kept, if the device is idle; nearly free where nothing is. For slots that may
// wait.
void weir_kit_idle_settle(weir_kit_idle *idle);
// Gives everything back, and may wait for the device.
void weir_kit_idle_drain(weir_kit_idle *idle);

// Looks for a registration that covers the range, of which the caller becomes a user; NULL if
// there is none. Registrations in the way that nobody uses are ended first, which may wait for
// the device: their memory may have been unmapped, and their address may lie on other
// memory now.
struct weir_kit_registration *weir_kit_registration_share(weir_kit_idle *idle, void *pointer,
                                                          size_t size);
// Adds one that the driver has just made, with the caller as its first user. NULL without memory;
// then the caller unregisters.
struct weir_kit_registration *weir_kit_registration_add(weir_kit_idle *idle, void *pointer,
                                                        size_t size);
// The caller uses it no longer. With the last user it waits for an idle moment of the
// device. Never waits.
void weir_kit_registration_put(weir_kit_idle *idle, struct weir_kit_registration *registration);
// Whether one of them, used or not, has a byte in common with the range.
bool weir_kit_registration_touches(const weir_kit_idle *idle, void *pointer, size_t size);

// Pinned memory of destroyed buffers, kept by size for the next ones until trim, close, or a lack
// of memory. The list begins zeroed, with its lock initialised by the backend.
struct weir_kit_block {
    struct weir_kit_block *next;
    void *pointer;
    size_t size;
    void *native; // the driver's object, where there is one
};

struct weir_kit_blocks {
    pthread_mutex_t lock;
    struct weir_kit_block *first;
};

// `size` rounded up by an eighth at most, so that buffers of nearly one size share blocks.
size_t weir_kit_block_size(size_t size);
// The smallest block that is kept of at least `size` and at most `limit` bytes, or NULL.
//
// Ownership: the caller's, until put.
struct weir_kit_block *weir_kit_block_take(struct weir_kit_blocks *blocks, size_t size,
                                           size_t limit);
void weir_kit_block_put(struct weir_kit_blocks *blocks, struct weir_kit_block *block);
// Calls `give_back` for each block, which releases the block's own memory too. It may wait.
void weir_kit_blocks_empty(struct weir_kit_blocks *blocks,
                           void (*give_back)(void *device, struct weir_kit_block *block),
                           void *device);

#ifdef __cplusplus
}
#endif

#endif
