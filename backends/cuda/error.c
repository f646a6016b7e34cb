// Errors of the driver, devices that are lost and the operations that may be the cause, and the contexts that
// calls enter.
//
// The names of errors come from the driver.
//
// After some errors the context is unusable: every later call returns the same code, or one that is
// a consequence of it. So the first one is kept.
#include <inttypes.h>

#include "backends/cuda/history.h"
#include "base/text.h"

// What core keeps of a message when it adds the operation that failed.
#define MESSAGE_LIMIT 600
#define PATH_LIMIT 64

#define LOST WEIR_ERROR_DEVICE_LOST
// On an H200 with driver 580 the primary context stays faulted after its last
// release, so opening the device again in the same process fails too.
#define REOPEN "close the device and restart the process"
#define BOUNDS "a kernel left its buffers' bounds (compute-sanitizer finds where); " REOPEN

static const struct weir_kit_native table[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, WEIR_ERROR_OUT_OF_MEMORY, NULL,
     "destroy buffers that are no longer needed, use smaller ones, or weir_device_trim()"},
    {CUDA_ERROR_DEINITIALIZED, LOST, NULL,
     "the process is ending: finish with Weir before exit handlers run"},
    {34, WEIR_ERROR_MODULE, NULL,
     "the library is the CUDA toolkit's stub; take its folder out of LD_LIBRARY_PATH"},
    {36, WEIR_ERROR_UNSUPPORTED, NULL, "install a newer NVIDIA driver"},
    {46, WEIR_ERROR_DEVICE, NULL,
     "another process has the device for itself (nvidia-smi -q -d COMPUTE)"},
    {CUDA_ERROR_NO_DEVICE, WEIR_ERROR_NO_DEVICE, NULL,
     "check nvidia-smi; in a container, start it with --gpus all"},
    {101, WEIR_ERROR_NO_DEVICE, NULL, "check CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_IMAGE, WEIR_ERROR_UNSUPPORTED, NULL,
     "build the bundle again with weir_kernels"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, WEIR_ERROR_UNSUPPORTED, NULL,
     "build the bundle with an image for this architecture, or with PTX"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, LOST, NULL,
     "the device's memory is damaged: see nvidia-smi -q -d ECC"},
    {CUDA_ERROR_INVALID_PTX, WEIR_ERROR_BUILD, NULL, "build the bundle again with weir_kernels"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, LOST, NULL,
     "the link between devices failed: see nvidia-smi nvlink -e"},
    {221, WEIR_ERROR_UNSUPPORTED, NULL,
     "the driver lacks libnvidia-ptxjitcompiler; install it whole"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, WEIR_ERROR_UNSUPPORTED, NULL,
     "install a newer NVIDIA driver"},
    {226, LOST, NULL, REOPEN},
    {CUDA_ERROR_INVALID_SOURCE, WEIR_ERROR_UNSUPPORTED, NULL,
     "build the bundle again with weir_kernels"},
    {304, WEIR_ERROR_SYSTEM, NULL, "check that /dev/nvidia* may be opened by this user"},
    {CUDA_ERROR_NOT_FOUND, WEIR_ERROR_NOT_FOUND, NULL, NULL},
    {CUDA_ERROR_ILLEGAL_ADDRESS, LOST, NULL, BOUNDS},
    {701, WEIR_ERROR_INVALID, NULL, "use a smaller block: the kernel's registers do not suffice"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, LOST, NULL, "a kernel ran longer than the system allows; " REOPEN},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, LOST, NULL, "something reset the device; " REOPEN},
    {CUDA_ERROR_ASSERT, LOST, NULL, REOPEN},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, LOST, NULL, REOPEN},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, LOST, NULL, REOPEN},
    {CUDA_ERROR_MISALIGNED_ADDRESS, LOST, NULL,
     "a vector type needs an address that is a multiple of its size; " REOPEN},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, LOST, NULL, BOUNDS},
    {CUDA_ERROR_INVALID_PC, LOST, NULL, BOUNDS},
    {CUDA_ERROR_LAUNCH_FAILED, LOST, NULL, BOUNDS},
    {721, LOST, NULL, REOPEN},
    {CUDA_ERROR_NOT_SUPPORTED, WEIR_ERROR_UNSUPPORTED, NULL, NULL},
    {802, WEIR_ERROR_DEVICE, NULL,
     "start the fabric manager (systemctl status nvidia-fabricmanager)"},
    {803, WEIR_ERROR_MODULE, NULL,
     "the driver was updated while it ran: restart the machine, or in a "
     "container use the host's libcuda.so.1"},
    {804, WEIR_ERROR_MODULE, NULL,
     "remove the CUDA compatibility package, which needs another device"},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, LOST, NULL,
     "the MPS server ended this client; restart the process"},
    {999, WEIR_ERROR_DEVICE, NULL, "see the kernel's log (dmesg), then reload the NVIDIA driver"},
};

