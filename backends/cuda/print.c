// Kernels write what they print into a ring of pinned memory, which survives a fault. A device has one
// as soon as it has a program that prints. It is read where a queue is asked or waited for, and costs
// other devices one comparison there.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cu.h"
#include "backends/cuda/print.h"

static void create_ring(struct cu_trial *trial)
{
    const struct cu_module *module = trial->device->module;
    struct cu_prints *prints = &trial->device->prints;
    const size_t size = sizeof(struct cu_ring) + module->printf_bytes;
    void *memory = NULL;
    CU_TRY(trial, cuMemHostAlloc, &memory, size,
           CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (trial->code != CUDA_SUCCESS)
        return;
    module->host->count_driver_object();
    memset(memory, 0, size);
    struct cu_ring *ring = memory;
    ring->capacity = module->printf_bytes;
    CU_TRY(trial, cuMemHostGetDevicePointer, &prints->address, memory, 0);
    if (trial->code == CUDA_SUCCESS)
        atomic_store(&prints->ring, ring);
    else
        module->cu.cuMemFreeHost(memory);
}

static weir_status need_ring(struct cu_device *device)
{
    struct cu_prints *prints = &device->prints;
    const struct cu_module *module = device->module;
    struct cu_trial trial = {.device = device};
    pthread_mutex_lock(&prints->lock);
    if (!prints->record)
        prints->record = module->host->allocate(module->printf_bytes);
    const bool is_room = prints->record != NULL;
    if (is_room && !prints->ring)
        create_ring(&trial);
    pthread_mutex_unlock(&prints->lock);
    if (!is_room)
        return weir_host_no_memory(module->host, "what kernels print");
    return cu_tried(&trial, "pin %zu bytes for what kernels print",
                    sizeof(struct cu_ring) + module->printf_bytes);
}

// Two words, because a copy would need pinned memory.
weir_status cu_prints_attach(struct cu_device *device, CUmodule loaded)
{
    CUdeviceptr cell;
    size_t size;
    struct cu_trial trial = {.device = device};
    CU_TRY(&trial, cuModuleGetGlobal, &cell, &size, loaded, CU_RING_SYMBOL);
    if (trial.code == CUDA_ERROR_NOT_FOUND)
        return WEIR_OK;
    const weir_status status = trial.code == CUDA_SUCCESS ? need_ring(device) : WEIR_OK;
    if (status < 0)
        return status;
    CU_TRY(&trial, cuMemsetD32Async, cell, (unsigned)device->prints.address, 1,
           device->memory_stream);
    CU_TRY(&trial, cuMemsetD32Async, cell + sizeof(uint32_t),
           (unsigned)(device->prints.address >> 32), 1, device->memory_stream);
    CU_TRY_AWAIT(&trial, device->memory_stream);
    return cu_tried(&trial, "prepare a program whose kernels print");
}

// The device writes a record's first word twice.
static uint32_t word_at(const struct cu_ring *ring, uint64_t place)
{
    const void *data = ring->data + (place & (ring->capacity - 1));
    const _Atomic uint32_t *word = data;
    return atomic_load_explicit(word, memory_order_acquire);
}

// Copies a record out of the ring and gives its bytes back.
static void take(struct cu_prints *prints, size_t size)
{
    struct cu_ring *ring = prints->ring;
    const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    const size_t start = (size_t)(tail & (ring->capacity - 1));
    const size_t first = size < ring->capacity - start ? size : (size_t)ring->capacity - start;
    memcpy(prints->record, ring->data + start, first);
    memcpy(prints->record + first, ring->data, size - first);
    memset(ring->data + start, 0, first);
    memset(ring->data, 0, size - first);
    atomic_store_explicit(&ring->tail, tail + size, memory_order_release);
}

// A message has no newline at its end, and a text of several lines is several messages.
static void deliver(const struct cu_device *device, char *text)
{
    for (char *line = text; line && *line;) {
        char *newline = strchr(line, '\n');
        if (newline)
            *newline = '\0';
        device->module->host->log(WEIR_LOG_INFO, "printf", line);
        line = newline ? newline + 1 : NULL;
    }
}

static void tell(struct cu_device *device, size_t size)
{
    struct cu_prints *prints = &device->prints;
    struct weir_long_text text = {0};
    uint32_t argument_bytes;
    memcpy(&argument_bytes, prints->record + sizeof(uint32_t), sizeof argument_bytes);
    cu_print_format(prints->record + 2 * sizeof(uint32_t), size - 2 * sizeof(uint32_t),
                    argument_bytes, &text);
    if (text.text && !text.failed)
        deliver(device, text.text);
    else if (text.failed)
        device->module->host->log(WEIR_LOG_WARNING, "cuda", "no memory for what a kernel printed");
    free(text.text);
}

static void tell_lost(struct cu_device *device)
{
    struct cu_prints *prints = &device->prints;
    const struct cu_ring *ring = prints->ring;
    const uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
    char message[512];
    if (lost == prints->told)
        return;
    snprintf(message, sizeof message,
             "calls of printf lost on '%s': %" PRIu64 "; there was no room for them in %" PRIu64
             " bytes; wait for the kernels more often, or set printf_bytes in [cuda] to more",
             device->listed->info.name, lost - prints->told, ring->capacity);
    prints->told = lost;
    device->module->host->log(WEIR_LOG_WARNING, "cuda", message);
}

void cu_prints_read(struct cu_device *device)
{
    struct cu_prints *prints = &device->prints;
    pthread_mutex_lock(&prints->lock);
    const struct cu_ring *ring = prints->ring;
    uint32_t word;
    while ((word = word_at(ring, atomic_load_explicit(&ring->tail, memory_order_relaxed))) != 0) {
        const size_t size = word & ~1u;
        const bool is_whole = word & 1;
        if (size % 8 != 0 || size < 2 * sizeof word || size > ring->capacity ||
            (!is_whole && !atomic_load(&device->lost)))
            break;
        take(prints, size);
        if (is_whole)
            tell(device, size);
    }
    tell_lost(device);
    pthread_mutex_unlock(&prints->lock);
}
