// How launches ended. A command that fails need not fail those after it: PoCL runs the queue on, and a
// marker reads complete. So the event of each launch is kept until a record after it is complete, and
// its status is read then. A queue that waits for another one is only as good as that one, and the front
// end takes what was waited for as complete without a query; so waits are kept among the launches, and
// the question follows them.
//
// An entry is dropped when it was read. In a queue without records that is done when the list is full, up
// to its middle.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

#define LAUNCHES 256 // a power of two

// A launch, or a wait for all launches of `producer` up to `until`.
struct entry {
    uint64_t sequence;
    uint64_t until;
    cl_event event; // NULL: a wait
    struct ocl_launches *producer;
};

struct ocl_launches {
    struct ocl_device *device; // whose launches_lock guards what follows
    uint32_t users;            // the queue, waits of others, and a question under way
    struct entry *entries;     // a ring
    size_t first;
    size_t count;
    size_t capacity;
    uint64_t failed; // the first operation that failed; 0: none
    cl_int code;
    bool unknown; // `code` is of the query
    // Of the question under way.
    uint64_t target; // 0: not concerned
    size_t reached;  // entries up to `target`
    struct ocl_launches *next;
};

static struct entry *entry_at(const struct ocl_launches *launches, size_t index)
{
    return &launches->entries[(launches->first + index) & (launches->capacity - 1)];
}

static void put(struct ocl_launches *launches);

static void drop_first(struct ocl_launches *launches)
{
    const struct entry entry = *entry_at(launches, 0);
    launches->first = (launches->first + 1) & (launches->capacity - 1);
    launches->count--;
    if (entry.event)
        launches->device->module->cl.clReleaseEvent(entry.event);
    else
        put(entry.producer);
}

// The queue of a list that others still wait for may be gone.
static void put(struct ocl_launches *launches)
{
    const struct weir_host *host = launches->device->module->host;
    if (--launches->users > 0)
        return;
    while (launches->count > 0)
        drop_first(launches);
    host->release(launches->entries);
    host->release(launches);
}

// The question.

static void include(struct ocl_launches **list, struct ocl_launches *launches, uint64_t target)
{
    if (launches->target == 0) {
        launches->users++;
        launches->reached = 0;
        launches->next = *list;
        *list = launches;
    }
    launches->target = target;
}

// Returns whether a wait led to launches that were not included.
static bool reach(struct ocl_launches **list, struct ocl_launches *launches)
{
    bool more = false;
    for (; launches->reached < launches->count; launches->reached++) {
        const struct entry *entry = entry_at(launches, launches->reached);
        if (entry->sequence > launches->target)
            break;
        if (entry->event || entry->until <= entry->producer->target)
            continue;
        include(list, entry->producer, entry->until);
        more = true;
    }
    return more;
}

static void gather(struct ocl_launches **list)
{
    for (bool more = true; more;) {
        more = false;
        for (struct ocl_launches *at = *list; at; at = at->next)
            more |= reach(list, at);
    }
}

static void note(struct ocl_launches *launches, uint64_t sequence, cl_int code, bool unknown)
{
    if (launches->failed != 0 && launches->failed <= sequence)
        return;
    launches->failed = sequence;
    launches->code = code;
    launches->unknown = unknown;
}

// A launch that `ended` may be told to have a moment later than a marker after it.
static void look(struct ocl_launches *launches, const struct entry *entry, bool ended)
{
    const struct ocl_symbols *cl = &launches->device->module->cl;
    cl_int state = CL_COMPLETE;
    cl_int code = cl->clGetEventInfo(entry->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                     &state, NULL);
    if (code == CL_SUCCESS && state > CL_COMPLETE && ended) {
        cl->clWaitForEvents(1, &entry->event);
        code = cl->clGetEventInfo(entry->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                  &state, NULL);
    }
    if (code != CL_SUCCESS)
        note(launches, entry->sequence, code, true);
    else if (state < CL_COMPLETE)
        note(launches, entry->sequence, state, false);
}

static void look_at_each(struct ocl_launches *launches, bool ended)
{
    for (size_t i = 0; i < launches->reached; i++)
        if (entry_at(launches, i)->event)
            look(launches, entry_at(launches, i), ended);
}

// Returns whether a failure passed through a wait.
static bool carry(struct ocl_launches *launches)
{
    bool more = false;
    for (size_t i = 0; i < launches->reached; i++) {
        const struct entry *entry = entry_at(launches, i);
        const struct ocl_launches *from = entry->producer;
        if (entry->event || from->failed == 0 || from->failed > entry->until ||
            (launches->failed != 0 && launches->failed <= entry->sequence))
            continue;
        note(launches, entry->sequence, from->code, from->unknown);
        more = true;
    }
    return more;
}

static void carry_all(struct ocl_launches *list)
{
    for (bool more = true; more;) {
        more = false;
        for (struct ocl_launches *at = list; at; at = at->next)
            more |= carry(at);
    }
}

// Reads the launches up to `sequence`, and those that these came after. Those that have not `ended` all stay in
// the lists, and none is waited for. Under the lock.
static void settle(struct ocl_launches *launches, uint64_t sequence, bool ended)
{
    struct ocl_launches *list = NULL;
    if (launches->count == 0 || entry_at(launches, 0)->sequence > sequence)
        return;
    include(&list, launches, sequence);
    gather(&list);
    for (struct ocl_launches *at = list; at; at = at->next)
        look_at_each(at, ended);
    carry_all(list);
    while (list) {
        struct ocl_launches *done = list;
        list = done->next;
        done->target = 0;
        for (; ended && done->reached > 0; done->reached--)
            drop_first(done);
        put(done);
    }
}