static const struct weir_kit_natives natives = {table, sizeof table / sizeof *table,
                                                "unknown CUDA error"};

weir_status cu_report_lost(struct cu_device *device)
{
    pthread_mutex_lock(&device->lock);
    const struct weir_error first = device->first_fault;
    pthread_mutex_unlock(&device->lock);
    return device->module->host->error(&first, sizeof first);
}

// Reports.
//
// Finds the operation whose fault destroyed the context: operations after a queue's progress word,
// and after what the host has seen complete, are suspects. With `attribute_faults`
// every operation is followed by a word, so a queue's oldest unfinished one is known. It ran,
// unless a wait before it can be shown to be open.

// False where the entry is no more, or not yet.
static bool read_entry(struct cu_history *history, uint64_t index, struct cu_note *out_note)
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

// What a native call hands to the driver is not known.
static bool runs_kernels(int kind)
{
    return kind == WEIR_OPERATION_LAUNCH || kind == WEIR_OPERATION_GRAPH ||
           kind == WEIR_OPERATION_NATIVE || kind == WEIR_OPERATION_COLLECTIVE;
}

// How far the queue is known to have come, of itself. A word holds the lower half of a sequence, which
// lies below what was last written.
static uint64_t known_of(const struct cu_queue *queue)
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

// The fault that made a device unusable in this process, for the report when it is opened again.
static pthread_mutex_t earlier_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool any;
    CUdevice device;
    char message[MESSAGE_LIMIT];
} earlier;

// Finding out. All under the device's lock.

// Walks over what is kept and not known to have finished: from `*index`, to the next
// one, which is at `*index - 1` then.
static bool next_unfinished(struct cu_history *history, uint64_t *index, struct cu_note *out_note)
{
    const uint64_t end = atomic_load_explicit(&history->count, memory_order_acquire);
    if (end > CU_HISTORY_KEPT && *index < end - CU_HISTORY_KEPT)
        *index = end - CU_HISTORY_KEPT;
    while (*index < end) {
        if (read_entry(history, (*index)++, out_note) &&
            out_note->sequence > history->finding.known)
            return true;
    }
    return false;
}

const struct cu_queue *cu_find_queue(const struct cu_device *device, uint64_t id)
{
    const struct cu_queue *queue = device->queues;
    while (queue && queue->id != id)
        queue = queue->next;
    return queue;
}

// What a queue has waited for has finished if the queue is known to have come further. Returns
// whether a queue that it has waited for learns of that.
static bool pass_on(const struct cu_queue *queue)
{
    struct cu_history *history = queue->history;
    struct cu_finding *finding = &history->finding;
    const uint64_t end = atomic_load_explicit(&history->count, memory_order_acquire);
    const uint64_t told = finding->passed_on;
    struct cu_note note;
    bool news = false;
    if (finding->known == told)
        return false;
    finding->passed_on = finding->known;
    for (uint64_t i = end > CU_HISTORY_KEPT ? end - CU_HISTORY_KEPT : 0; i < end; i++) {
        if (!read_entry(history, i, &note) || note.kind != WEIR_OPERATION_WAIT ||
            note.sequence <= told || note.sequence > finding->known)
            continue;
        const struct cu_queue *producer = cu_find_queue(queue->device, note.producer);
        if (!producer || producer->history->finding.known >= note.reached)
            continue;
        producer->history->finding.known = note.reached;
        news = true;
    }
    return news;
}

