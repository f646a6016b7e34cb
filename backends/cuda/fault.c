// Histories of queues, and reports of faults.
//
// After a fault the driver answers every call with the same code, also questions about
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
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/cuda/graph.h"
#include "base/text.h"

#define WORD_DISTANCE 256
#define WORDS_IN_TICK 8

_Static_assert(sizeof(atomic_uint) == sizeof(cuuint32_t), "a word is 32 bits");

// What core keeps of a message when it adds the operation that failed.
#define MESSAGE_LIMIT 600
#define PATH_LIMIT 64

// The driver takes about a thousand operations before a submit blocks, and waits are
// kept too. A power of two.
#define HISTORY_KEPT 2048

struct entry {
    atomic_uint_fast64_t sequence; // 0: the rest is being written
    _Atomic(const char *) file;
    _Atomic(const char *) name;    // of the kernel or the graph; else NULL
    atomic_uint_fast64_t producer; // WAIT only: the queue that is waited for, by its id,
    atomic_uint_fast64_t reached;  // and how far it must have come
    atomic_int line;
    atomic_int kind;
};

// An entry that was read.
struct note {
    uint64_t sequence;
    const char *file;
    const char *name;
    uint64_t producer;
    uint64_t reached;
    int line;
    int kind;
};

enum state {
    IDLE,       // everything is known to have finished
    UNFINISHED, // and no more is known
    RUNNING,    // the oldest unfinished operation had nothing to wait for
    WAITING,    // for another queue
};

// What is found out about a queue once there is a fault. Under the device's lock.
struct finding {
    enum state state;
    uint64_t known;     // up to here everything has finished
    uint64_t passed_on; // how much of that its producers have learned
    uint64_t front;     // up to before this it has begun, if attributed
    struct note oldest;
    struct note newest;
    bool launches;                    // there are kernels among the unfinished operations
    bool cut;                         // older ones are not kept
    bool told;                        // it is in the message
    const struct cu_queue *waits_for; // WAITING
};

struct cu_history {
    struct entry entries[HISTORY_KEPT]; // ring
    atomic_uint_fast64_t count;         // entries so far
    atomic_uint_fast64_t written;       // what the last word says, or will
    atomic_uint *word;                  // NULL: there is none left
    CUdeviceptr word_address;
    // Of the thread that submits.
    unsigned unwritten; // operations since the last word
    unsigned waited;    // and waits
    uint64_t tick;      // when that was
    struct finding finding;
};

// An entry is written between entry_begin() and entry_end(). Release on every store orders
// them after the first store, as acquire on every load orders them before the last load.
static struct entry *entry_begin(struct cu_history *history)
{
    const uint64_t count = atomic_load_explicit(&history->count, memory_order_relaxed);
    struct entry *entry = &history->entries[count % HISTORY_KEPT];
    atomic_store_explicit(&entry->sequence, 0, memory_order_relaxed);
    return entry;
}

static void entry_end(struct cu_history *history, struct entry *entry,
                      const struct weir_operation *operation)
{
    const uint64_t count = atomic_load_explicit(&history->count, memory_order_relaxed);
    atomic_store_explicit(&entry->file, operation->file, memory_order_release);
    atomic_store_explicit(&entry->line, operation->line, memory_order_release);
    atomic_store_explicit(&entry->kind, (int)operation->kind, memory_order_release);
    atomic_store_explicit(&entry->sequence, operation->sequence, memory_order_release);
    atomic_store_explicit(&history->count, count + 1, memory_order_release);
}

// Of an operation that is no record or wait.
static void add_entry(struct cu_history *history, const struct weir_operation *operation,
                      const char *name)
{
    struct entry *entry = entry_begin(history);
    atomic_store_explicit(&entry->name, name, memory_order_release);
    history->unwritten++;
    entry_end(history, entry, operation);
}

struct kept_name {
    struct kept_name *next;
    char text[];
};

struct cu_words {
    void *page; // pinned
    CUdeviceptr address;
    atomic_bool off; // the device writes none
    // The clock's last tick in which a queue asked for a word; how many did, and how many of those
    // that tell of others.
    atomic_uint_fast64_t tick;
    atomic_uint in_tick[2];
    bool used[CU_WORD_COUNT];
    struct kept_name *names;
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

// What a native call hands to the driver is not known.
static bool runs_kernels(int kind)
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
        return cu_graph_of(link, operation->u.graph.graph)->name;
    return NULL;
}

