// The history of a queue's operations, and how far its stream has come, for the report of a fault
// (fault.c). After a fault the driver answers every call with the same code, also questions about
// events that are complete, and does not name the kernel. So each queue keeps a history of the
// operations that it was given, and its stream writes its progress into pinned memory: such a
// progress word survives the fault.
//
// Writing a word costs the submitter about 0.8 us on an H200, so one is written before
// a record only, and only when WORD_DISTANCE operations have followed the last one or
// the kernel's clock has ticked since. That clock costs 3 ns to read where the
// precise one costs 23; it serves queues that are given few operations. In one tick a device
// writes WORDS_IN_TICK of these, so that a job in many queues, each of which ends with a record, does
// not pay for as many words: the queue in which it joins has waited for them, and its word tells of all.
// For such queues there are as many more. With
// `attribute_faults` every operation is followed by a word.
//
// Before a record, not after it: a queue is destroyed when its last record is
// complete, and its word may then be given to another queue.
//
// Histories are written by one thread and read by any, while it writes: an entry's
// sequence is 0 while the rest of it changes, and entries read in that state are left out.
#include <string.h>
#include <time.h>

#include "backends/cuda/fault_parts.h"

#define WORD_DISTANCE 256
#define WORDS_IN_TICK 8

_Static_assert(sizeof(atomic_uint) == sizeof(cuuint32_t), "a word is 32 bits");

struct kept_name {
    struct kept_name *next;
    char text[];
};

// Words and names.