static void examine(const struct cu_queue *queue)
{
    struct cu_history *history = queue->history;
    struct cu_finding *finding = &history->finding;
    const uint64_t count = atomic_load_explicit(&history->count, memory_order_acquire);
    struct cu_note note;
    uint64_t index = 0;
    while (next_unfinished(history, &index, &note)) {
        finding->cut =
            finding->cut || (count > CU_HISTORY_KEPT && index <= count - CU_HISTORY_KEPT + 1);
        if (!cu_is_work(note.kind))
            continue;
        if (finding->state == CU_IDLE)
            finding->oldest = note;
        finding->state = CU_UNFINISHED;
        finding->newest = note;
        finding->launches = finding->launches || runs_kernels(note.kind);
    }
}

static bool is_attributed(const struct cu_device *device)
{
    return device->module->attribute_faults &&
           !atomic_load_explicit(&device->words.off, memory_order_relaxed);
}

// How far the queue has begun, given how far the others have: up to a wait that is
// open, or to an operation, which then runs. Returns whether that is news.
static bool advance(const struct cu_queue *queue)
{
    struct cu_finding *finding = &queue->history->finding;
    const uint64_t before = finding->front;
    struct cu_note note;
    uint64_t index = 0;
    if (!queue->history->word) // beyond CU_WORD_COUNT queues no more is known
        return false;
    finding->state = CU_IDLE;
    finding->front = UINT64_MAX;
    while (finding->state == CU_IDLE && next_unfinished(queue->history, &index, &note)) {
        // A queue that is gone had finished.
        const struct cu_queue *producer =
            cu_is_work(note.kind) ? NULL : cu_find_queue(queue->device, note.producer);
        if (cu_is_work(note.kind))
            finding->state = CU_RUNNING;
        else if (producer && producer->history->finding.front <= note.reached)
            finding->state = CU_WAITING;
        if (finding->state != CU_IDLE)
            finding->front = note.sequence;
        finding->waits_for = producer;
    }
    return finding->front != before;
}

static void find_all(const struct cu_device *device)
{
    bool news = true;
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
        queue->history->finding = (struct cu_finding){.known = known_of(queue)};
    while (news) {
        news = false;
        for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
            news = pass_on(queue) || news;
    }
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
        examine(queue);
    news = is_attributed(device);
    while (news) {
        news = false;
        for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
            news = advance(queue) || news;
    }
}

// Words for it.

// A text that is put together.
struct words {
    char *text;
    size_t size;
    size_t used;
};

#define SAY(words, ...) weir_text_append((words)->text, (words)->size, &(words)->used, __VA_ARGS__)

static void append_queue(struct words *words, const struct cu_queue *queue)
{
    if (queue->label[0])
        SAY(words, "queue '%.60s'", queue->label);
    else
        SAY(words, "unlabelled queue %" PRIu64, queue->id);
}

static void append_operation(struct words *words, const struct cu_note *note)
{
    const bool is_graph = note->kind == WEIR_OPERATION_GRAPH;
    SAY(words, "a %s",
        is_graph ? "launch of graph" : weir_operation_kind_name((uint32_t)note->kind));
    if (note->name && note->name[0])
        SAY(words, "%s '%.80s'", note->kind == WEIR_OPERATION_LAUNCH ? " of" : "", note->name);
    else if (note->name)
        SAY(words, " without a label");
    if (!note->file)
        return;
    const size_t length = strlen(note->file);
    const size_t skipped = length > PATH_LIMIT ? length - PATH_LIMIT : 0;
    SAY(words, " at %s%s:%d", skipped ? "..." : "", note->file + skipped, note->line);
}

// "operations 17 to 20 of queue 'a', the oldest a launch of 'f' at a.c:1"
static void append_finding(struct words *words, const struct cu_queue *queue)
{
    const struct cu_finding *finding = &queue->history->finding;
    const bool one =
        finding->state == CU_RUNNING || finding->oldest.sequence == finding->newest.sequence;
    SAY(words, one ? "operation %" PRIu64 : "operations %" PRIu64, finding->oldest.sequence);
    if (!one)
        SAY(words, " to %" PRIu64, finding->newest.sequence);
    SAY(words, " of ");
    append_queue(words, queue);
    SAY(words, "%s", one ? ", " : finding->cut ? ", of those kept the oldest " : ", the oldest ");
    append_operation(words, &finding->oldest);
}

