// See the header.
#include "core/buffer/staging.h"

#include "core/buffer/buffer.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// Eight threads saturate the link of an H200 (docs/benchmarks.md).
#define AUTO_THREADS 8

struct weir__staging_block {
    struct weir__staging_block *next;
    weir_buffer *memory;
};

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
}

weir_buffer *weir__staging_memory(const struct weir__staging_block *block)
{
    return block->memory;
}

// A block that is counted already, or NULL with the thread's error.
static struct weir__staging_block *create(weir_device *device)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = WEIR__STAGING_BLOCK_BYTES,
                                            .placement = WEIR_PLACE_HOST};
    struct weir__staging_block *block = weir__allocate(sizeof *block);
    if (!block) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for staging");
        return NULL;
    }
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

static struct weir__staging_block *pop(struct weir__staging *staging)
{
    struct weir__staging_block *block = staging->spare;
    if (block)
        staging->spare = block->next;
    return block;
}

// A block that is kept, or one to be created: NULL and `*out_create`.
static struct weir__staging_block *reserve(struct weir__staging *staging, bool needed,
                                           bool *out_create)
{
    weir_lock_take(&staging->lock);
    struct weir__staging_block *block = pop(staging);
    *out_create = !block && (needed || staging->count < WEIR__STAGING_BLOCKS_MAX);
    if (*out_create)
        staging->count++;
    weir_lock_release(&staging->lock);
    return block;
}

static void uncount(struct weir__staging *staging)
{
    weir_lock_take(&staging->lock);
    staging->count--;
    weir_lock_release(&staging->lock);
}

size_t weir__staging_take(weir_device *device, size_t least, size_t wanted,
                          struct weir__staging_block **out_blocks)
{
    struct weir__staging *staging = &device->staging;
    size_t count = 0;
    while (count < wanted) {
        bool is_new;
        struct weir__staging_block *block = reserve(staging, count < least, &is_new);
        if (is_new && !(block = create(device)))
            uncount(staging);
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
    weir_lock_take(&staging->lock);
    const bool keep = staging->count <= WEIR__STAGING_BLOCKS_MAX;
    if (keep) {
        block->next = staging->spare;
        staging->spare = block;
    } else {
        staging->count--;
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

void weir__staging_trim(weir_device *device)
{
    struct weir__staging *staging = &device->staging;
    struct weir__staging_block *block;
    do {
        weir_lock_take(&staging->lock);
        block = pop(staging);
        staging->count -= block != NULL;
        weir_lock_release(&staging->lock);
        if (block)
            destroy(block);
    } while (block);
    weir_workers_stop(&staging->copiers);
}