weir_status cu_words_init(struct cu_device *device)
{
    const struct cu_module *module = device->module;
    const size_t size = CU_WORD_COUNT * sizeof(atomic_uint);
    struct cu_words *words = module->host->allocate(sizeof *words);
    if (!words)
        return weir_host_no_memory(module->host, "a device");
    device->words = words;
    const char *call = "cuMemHostAlloc";
    CUresult code = module->cu.cuMemHostAlloc(&words->page, size,
                                              CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (code == CUDA_SUCCESS) {
        module->host->count_driver_object();
        memset(words->page, 0, size);
        call = "cuMemHostGetDevicePointer";
        code = module->cu.cuMemHostGetDevicePointer(&words->address, words->page, 0);
    } else {
        words->page = NULL;
    }
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(device, call, code, "pin %zu bytes for the progress of queues", size);
}

void cu_words_finish(struct cu_device *device)
{
    const struct cu_module *module = device->module;
    struct cu_words *words = device->words;
    if (!words)
        return;
    device->words = NULL;
    if (words->page && !cu_is_given_up(device))
        module->cu.cuMemFreeHost(words->page);
    while (words->names) {
        struct kept_name *next = words->names->next;
        module->host->release(words->names);
        words->names = next;
    }
    module->host->release(words);
}

const char *cu_keep_name(struct cu_device *device, const char *name)
{
    const size_t size = strlen(name) + 1;
    pthread_mutex_lock(&device->lock);
    struct kept_name *kept = device->words->names;
    while (kept && strcmp(kept->text, name) != 0)
        kept = kept->next;
    if (!kept) {
        kept = device->module->host->allocate(sizeof *kept + size);
        if (kept) {
            memcpy(kept->text, name, size);
            kept->next = device->words->names;
            device->words->names = kept;
        }
    }
    pthread_mutex_unlock(&device->lock);
    return kept ? kept->text : NULL;
}

static void take_word(struct cu_device *device, struct cu_history *history)
{
    struct cu_words *words = device->words;
    size_t slot = 0;
    pthread_mutex_lock(&device->lock);
    while (slot < CU_WORD_COUNT && words->used[slot])
        slot++;
    if (slot < CU_WORD_COUNT) {
        words->used[slot] = true;
        history->word = (atomic_uint *)words->page + slot;
        history->word_address = words->address + slot * sizeof(atomic_uint);
        atomic_store(history->word, 0);
    }
    pthread_mutex_unlock(&device->lock);
}

// Histories.

weir_status cu_history_init(struct cu_queue *queue, const weir_queue *object)
{
    const struct weir_host *host = queue->device->module->host;
    queue->id = weir_queue_object(object)->id;
    queue->label = weir_queue_object(object)->label;
    queue->history = host->allocate(sizeof *queue->history);
    if (!queue->history)
        return weir_host_no_memory(host, "the history of a queue");
    take_word(queue->device, queue->history);
    return WEIR_OK;
}

void cu_history_finish(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    struct cu_history *history = queue->history;
    if (!history)
        return;
    if (history->word) {
        pthread_mutex_lock(&device->lock);
        device->words->used[history->word - (atomic_uint *)device->words->page] = false;
        pthread_mutex_unlock(&device->lock);
    }
    device->module->host->release(history);
    queue->history = NULL;
}

bool cu_is_work(int kind)
{
    return kind != WEIR_OPERATION_RECORD && kind != WEIR_OPERATION_WAIT;
}

bool cu_runs_kernels(int kind)
{
    return kind == WEIR_OPERATION_LAUNCH || kind == WEIR_OPERATION_GRAPH ||
           kind == WEIR_OPERATION_NATIVE || kind == WEIR_OPERATION_COLLECTIVE;
}

// What fails here costs knowledge and nothing else: a fault is met by the next call.
static void write_word(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_history *history = queue->history;
    const struct cu_module *module = queue->device->module;
    struct cu_words *words = queue->device->words;
    if (!history->word || atomic_load_explicit(&words->off, memory_order_relaxed))
        return;
    atomic_store_explicit(&history->written, sequence, memory_order_release);
    CUresult code =
        module->cu.cuStreamWriteValue32(queue->stream, history->word_address, (cuuint32_t)sequence,
                                        CU_STREAM_WRITE_VALUE_DEFAULT);
    if (code == CUDA_SUCCESS)
        history->unwritten = history->waited = 0;
    else if (code == CUDA_ERROR_NOT_SUPPORTED && !atomic_exchange(&words->off, true))
        module->host->log(WEIR_LOG_WARNING, "cuda",
                          "the device's streams write no values to memory: if a kernel faults, "
                          "what is known to have finished is only what the host has seen");
}

static uint64_t read_tick(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Whether the device has written what it may in this tick, of queues that tell of others or of the rest.
// Threads that meet here may write a few more.
static bool is_rationed(struct cu_words *words, uint64_t now, bool tells_of_others)
{
    atomic_uint *written = &words->in_tick[tells_of_others];
    if (atomic_exchange_explicit(&words->tick, now, memory_order_relaxed) != now)
        for (size_t i = 0; i < 2; i++)
            atomic_store_explicit(&words->in_tick[i], 0, memory_order_relaxed);
    return atomic_fetch_add_explicit(written, 1, memory_order_relaxed) >= WORDS_IN_TICK;
}

static void write_word_if_due(struct cu_queue *queue, uint64_t sequence)
{
    struct cu_history *history = queue->history;
    const bool tells_of_others = history->waited > 0 && !queue->device->module->attribute_faults;
    if (!history->word || (history->unwritten == 0 && !tells_of_others))
        return;
    const uint64_t now = read_tick();
    if (history->unwritten < WORD_DISTANCE &&
        (now == history->tick || is_rationed(queue->device->words, now, tells_of_others)))
        return;
    history->tick = now;
    write_word(queue, sequence);
}

static const char *name_of(const struct weir_link *link, const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        return cu_kernel_of(link, operation->u.launch.kernel)->name;
    if (operation->kind == WEIR_OPERATION_GRAPH)
        return cu_graph_name(cu_graph_of(link, operation->u.graph.graph));
    return NULL;
}

bool cu_history_read(struct cu_history *history, uint64_t index, struct cu_note *out_note)
{
    struct cu_entry *entry = &history->entries[index % CU_HISTORY_KEPT];
    const uint64_t sequence = atomic_load_explicit(&entry->sequence, memory_order_acquire);
    *out_note = (struct cu_note){
        .sequence = sequence,
        .file = atomic_load_explicit(&entry->file, memory_order_acquire),
        .name = atomic_load_explicit(&entry->name, memory_order_acquire),
        .producer = atomic_load_explicit(&entry->producer, memory_order_acquire),
        .reached = atomic_load_explicit(&entry->reached, memory_order_acquire),
        .line = atomic_load_explicit(&entry->line, memory_order_acquire),
        .kind = atomic_load_explicit(&entry->kind, memory_order_acquire),
    };
    return sequence != 0 &&
           atomic_load_explicit(&entry->sequence, memory_order_relaxed) == sequence;
}

void cu_history_note(const struct weir_link *link, struct cu_queue *queue,
                     const struct weir_operation *operation)
{
    struct cu_history *history = queue->history;
    if (operation->kind == WEIR_OPERATION_RECORD) {
        write_word_if_due(queue, operation->sequence);
        return;
    }
    if (operation->kind != WEIR_OPERATION_WAIT) {
        cu_history_add(history, operation, name_of(link, operation));
        return;
    }
    struct cu_entry *entry = cu_entry_begin(history);
    const struct weir_event event = operation->u.wait.event;
    atomic_store_explicit(&entry->name, NULL, memory_order_release);
    atomic_store_explicit(&entry->producer, event.queue, memory_order_release);
    atomic_store_explicit(&entry->reached, event.sequence, memory_order_release);
    history->waited++;
    cu_entry_end(history, entry, operation);
}

void cu_history_mark(struct cu_queue *queue, const struct weir_operation *operation)
{
    if (cu_is_work((int)operation->kind))
        write_word(queue, operation->sequence);
}

// A word holds the lower half of a sequence, which lies below what was last written.
uint64_t cu_history_known(const struct cu_queue *queue)
{
    const struct cu_history *history = queue->history;
    const uint64_t completed = weir_kit_records_completed(queue->records);
    if (!history->word)
        return completed;
    const uint64_t written = atomic_load_explicit(&history->written, memory_order_acquire);
    const uint32_t word = atomic_load_explicit(history->word, memory_order_acquire);
    const uint64_t passed = written - (uint32_t)((uint32_t)written - word);
    return passed > completed ? passed : completed;
}