// 0: no suspect; 1: copies and fills alone, whose ranges were checked; 2: kernels.
static int suspicion(const struct cu_queue *queue)
{
    const struct cu_finding *finding = &queue->history->finding;
    if (finding->state == CU_RUNNING)
        return runs_kernels(finding->oldest.kind) ? 2 : 1;
    return finding->state == CU_UNFINISHED ? 1 + finding->launches : 0;
}

static uint64_t span(const struct cu_finding *finding)
{
    return finding->newest.sequence - finding->oldest.sequence;
}

// The likeliest one that the message does not have yet: kernels first, and of those
// where there are the fewest.
static const struct cu_queue *likeliest(const struct cu_device *device, int least)
{
    const struct cu_queue *best = NULL;
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next) {
        const struct cu_finding *finding = &queue->history->finding;
        const int level = suspicion(queue);
        if (finding->told || level < least)
            continue;
        if (!best || level > suspicion(best) ||
            (level == suspicion(best) && span(finding) < span(&best->history->finding)))
            best = queue;
    }
    return best;
}

static unsigned count_suspects(const struct cu_device *device, int least)
{
    unsigned count = 0;
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
        count += suspicion(queue) >= least;
    return count;
}

static void log_finding(const struct cu_queue *queue)
{
    const struct cu_finding *finding = &queue->history->finding;
    static const char *const begin[] = {
        [CU_UNFINISHED] = "not known to have finished: ",
        [CU_RUNNING] = "was running: ",
        [CU_WAITING] = "was waiting: ",
    };
    char text[512] = "";
    struct words words = {text, sizeof text, 0};
    if (finding->state == CU_IDLE)
        return;
    SAY(&words, "%s", begin[finding->state]);
    if (finding->state == CU_WAITING) {
        append_queue(&words, queue);
        SAY(&words, " for ");
        append_queue(&words, finding->waits_for);
    } else {
        append_finding(&words, queue);
    }
    if (finding->state == CU_UNFINISHED && finding->oldest.sequence != finding->newest.sequence) {
        SAY(&words, ", the newest ");
        append_operation(&words, &finding->newest);
    }
    queue->device->module->host->log(WEIR_LOG_ERROR, "cuda", text);
}

static void begin_list(const struct cu_device *device, struct words *words, unsigned count)
{
    if (count == 0)
        SAY(words, "; everything that Weir's queues were given had finished, so something "
                   "else in the process faulted");
    else if (!is_attributed(device))
        SAY(words, "; not known to have finished: ");
    else if (count == 1)
        SAY(words, "; the fault is in ");
    else
        SAY(words, "; the fault is in one of %u that ran at the same time: ", count);
}

// With attribution what certainly did not run is left out, and copies where a kernel ran.
static void list_suspects(const struct cu_device *device, struct weir_error *detail)
{
    const int least = is_attributed(device) && count_suspects(device, 2) > 0 ? 2 : 1;
    const unsigned count = count_suspects(device, least);
    const size_t tail = sizeof "; and of 4294967295 queues more, which the log has";
    const size_t used = strlen(detail->message);
    struct words words = {detail->message, MESSAGE_LIMIT,
                          used < MESSAGE_LIMIT / 2 ? used : MESSAGE_LIMIT / 2};
    char text[384];
    unsigned told = 0;
    begin_list(device, &words, count);
    for (const struct cu_queue *queue = likeliest(device, least); queue;
         queue = likeliest(device, least)) {
        struct words line = {text, sizeof text, 0};
        append_finding(&line, queue);
        if (words.used + line.used + 2 + tail >= MESSAGE_LIMIT)
            break;
        SAY(&words, "%s%s", told > 0 ? "; " : "", text);
        queue->history->finding.told = true;
        told++;
    }
    if (told < count)
        SAY(&words, "; and of %u queues more, which the log has", count - told);
}