// False where the entry is no more, or not yet.
static bool read_entry(struct cu_history *history, uint64_t index, struct note *out_note)
{
    struct entry *entry = &history->entries[index % HISTORY_KEPT];
    const uint64_t sequence = atomic_load_explicit(&entry->sequence, memory_order_acquire);
    *out_note = (struct note){
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
        add_entry(history, operation, name_of(link, operation));
        return;
    }
    struct entry *entry = entry_begin(history);
    const struct weir_event event = operation->u.wait.event;
    atomic_store_explicit(&entry->name, NULL, memory_order_release);
    atomic_store_explicit(&entry->producer, event.queue, memory_order_release);
    atomic_store_explicit(&entry->reached, event.sequence, memory_order_release);
    history->waited++;
    entry_end(history, entry, operation);
}

void cu_history_mark(struct cu_queue *queue, const struct weir_operation *operation)
{
    if (cu_is_work((int)operation->kind))
        write_word(queue, operation->sequence);
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

// Reports.
//
// Finds the operation whose fault destroyed the context: operations after a queue's progress word,
// and after what the host has seen complete, are suspects. With `attribute_faults`
// every operation is followed by a word, so a queue's oldest unfinished one is known. It ran,
// unless a wait before it can be shown to be open.

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
static bool next_unfinished(struct cu_history *history, uint64_t *index, struct note *out_note)
{
    const uint64_t end = atomic_load_explicit(&history->count, memory_order_acquire);
    if (end > HISTORY_KEPT && *index < end - HISTORY_KEPT)
        *index = end - HISTORY_KEPT;
    while (*index < end) {
        if (read_entry(history, (*index)++, out_note) &&
            out_note->sequence > history->finding.known)
            return true;
    }
    return false;
}

static const struct cu_queue *find_queue(const struct cu_device *device, uint64_t id)
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
    struct finding *finding = &history->finding;
    const uint64_t end = atomic_load_explicit(&history->count, memory_order_acquire);
    const uint64_t told = finding->passed_on;
    struct note note;
    bool news = false;
    if (finding->known == told)
        return false;
    finding->passed_on = finding->known;
    for (uint64_t i = end > HISTORY_KEPT ? end - HISTORY_KEPT : 0; i < end; i++) {
        if (!read_entry(history, i, &note) || note.kind != WEIR_OPERATION_WAIT ||
            note.sequence <= told || note.sequence > finding->known)
            continue;
        const struct cu_queue *producer = find_queue(queue->device, note.producer);
        if (!producer || producer->history->finding.known >= note.reached)
            continue;
        producer->history->finding.known = note.reached;
        news = true;
    }
    return news;
}

// How far each queue is known to have come.
static void find_known(const struct cu_device *device)
{
    bool news = true;
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
        queue->history->finding = (struct finding){.known = known_of(queue)};
    while (news) {
        news = false;
        for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
            news = pass_on(queue) || news;
    }
}

static void examine(const struct cu_queue *queue)
{
    struct cu_history *history = queue->history;
    struct finding *finding = &history->finding;
    const uint64_t count = atomic_load_explicit(&history->count, memory_order_acquire);
    struct note note;
    uint64_t index = 0;
    while (next_unfinished(history, &index, &note)) {
        finding->cut = finding->cut || (count > HISTORY_KEPT && index <= count - HISTORY_KEPT + 1);
        if (!cu_is_work(note.kind))
            continue;
        if (finding->state == IDLE)
            finding->oldest = note;
        finding->state = UNFINISHED;
        finding->newest = note;
        finding->launches = finding->launches || runs_kernels(note.kind);
    }
}

static bool is_attributed(const struct cu_device *device)
{
    return device->module->attribute_faults &&
           !atomic_load_explicit(&device->words->off, memory_order_relaxed);
}

// How far the queue has begun, given how far the others have: up to a wait that is
// open, or to an operation, which then runs. Returns whether that is news.
static bool advance(const struct cu_queue *queue)
{
    struct finding *finding = &queue->history->finding;
    const uint64_t before = finding->front;
    struct note note;
    uint64_t index = 0;
    if (!queue->history->word) // beyond CU_WORD_COUNT queues no more is known
        return false;
    finding->state = IDLE;
    finding->front = UINT64_MAX;
    while (finding->state == IDLE && next_unfinished(queue->history, &index, &note)) {
        // A queue that is gone had finished.
        const struct cu_queue *producer =
            cu_is_work(note.kind) ? NULL : find_queue(queue->device, note.producer);
        if (cu_is_work(note.kind))
            finding->state = RUNNING;
        else if (producer && producer->history->finding.front <= note.reached)
            finding->state = WAITING;
        if (finding->state != IDLE)
            finding->front = note.sequence;
        finding->waits_for = producer;
    }
    return finding->front != before;
}