// Keeping.

// Commands of a queue end in order, so what is before one that has ended has ended too.
static void drop_ended(struct ocl_launches *launches)
{
    const struct ocl_symbols *cl = &launches->device->module->cl;
    cl_int state = CL_COMPLETE;
    size_t index = launches->count / 2;
    while (index > 0 && !entry_at(launches, index)->event)
        index--;
    const struct entry *entry = entry_at(launches, index);
    if (entry->event &&
        cl->clGetEventInfo(entry->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                           NULL) == CL_SUCCESS &&
        state <= CL_COMPLETE)
        settle(launches, entry->sequence - 1, true);
}

static bool grow(struct ocl_launches *launches)
{
    const struct weir_host *host = launches->device->module->host;
    struct entry *entries = host->allocate(2 * launches->capacity * sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < launches->count; i++)
        entries[i] = *entry_at(launches, i);
    host->release(launches->entries);
    launches->entries = entries;
    launches->capacity *= 2;
    launches->first = 0;
    return true;
}

// Under the lock.
static bool append(struct ocl_launches *launches, const struct entry *entry)
{
    if (launches->count == launches->capacity)
        drop_ended(launches);
    if (launches->count == launches->capacity && !grow(launches))
        return false;
    *entry_at(launches, launches->count++) = *entry;
    return true;
}

static weir_status refuse(const struct ocl_launches *launches)
{
    return weir_host_no_memory(launches->device->module->host, "the launches of a queue");
}

weir_status ocl_launches_keep(struct ocl_queue *queue, uint64_t sequence, cl_event event)
{
    struct ocl_launches *launches = queue->launches;
    pthread_mutex_lock(&launches->device->launches_lock);
    const bool kept = append(launches, &(struct entry){.sequence = sequence, .event = event});
    pthread_mutex_unlock(&launches->device->launches_lock);
    if (kept)
        return WEIR_OK;
    launches->device->module->cl.clReleaseEvent(event);
    return refuse(launches);
}

weir_status ocl_launches_wait(struct ocl_queue *queue, uint64_t sequence,
                              struct ocl_queue *producer, uint64_t until)
{
    struct ocl_launches *launches = queue->launches;
    if (!launches || producer == queue)
        return WEIR_OK;
    pthread_mutex_lock(&launches->device->launches_lock);
    const bool kept = append(launches, &(struct entry){.sequence = sequence,
                                                       .until = until,
                                                       .producer = producer->launches});
    if (kept)
        producer->launches->users++;
    pthread_mutex_unlock(&launches->device->launches_lock);
    return kept ? WEIR_OK : refuse(launches);
}

weir_status ocl_launches_create(struct ocl_queue *queue)
{
    const struct weir_host *host = queue->device->module->host;
    if (queue->device->errors_stay)
        return WEIR_OK;
    struct ocl_launches *launches = host->allocate(sizeof *launches);
    struct entry *entries = host->allocate(LAUNCHES * sizeof *entries);
    if (!launches || !entries) {
        host->release(launches);
        host->release(entries);
        return weir_host_no_memory(host, "the launches of a queue");
    }
    *launches = (struct ocl_launches){
        .device = queue->device,
        .users = 1,
        .entries = entries,
        .capacity = LAUNCHES,
    };
    queue->launches = launches;
    return WEIR_OK;
}

// The work of a queue that is destroyed has ended. Its list is read to the end, for the sake of those that wait for it,
// and since lists of queues that waited for each other in a circle would keep each other.
void ocl_launches_finish(struct ocl_queue *queue)
{
    struct ocl_device *device = queue->device;
    if (!queue->launches)
        return;
    pthread_mutex_lock(&device->launches_lock);
    settle(queue->launches, UINT64_MAX, true);
    put(queue->launches);
    pthread_mutex_unlock(&device->launches_lock);
    queue->launches = NULL;
}

static weir_status report(const struct ocl_module *module, const struct ocl_launches *found)
{
    if (found->unknown)
        return ocl_native_error(module, "clGetEventInfo", found->code,
                                "ask how the launches up to operation %" PRIu64 " ended",
                                found->failed);
    return ocl_event_error(module, "a launch", found->code,
                           "operation %" PRIu64 " is a launch that failed, or waits for one",
                           found->failed);
}

static weir_status check(struct ocl_queue *queue, uint64_t sequence, bool ended, bool clear)
{
    struct ocl_launches *launches = queue->launches;
    if (!launches)
        return WEIR_OK;
    pthread_mutex_lock(&launches->device->launches_lock);
    settle(launches, sequence, ended);
    const struct ocl_launches found = *launches;
    const bool failed = found.failed != 0 && found.failed <= sequence;
    if (failed && clear)
        launches->failed = 0;
    pthread_mutex_unlock(&launches->device->launches_lock);
    return failed ? report(queue->device->module, &found) : WEIR_OK;
}

weir_status ocl_launches_check(struct ocl_queue *queue, uint64_t sequence, bool ended)
{
    return check(queue, sequence, ended, false);
}

weir_status ocl_launches_settle(struct ocl_queue *queue, uint64_t sequence)
{
    return check(queue, sequence, true, true);
}
