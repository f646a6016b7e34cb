// See the header.
#include "core/buffer/staging.h"

#include "core/buffer/buffer.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// More gain nothing on an H100 (docs/decisions/0024-copying-threads.md).
#define AUTO_THREADS 12
// Of this size large blocks gain little there.
#define LARGE_BYTES ((size_t)64 << 20)

struct weir__staging_block {
    struct weir__staging_block *next;
    enum weir__staging_size size;
    weir_buffer *memory;
};

_Static_assert(sizeof((struct weir__staging *)0)->blocks / sizeof(struct weir__staging_blocks) ==
                   WEIR__STAGING_SIZES,
               "a device has a list of blocks of each size");

void weir__staging_init(struct weir__staging *staging)
{
    weir_lock_init(&staging->lock, &weir__locks[WEIR__LOCK_STAGING]);
    weir_workers_init(&staging->copiers, &weir__locks[WEIR__LOCK_COPIERS]);
}

void weir__staging_finish(struct weir__staging *staging)
{
    weir_workers_finish(&staging->copiers);
    weir_lock_finish(&staging->lock);
}

// On a device without copy engines the threads would take the processors that compute.
void weir__staging_configure(weir_device *device, unsigned threads)
{
    if (threads > WEIR_WORKERS_MAX) {
        const unsigned processors = weir_workers_processors();
        threads = processors < AUTO_THREADS ? processors : AUTO_THREADS;
        if (processors == 1 || !device->limits.copy_engines_to_device)
            threads = 0;
    }
    device->staging.thread_limit = threads;
    device->staging.large_bytes = LARGE_BYTES;
}

weir_buffer *weir__staging_memory(const struct weir__staging_block *block)
{
    return block->memory;
}

// A block that is counted already, or NULL with the thread's error.
static struct weir__staging_block *create(weir_device *device, enum weir__staging_size size)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = WEIR__STAGING_BYTES(size),
                                            .placement = WEIR_PLACE_HOST};
    struct weir__staging_block *block = weir__allocate(sizeof *block);
    if (!block) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for staging");
        return NULL;
    }
    block->size = size;
    const weir_status status = weir__buffer_make(device, "staging", &setup, true, &block->memory);
    if (status == WEIR_OK)
        return block;
    weir__release(block);
    const struct weir_error cause = weir__error_of(status);
    weir__error_set(&cause);
    return NULL;
}

static void destroy(struct weir__staging_block *block)
{
    const struct weir_error cause = *weir_last_error();
    weir_buffer_destroy(&block->memory);
    weir__release(block);
    weir__error_set(&cause);
}

static struct weir__staging_block *pop(struct weir__staging_blocks *blocks)
{
    struct weir__staging_block *block = blocks->spare;
    if (block)
        blocks->spare = block->next;
    return block;
}

// A block that is kept, or one to be created: NULL and `*out_create`.
static struct weir__staging_block *reserve(struct weir__staging *staging,
                                           enum weir__staging_size size, bool needed,
                                           bool *out_create)
{
    struct weir__staging_blocks *blocks = &staging->blocks[size];
    weir_lock_take(&staging->lock);
    struct weir__staging_block *block = pop(blocks);
    *out_create = !block && (needed || blocks->count < WEIR__STAGING_BLOCKS_MAX(size));
    if (*out_create)
        blocks->count++;
    weir_lock_release(&staging->lock);
    return block;
}

static void uncount(struct weir__staging *staging, enum weir__staging_size size)
{
    weir_lock_take(&staging->lock);
    staging->blocks[size].count--;
    weir_lock_release(&staging->lock);
}

size_t weir__staging_take(weir_device *device, enum weir__staging_size size, size_t least,
                          size_t wanted, struct weir__staging_block **out_blocks)
{
    struct weir__staging *staging = &device->staging;
    size_t count = 0;
    while (count < wanted) {
        bool is_new;
        struct weir__staging_block *block = reserve(staging, size, count < least, &is_new);
        if (is_new && !(block = create(device, size)))
            uncount(staging, size);
        if (!block)
            break;
        out_blocks[count++] = block;
    }
    if (count >= least)
        return count;
    weir__staging_return(device, count, out_blocks);
    return 0;
}

// Whether the block is kept.
static bool push(struct weir__staging *staging, struct weir__staging_block *block)
{
    struct weir__staging_blocks *blocks = &staging->blocks[block->size];
    weir_lock_take(&staging->lock);
    const bool keep = blocks->count <= WEIR__STAGING_BLOCKS_MAX(block->size);
    if (keep) {
        block->next = blocks->spare;
        blocks->spare = block;
    } else {
        blocks->count--;
    }
    weir_lock_release(&staging->lock);
    return keep;
}

void weir__staging_return(weir_device *device, size_t count, struct weir__staging_block **blocks)
{
    for (size_t i = count; i-- > 0;)
        if (!push(&device->staging, blocks[i]))
            destroy(blocks[i]);
}

static void trim(struct weir__staging *staging, struct weir__staging_blocks *blocks)
{
    struct weir__staging_block *block;
    do {
        weir_lock_take(&staging->lock);
        block = pop(blocks);
        blocks->count -= block != NULL;
        weir_lock_release(&staging->lock);
        if (block)
            destroy(block);
    } while (block);
}

void weir__staging_trim(weir_device *device)
{
    struct weir__staging *staging = &device->staging;
    for (int size = 0; size < WEIR__STAGING_SIZES; size++)
        trim(staging, &staging->blocks[size]);
    weir_workers_stop(&staging->copiers);
}