static void find_all(const struct cu_device *device)
{
    find_known(device);
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
        examine(queue);
    bool news = is_attributed(device);
    while (news) {
        news = false;
        for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
            news = advance(queue) || news;
    }
}

// Words for it.

static void append_queue(char *text, size_t size, size_t *used, const struct cu_queue *queue)
{
    if (queue->label[0])
        weir_text_append(text, size, used, "queue '%.60s'", queue->label);
    else
        weir_text_append(text, size, used, "unlabelled queue %" PRIu64, queue->id);
}

static void append_operation(char *text, size_t size, size_t *used, const struct note *note)
{
    static const char *const names[] = {
        [WEIR_OPERATION_COPY] = "a copy",
        [WEIR_OPERATION_COPY_2D] = "a 2-D copy",
        [WEIR_OPERATION_COPY_3D] = "a 3-D copy",
        [WEIR_OPERATION_FILL] = "a fill",
        [WEIR_OPERATION_FILL_2D] = "a 2-D fill",
        [WEIR_OPERATION_LAUNCH] = "a launch",
        [WEIR_OPERATION_GRAPH] = "a launch of graph",
        [WEIR_OPERATION_NATIVE] = "a native call",
    };
    const bool known = note->kind >= 0 && (size_t)note->kind < sizeof names / sizeof *names;
    const char *name = known ? names[note->kind] : NULL;
    weir_text_append(text, size, used, "%s", name ? name : "an operation");
    if (note->name && note->name[0])
        weir_text_append(text, size, used, "%s '%.80s'",
                         note->kind == WEIR_OPERATION_LAUNCH ? " of" : "", note->name);
    else if (note->name)
        weir_text_append(text, size, used, " without a label");
    if (!note->file)
        return;
    const size_t length = strlen(note->file);
    const size_t skipped = length > PATH_LIMIT ? length - PATH_LIMIT : 0;
    weir_text_append(text, size, used, " at %s%s:%d", skipped ? "..." : "", note->file + skipped,
                     note->line);
}

// "operations 17 to 20 of queue 'a', the oldest a launch of 'f' at a.c:1"
static void append_finding(char *text, size_t size, size_t *used, const struct cu_queue *queue)
{
    const struct finding *finding = &queue->history->finding;
    const bool one =
        finding->state == RUNNING || finding->oldest.sequence == finding->newest.sequence;
    weir_text_append(text, size, used, one ? "operation %" PRIu64 : "operations %" PRIu64,
                     finding->oldest.sequence);
    if (!one)
        weir_text_append(text, size, used, " to %" PRIu64, finding->newest.sequence);
    weir_text_append(text, size, used, " of ");
    append_queue(text, size, used, queue);
    weir_text_append(text, size, used,
                     one            ? ", "
                     : finding->cut ? ", of those kept the oldest "
                                    : ", the oldest ");
    append_operation(text, size, used, &finding->oldest);
}

// 0: no suspect; 1: copies and fills alone, whose ranges were checked; 2: kernels.
static int suspicion(const struct cu_queue *queue)
{
    const struct finding *finding = &queue->history->finding;
    if (finding->state == RUNNING)
        return runs_kernels(finding->oldest.kind) ? 2 : 1;
    return finding->state == UNFINISHED ? 1 + finding->launches : 0;
}

static unsigned span(const struct finding *finding)
{
    const uint64_t all = finding->newest.sequence - finding->oldest.sequence;
    return all < 1000000 ? (unsigned)all : 1000000;
}

