// A transport whose ranks are threads of one process, for tests of the front end: it can fail and
// hang where its section says so, and logs each call of rank 0. Elements that are reduced are i32.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/module/error.h>
#include <weir/module/transport.h>

enum {
    MOST_RANKS = 8,
};

// Bytes from one rank for another.
struct message {
    struct message *next;
    uint32_t from;
    uint32_t to;
    size_t size;
    char bytes[];
};

struct state {
    const struct weir_host *host;
    const struct weir_setting *const *settings;
};

struct hub {
    struct hub *next;
    char name[128];
    uint32_t count;
    uint32_t users;
    uint32_t joined;
    uint32_t arrived;
    uint64_t round;
    void *posted[MOST_RANKS];
    int32_t colors[MOST_RANKS];
    struct message *messages;
    bool aborted;
    char reason[512];
};

struct group {
    const struct state *state;
    struct hub *hub;
    uint32_t rank;
    char label[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all hubs
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct hub *hubs;

enum setting {
    FAIL_AT,
    HANG_AT,
    JOIN_FAILS,
    OPEN_FAILS,
};

static int64_t setting(const struct state *state, enum setting which)
{
    return state->settings[which]->integer;
}

static bool is_at(const struct state *state, enum setting which, uint64_t number)
{
    return number && setting(state, which) == (int64_t)number;
}

static struct timespec deadline_of(uint64_t timeout_ns)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    timeout_ns += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(timeout_ns / 1000000000u);
    at.tv_nsec = (long)(timeout_ns % 1000000000u);
    return at;
}

// Waits for a change; false after the deadline.
static bool wait_until(const struct timespec *deadline)
{
    return pthread_cond_timedwait(&changed, &lock, deadline) == 0;
}

// All ranks meet. False: the hub was aborted, or the time is over.
static bool meet(struct hub *hub, const struct timespec *deadline)
{
    const uint64_t round = hub->round;
    if (++hub->arrived == hub->count) {
        hub->arrived = 0;
        hub->round++;
        pthread_cond_broadcast(&changed);
        return !hub->aborted;
    }
    while (hub->round == round && !hub->aborted)
        if (!wait_until(deadline))
            return false;
    return hub->round != round;
}

static struct hub *hub_of(const char *name, uint32_t count)
{
    struct hub *hub = hubs;
    while (hub && (strcmp(hub->name, name) != 0 || hub->joined == hub->count))
        hub = hub->next;
    if (!hub) {
        hub = calloc(1, sizeof *hub);
        if (!hub)
            abort();
        snprintf(hub->name, sizeof hub->name, "%s", name);
        hub->count = count;
        hub->next = hubs;
        hubs = hub;
    }
    hub->users++;
    return hub;
}

// With the lock held.
static void drop_hub(struct hub *hub)
{
    if (--hub->users)
        return;
    struct hub **link = &hubs;
    while (*link != hub)
        link = &(*link)->next;
    *link = hub->next;
    while (hub->messages) {
        struct message *message = hub->messages;
        hub->messages = message->next;
        free(message);
    }
    free(hub);
}

static struct group *make_group(const struct state *state, struct hub *hub, uint32_t rank,
                                const char *label)
{
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        abort();
    *group = (struct group){.state = state, .hub = hub, .rank = rank};
    snprintf(group->label, sizeof group->label, "%s", label);
    return group;
}

static weir_status fake_open(const struct weir_host *host,
                             const struct weir_setting *const *settings, void **out_state)
{
    static struct state state;
    if (settings[OPEN_FAILS]->integer)
        return weir_host_fail(host, WEIR_ERROR_MODULE, "install libabsent", "libabsent is missing");
    state = (struct state){host, settings};
    *out_state = &state;
    return WEIR_OK;
}

static void fake_close(void *state)
{
    if (hubs)
        abort(); // a group was not left
    (void)state;
}

static weir_status fake_join(void *state_pointer, const struct weir_transport_setup *setup,
                             void **out_group)
{
    const struct state *state = state_pointer;
    if (setting(state, JOIN_FAILS) == (int64_t)setup->rank + 1)
        return weir_host_fail(state->host, WEIR_ERROR_COMM, "start it",
                              "creation of '%s': rank %u is not there", setup->label,
                              (unsigned)setup->rank);
    char name[128];
    snprintf(name, sizeof name, "%s", setup->rendezvous ? setup->rendezvous : "");
    const struct timespec deadline = deadline_of(setup->timeout_ns);
    pthread_mutex_lock(&lock);
    struct hub *hub = hub_of(name, setup->count);
    hub->joined++;
    pthread_cond_broadcast(&changed);
    bool in_time = true;
    while (hub->joined < hub->count && in_time)
        in_time = wait_until(&deadline);
    if (!in_time)
        drop_hub(hub);
    pthread_mutex_unlock(&lock);
    if (!in_time)
        return weir_host_fail(state->host, WEIR_ERROR_COMM, "start all ranks",
                              "creation of '%s': some of %u ranks are missing at '%s'",
                              setup->label, (unsigned)setup->count, name);
    *out_group = make_group(state, hub, setup->rank, setup->label);
    return WEIR_OK;
}

static weir_status refuse(const struct group *group, const char *what, uint64_t number,
                          const char *file, int line)
{
    const char *reason = group->hub->aborted ? group->hub->reason : "the time is over";
    return weir_host_fail(group->state->host, WEIR_ERROR_COMM, NULL, "%s %llu of '%s', %s:%d: %s",
                          what, (unsigned long long)number, group->label, file, line, reason);
}

// Ranks keep their order, whatever their keys: the tests pass equal ones.
static struct hub *part_of(const struct group *group, int32_t color, uint32_t *out_rank)
{
    const struct hub *hub = group->hub;
    char name[128];
    uint32_t count = 0;
    for (uint32_t i = 0; i < hub->count; i++) {
        if (i == group->rank)
            *out_rank = count;
        count += hub->colors[i] == color;
    }
    snprintf(name, sizeof name, "part %d of %p, %llu", color, (const void *)hub,
             (unsigned long long)hub->round);
    struct hub *part = hub_of(name, count);
    return part;
}

static weir_status fake_split(void *group_pointer, const struct weir_transport_split *split,
                              void **out_part)
{
    struct group *group = group_pointer;
    const struct timespec deadline = deadline_of(split->timeout_ns);
    uint32_t rank = 0;
    struct hub *part = NULL;
    *out_part = NULL;
    pthread_mutex_lock(&lock);
    group->hub->colors[group->rank] = split->color;
    bool met = meet(group->hub, &deadline);
    if (met && split->color != WEIR_NO_COLOR)
        part = part_of(group, split->color, &rank);
    met = met && meet(group->hub, &deadline);
    if (!met && part)
        drop_hub(part);
    pthread_mutex_unlock(&lock);
    if (!met)
        return refuse(group, "split", split->number, split->file, split->line);
    if (part)
        *out_part = make_group(group->state, part, rank, split->label);
    return WEIR_OK;
}

static void fake_place(const void *group_pointer, uint32_t *out_rank, uint32_t *out_count)
{
    const struct group *group = group_pointer;
    *out_rank = group->rank;
    *out_count = group->hub->count;
}

// Collectives of all ranks.

static size_t bytes_of(const struct weir_transport_call *call)
{
    return call->count * weir_datatype_size(call->element);
}

static bool sends_all(weir_collective kind)
{
    return kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_TO_ALL || kind == WEIR_SCATTER;
}

static void reduce(const struct hub *hub, const struct weir_transport_call *call, size_t part)
{
    int32_t *dst = call->dst;
    for (size_t i = 0; i < call->count; i++) {
        dst[i] = 0;
        for (uint32_t rank = 0; rank < hub->count; rank++)
            dst[i] += ((const int32_t *)hub->posted[rank])[part * call->count + i];
    }
}

static void finish(const struct group *group, const struct weir_transport_call *call)
{
    const struct hub *hub = group->hub;
    const size_t bytes = bytes_of(call);
    char *dst = call->dst;
    if (call->kind == WEIR_ALL_REDUCE || call->kind == WEIR_REDUCE)
        reduce(hub, call, 0);
    else if (call->kind == WEIR_REDUCE_SCATTER)
        reduce(hub, call, group->rank);
    else if (call->kind == WEIR_BROADCAST)
        memcpy(dst, hub->posted[call->root], bytes);
    else if (call->kind == WEIR_SCATTER)
        memcpy(dst, (char *)hub->posted[call->root] + group->rank * bytes, bytes);
    else
        for (uint32_t rank = 0; rank < hub->count; rank++)
            memcpy(dst + rank * bytes,
                   (char *)hub->posted[rank] +
                       (call->kind == WEIR_ALL_TO_ALL ? group->rank * bytes : 0),
                   bytes);
}

static bool run_together(const struct group *group, const struct weir_transport_call *call,
                         const struct timespec *deadline)
{
    struct hub *hub = group->hub;
    const size_t size = bytes_of(call) * (sends_all(call->kind) ? hub->count : 1);
    void *posted = malloc(size + 1);
    if (!posted)
        abort();
    if (call->src)
        memcpy(posted, call->src, size);
    hub->posted[group->rank] = posted;
    bool met = meet(hub, deadline);
    if (met && call->dst)
        finish(group, call);
    met = met && meet(hub, deadline);
    free(posted);
    return met;
}

// Sends and receives.

static void post(struct hub *hub, uint32_t from, uint32_t to, const void *bytes, size_t size)
{
    struct message **link = &hub->messages;
    struct message *message = malloc(sizeof *message + size);
    if (!message)
        abort();
    *message = (struct message){.from = from, .to = to, .size = size};
    memcpy(message->bytes, bytes, size);
    while (*link)
        link = &(*link)->next;
    *link = message;
    pthread_cond_broadcast(&changed);
}

static bool take(struct hub *hub, uint32_t from, uint32_t to, void *bytes,
                 const struct timespec *deadline)
{
    for (;;) {
        struct message **link = &hub->messages;
        while (*link && ((*link)->from != from || (*link)->to != to))
            link = &(*link)->next;
        struct message *message = *link;
        if (message) {
            *link = message->next;
            memcpy(bytes, message->bytes, message->size);
            free(message);
            return true;
        }
        if (hub->aborted || !wait_until(deadline))
            return false;
    }
}

static bool run_parts(const struct group *group, const struct weir_transport_call *call,
                      const struct timespec *deadline)
{
    struct hub *hub = group->hub;
    for (uint32_t i = 0; i < call->part_count; i++) {
        const struct weir_transport_part *part = weir_transport_part_at(call, i);
        if (!part->receive)
            post(hub, group->rank, part->peer, part->memory,
                 part->count * weir_datatype_size(part->element));
    }
    for (uint32_t i = 0; i < call->part_count; i++) {
        const struct weir_transport_part *part = weir_transport_part_at(call, i);
        if (part->receive && !take(hub, part->peer, group->rank, part->memory, deadline))
            return false;
    }
    return true;
}

static bool run_locked(const struct group *group, const struct weir_transport_call *call)
{
    struct hub *hub = group->hub;
    const struct timespec deadline = deadline_of(call->timeout_ns);
    const bool hangs = is_at(group->state, HANG_AT, call->number);
    while (hangs && !hub->aborted)
        if (!wait_until(&deadline))
            return false;
    if (hub->aborted)
        return false;
    switch (call->kind) {
    case WEIR_SEND:
        post(hub, group->rank, call->root, call->src, bytes_of(call));
        return true;
    case WEIR_RECV:
        return take(hub, call->root, group->rank, call->dst, &deadline);
    case WEIR_EXCHANGE:
        return run_parts(group, call, &deadline);
    default:
        return run_together(group, call, &deadline);
    }
}

static weir_status fake_run(void *group_pointer, const struct weir_transport_call *call)
{
    struct group *group = group_pointer;
    const struct state *state = group->state;
    char text[160];
    snprintf(text, sizeof text, "%s %llu, %d", weir_collective_name(call->kind),
             (unsigned long long)call->number, call->line);
    if (group->rank == 0)
        state->host->log(WEIR_LOG_DEBUG, "fake", text);
    if (is_at(state, FAIL_AT, call->number))
        return weir_host_fail(state->host, WEIR_ERROR_COMM, "start it again",
                              "%s %llu of '%s', %s:%d: rank 1 has died",
                              weir_collective_name(call->kind), (unsigned long long)call->number,
                              group->label, call->file, call->line);
    pthread_mutex_lock(&lock);
    const bool done = run_locked(group, call);
    pthread_mutex_unlock(&lock);
    return done ? WEIR_OK
                : refuse(group, weir_collective_name(call->kind), call->number, call->file,
                         call->line);
}

static void fake_abort(void *group_pointer, const char *reason)
{
    struct hub *hub = ((struct group *)group_pointer)->hub;
    pthread_mutex_lock(&lock);
    if (!hub->aborted) {
        hub->aborted = true;
        snprintf(hub->reason, sizeof hub->reason, "%s", reason);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void fake_leave(void *group_pointer)
{
    struct group *group = group_pointer;
    pthread_mutex_lock(&lock);
    drop_hub(group->hub);
    pthread_mutex_unlock(&lock);
    free(group);
}

static const struct weir_transport_ops transport_ops = {
    .open = fake_open,
    .close = fake_close,
    .join = fake_join,
    .split = fake_split,
    .place = fake_place,
    .run = fake_run,
    .abort = fake_abort,
    .leave = fake_leave,
};

#define NUMBER(name_, help_)                                                              \
    {                                                                                     \
        .name = (name_), .type = WEIR_KEY_INTEGER, .fallback = "0", .maximum = INT32_MAX, \
        .help = (help_)                                                                   \
    }

static const struct weir_key keys[] = {
    [FAIL_AT] = NUMBER("fail_at", "The number of the collective that fails."),
    [HANG_AT] = NUMBER("hang_at", "The number of the collective that waits to be aborted."),
    [JOIN_FAILS] = NUMBER("join_fails", "One more than the rank whose join fails."),
    [OPEN_FAILS] = NUMBER("open_fails", "Whether the transport cannot be opened."),
};

static const struct weir_module module = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof module,
    .kind = WEIR_MODULE_TRANSPORT,
    .name = "fake",
    .version = "0.1.0",
    .build_id = "",
    .sanitizer = WEIR_MODULE_SANITIZER,
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
    .key_size = sizeof *keys,
    .transport = &transport_ops,
    .transport_slot_count = WEIR_TRANSPORT_SLOT_COUNT,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &module;
}