static void add_remedy(const struct cu_device *device, struct weir_error *detail)
{
    size_t used = strlen(detail->remedy);
    const struct cu_queue *first = likeliest(device, 1);
    const bool is_one =
        !first || (count_suspects(device, 1) == 1 && span(&first->history->finding) == 0);
    if (!device->module->attribute_faults && !is_one)
        weir_text_append(detail->remedy, sizeof detail->remedy, &used,
                         "; attribute_faults = 1 in [cuda] names the operation");
}

// A device that cannot be opened, because this process has lost it before.
static void recall(const struct cu_device *device, struct weir_error *detail)
{
    size_t used = strlen(detail->message);
    pthread_mutex_lock(&earlier_lock);
    if (earlier.any && earlier.device == device->listed->native) {
        weir_text_append(detail->message, MESSAGE_LIMIT, &used,
                         "; this process has lost the device before: %s", earlier.message);
        snprintf(detail->remedy, sizeof detail->remedy,
                 "restart the process: after a fault the driver gives it no new context");
    }
    pthread_mutex_unlock(&earlier_lock);
}

// Adds the operations that may be the cause to the detail of a device's first fault, and logs a
// line for each queue that had work. Under the device's lock, which is one reason why a log
// callback must not call Weir. Makes no driver call and allocates nothing.
static void explain_fault(struct cu_device *device, struct weir_error *detail)
{
    // Some codes tell of the end of a context in which nothing faulted.
    if (detail->native_code == CUDA_ERROR_DEINITIALIZED ||
        detail->native_code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
        detail->native_code == CUDA_ERROR_MPS_CLIENT_TERMINATED)
        return;
    if (!device->words.page) {
        recall(device, detail);
        return;
    }
    find_all(device);
    add_remedy(device, detail);
    list_suspects(device, detail);
    pthread_mutex_lock(&earlier_lock);
    earlier.any = true;
    earlier.device = device->listed->native;
    snprintf(earlier.message, sizeof earlier.message, "%.599s", detail->message);
    pthread_mutex_unlock(&earlier_lock);
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
        log_finding(queue);
}

weir_status cu_tried(const struct cu_trial *trial, const char *format, ...)
{
    struct cu_device *device = trial->device;
    const struct cu_module *module = device ? device->module : trial->module;
    struct weir_error detail;
    const char *name = NULL;
    va_list arguments;
    if (trial->code == CUDA_SUCCESS)
        return WEIR_OK;
    if (module->cu.cuGetErrorName)
        module->cu.cuGetErrorName(trial->code, &name);
    va_start(arguments, format);
    weir_kit_native_describe(&natives, &detail, trial->call, (int)trial->code, name, format,
                             arguments);
    va_end(arguments);
    if (device && detail.status == WEIR_ERROR_DEVICE_LOST) {
        pthread_mutex_lock(&device->lock);
        if (!atomic_load(&device->lost)) {
            device->first_fault = detail;
            explain_fault(device, &device->first_fault);
        }
        atomic_store(&device->lost, true);
        pthread_mutex_unlock(&device->lock);
    }
    if (device && atomic_load(&device->lost))
        return cu_report_lost(device);
    return module->host->error(&detail, sizeof detail);
}

// Contexts.

weir_status cu_change_context(struct cu_device *device, struct cu_scope *scope, CUresult asked)
{
    struct cu_trial trial = {.device = device, .code = asked, .call = "cuCtxGetCurrent"};
    CU_TRY(&trial, cuCtxSetCurrent, device->context);
    scope->changed = trial.code == CUDA_SUCCESS;
    return cu_tried(&trial, "enter the device's context");
}

void cu_enter_to_destroy(struct cu_device *device, struct cu_scope *scope)
{
    const struct cu_symbols *cu = &device->module->cu;
    scope->before = NULL;
    scope->changed = cu->cuCtxGetCurrent(&scope->before) == CUDA_SUCCESS &&
                     scope->before != device->context &&
                     cu->cuCtxSetCurrent(device->context) == CUDA_SUCCESS;
}