// The likeliest one that the message does not have yet: kernels first, and of those
// where there are the fewest.
static const struct cu_queue *likeliest(const struct cu_device *device, int least)
{
    const struct cu_queue *best = NULL;
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next) {
        const struct finding *finding = &queue->history->finding;
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
    const struct finding *finding = &queue->history->finding;
    char text[512];
    size_t used = 0;
    text[0] = '\0';
    switch (finding->state) {
    case IDLE:
        return;
    case UNFINISHED:
        weir_text_append(text, sizeof text, &used, "not known to have finished: ");
        append_finding(text, sizeof text, &used, queue);
        if (finding->oldest.sequence != finding->newest.sequence) {
            weir_text_append(text, sizeof text, &used, ", the newest ");
            append_operation(text, sizeof text, &used, &finding->newest);
        }
        break;
    case RUNNING:
        weir_text_append(text, sizeof text, &used, "was running: ");
        append_finding(text, sizeof text, &used, queue);
        break;
    case WAITING:
        weir_text_append(text, sizeof text, &used, "was waiting: ");
        append_queue(text, sizeof text, &used, queue);
        weir_text_append(text, sizeof text, &used, " for ");
        append_queue(text, sizeof text, &used, finding->waits_for);
        break;
    }
    queue->device->module->host->log(WEIR_LOG_ERROR, "cuda", text);
}

static void begin_list(const struct cu_device *device, char *text, size_t *used, unsigned count)
{
    if (count == 0)
        weir_text_append(text, MESSAGE_LIMIT, used,
                         "; everything that Weir's queues were given had finished, so something "
                         "else in the process faulted");
    else if (!is_attributed(device))
        weir_text_append(text, MESSAGE_LIMIT, used, "; not known to have finished: ");
    else if (count == 1)
        weir_text_append(text, MESSAGE_LIMIT, used, "; the fault is in ");
    else
        weir_text_append(text, MESSAGE_LIMIT, used,
                         "; the fault is in one of %u that ran at the same time: ", count);
}

// With attribution what certainly did not run is left out, and copies where a kernel ran.
static void list_suspects(const struct cu_device *device, struct weir_error *detail)
{
    const int least = is_attributed(device) && count_suspects(device, 2) > 0 ? 2 : 1;
    const unsigned count = count_suspects(device, least);
    const size_t tail = sizeof "; and of 4294967295 queues more, which the log has";
    char *text = detail->message;
    char line[384];
    size_t used = strlen(text);
    unsigned told = 0;
    used = used < MESSAGE_LIMIT / 2 ? used : MESSAGE_LIMIT / 2;
    begin_list(device, text, &used, count);
    for (const struct cu_queue *queue = likeliest(device, least); queue;
         queue = likeliest(device, least)) {
        size_t length = 0;
        append_finding(line, sizeof line, &length, queue);
        if (used + length + 2 + tail >= MESSAGE_LIMIT)
            break;
        weir_text_append(text, MESSAGE_LIMIT, &used, "%s%s", told > 0 ? "; " : "", line);
        queue->history->finding.told = true;
        told++;
    }
    if (told < count)
        weir_text_append(text, MESSAGE_LIMIT, &used, "; and of %u queues more, which the log has",
                         count - told);
}

static bool is_one_operation(const struct cu_device *device)
{
    const struct cu_queue *only = NULL;
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next) {
        if (suspicion(queue) == 0)
            continue;
        if (only || span(&queue->history->finding) > 0)
            return false;
        only = queue;
    }
    return true;
}

static void add_remedy(const struct cu_device *device, struct weir_error *detail)
{
    size_t used = strlen(detail->remedy);
    if (!device->module->attribute_faults && !is_one_operation(device))
        weir_text_append(detail->remedy, sizeof detail->remedy, &used,
                         "; attribute_faults = 1 in [cuda] names the operation");
}

static void remember(const struct cu_device *device, const struct weir_error *detail)
{
    pthread_mutex_lock(&earlier_lock);
    earlier.any = true;
    earlier.device = device->listed->native;
    snprintf(earlier.message, sizeof earlier.message, "%.599s", detail->message);
    pthread_mutex_unlock(&earlier_lock);
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

// Some codes tell of the end of a context in which nothing faulted.
static bool is_fault(int64_t code)
{
    return code != CUDA_ERROR_DEINITIALIZED && code != CUDA_ERROR_CONTEXT_IS_DESTROYED &&
           code != CUDA_ERROR_MPS_CLIENT_TERMINATED;
}

void cu_fault_explain(struct cu_device *device, struct weir_error *detail)
{
    if (!is_fault(detail->native_code))
        return;
    if (!device->words) {
        recall(device, detail);
        return;
    }
    find_all(device);
    list_suspects(device, detail);
    add_remedy(device, detail);
    remember(device, detail);
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next)
        log_finding(queue);
}
