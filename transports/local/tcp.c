// A collective as spans of bytes to and from each peer.
#include "transports/local/tcp.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "transports/kit/reduce.h"
#include "transports/local/descriptors.h"
#include "transports/local/window.h"

// For the segments of all ranks together, and the least for each.
#define STAGING_BYTES ((size_t)8 << 20)
#define LEAST_SEGMENT ((size_t)8 << 10)

static bool tcp_meet(struct local_run *run)
{
    struct tcp_group *group = local_tcp_of(run);
    local_enlist(&group->local);
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct tcp_peer *peer = &group->peers[i];
        if (i == group->local.rank)
            continue;
        peer->spans[0] = (struct tcp_span){.at = (char *)&run->head, .left = sizeof run->head};
        peer->spans[1] = (struct tcp_span){.at = (char *)&peer->incoming,
                                           .left = sizeof peer->incoming,
                                           .head = &peer->incoming};
        local_tcp_append(&peer->out, &peer->spans[0]);
        local_tcp_append(&peer->in, &peer->spans[1]);
    }
    return local_tcp_pump(run, true) && (!run->differs || local_tcp_judge(run));
}

static char *memory_of(const struct local_run *run, const struct local_piece *piece)
{
    return (piece->of_result ? (char *)run->dst : (char *)(uintptr_t)run->src) + piece->offset;
}

static void send_pieces(struct local_run *run, uint32_t phase)
{
    struct tcp_group *group = local_tcp_of(run);
    struct local_piece piece;
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct tcp_peer *peer = &group->peers[i];
        if (i == group->local.rank || !local_piece(run, phase, i, group->local.rank, &piece))
            continue;
        struct tcp_span *span = &peer->spans[phase == 0 ? 0 : 2];
        *span = (struct tcp_span){.at = memory_of(run, &piece), .left = piece.size};
        local_tcp_append(&peer->out, span);
    }
}

// `size` bytes from `at` on of each rank's piece go to its segment of the staging memory.
static bool fetch_segment(struct local_run *run, uint32_t phase, size_t at, size_t size)
{
    struct tcp_group *group = local_tcp_of(run);
    struct local_piece piece;
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct tcp_peer *peer = &group->peers[i];
        char *to = group->staging + i * group->segment;
        local_piece(run, phase, group->local.rank, i, &piece);
        if (i == group->local.rank) {
            memcpy(to, memory_of(run, &piece) + at, size);
            continue;
        }
        peer->spans[1] = (struct tcp_span){.at = to, .left = size};
        local_tcp_append(&peer->in, &peer->spans[1]);
    }
    return local_tcp_pump(run, false);
}

static bool reduce_segment(struct local_run *run, uint32_t phase, size_t at, size_t size)
{
    struct tcp_group *group = local_tcp_of(run);
    const size_t count = size / weir_datatype_size(run->head.element);
    struct local_piece piece;
    if (!fetch_segment(run, phase, at, size))
        return false;
    for (uint32_t i = 1; i < group->local.count; i++)
        weir_reduce(run->head.element, run->head.reduction, group->staging,
                    group->staging + i * group->segment, count);
    if (run->head.reduction == WEIR_AVERAGE)
        weir_reduce_divide(run->head.element, group->staging, count, group->local.count);
    local_piece(run, phase, group->local.rank, group->local.rank, &piece);
    memcpy((char *)run->dst + piece.target + at, group->staging, size);
    return true;
}

bool local_tcp_stage(struct local_run *run)
{
    struct tcp_group *group = local_tcp_of(run);
    if (!group->staging)
        group->staging = group->local.host->allocate(group->local.count * group->segment);
    if (!group->staging)
        return local_fail(run, "rank %u has no host memory left for %zu bytes", group->local.rank,
                          group->local.count * group->segment);
    return true;
}

static bool reduce(struct local_run *run, uint32_t phase, size_t size)
{
    const struct tcp_group *group = local_tcp_of(run);
    if (!local_tcp_stage(run))
        return false;
    for (size_t at = 0; at < size; at += group->segment) {
        const size_t left = size - at;
        if (!reduce_segment(run, phase, at, left < group->segment ? left : group->segment))
            return false;
    }
    return true;
}

static bool tcp_phase(struct local_run *run, uint32_t phase)
{
    struct tcp_group *group = local_tcp_of(run);
    const uint32_t own = group->local.rank;
    struct local_piece piece;
    if (local_window_takes(run))
        return local_window_phase(run, phase);
    send_pieces(run, phase);
    if (local_piece(run, phase, own, own, &piece) && piece.reduced)
        return reduce(run, phase, piece.size);
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct tcp_peer *peer = &group->peers[i];
        if (!local_piece(run, phase, own, i, &piece))
            continue;
        char *to = (char *)run->dst + piece.target;
        if (i == own && to != memory_of(run, &piece))
            memcpy(to, memory_of(run, &piece), piece.size);
        if (i == own)
            continue;
        peer->spans[3] = (struct tcp_span){.at = to, .left = piece.size};
        local_tcp_append(&peer->in, &peer->spans[3]);
    }
    return local_tcp_pump(run, false);
}

// After a failure the lists name memory of the caller's, and nothing is ever moved again.
static bool tcp_end(struct local_run *run)
{
    struct tcp_group *group = local_tcp_of(run);
    char cause[LOCAL_CAUSE_SIZE];
    const bool ended = !run->group->wire->failed(run->group, cause) && local_tcp_pump(run, true);
    local_tcp_stop_asking(group);
    if (ended)
        local_tcp_tell_elsewhere(run, TCP_NONE);
    if (ended)
        return true;
    for (uint32_t i = 0; i < group->local.count; i++) {
        group->peers[i].in.first = NULL;
        group->peers[i].out.first = NULL;
    }
    return false;
}

static void tell(struct tcp_group *group, const struct tcp_news *news)
{
    for (uint32_t i = 0; i < group->local.count; i++) {
        // It fits, for a rank sends little there before a failure, and after it. Ranks that are gone need no
        // news.
        if (group->peers[i].control >= 0)
            (void)!send(group->peers[i].control, news, sizeof *news, MSG_NOSIGNAL);
    }
}

void local_tcp_send_news(struct tcp_group *group, uint32_t index, const struct tcp_news *news)
{
    pthread_mutex_lock(&group->lock);
    if (!group->failed && group->peers[index].control >= 0)
        (void)!send(group->peers[index].control, news, sizeof *news, MSG_NOSIGNAL);
    pthread_mutex_unlock(&group->lock);
}

void local_tcp_say(struct tcp_group *group, uint32_t index, enum tcp_news_kind kind,
                   uint32_t number)
{
    local_tcp_send_news(group, index, &(struct tcp_news){.kind = kind, .number = number});
}

static void tcp_fail(struct local_group *local, const struct local_cause *cause)
{
    const struct tcp_news news = {.kind = TCP_FAILED, .cause = *cause};
    struct tcp_group *group = (struct tcp_group *)local;
    const uint64_t one = 1;
    if (local_tcp_is_inherited(group))
        return;
    pthread_mutex_lock(&group->lock);
    if (!group->failed) {
        group->cause = *cause;
        group->failed = true;
        tell(group, &news);
        (void)!write(group->wake, &one, sizeof one);
    }
    pthread_mutex_unlock(&group->lock);
}

static bool tcp_cause(struct local_group *local, struct local_cause *out_cause)
{
    struct tcp_group *group = (struct tcp_group *)local;
    // Another thread of the parent may have had the lock.
    if (local_tcp_is_inherited(group)) {
        *out_cause = (struct local_cause){.rank = UINT32_MAX};
        snprintf(out_cause->text, sizeof out_cause->text,
                 "'%s': a child of fork() has no connections of rank %u", local->label,
                 local->rank);
        return true;
    }
    pthread_mutex_lock(&group->lock);
    const bool failed = group->failed;
    if (failed)
        *out_cause = group->cause;
    pthread_mutex_unlock(&group->lock);
    return failed;
}

// Of the rank's other group.
static void say_elsewhere(struct local_group *local, void *user)
{
    struct tcp_group *group = (struct tcp_group *)local;
    for (uint32_t i = 0; local->wire == &local_tcp_wire && i < local->count; i++)
        local_tcp_send_news(group, i, user);
}

void local_tcp_tell_elsewhere(const struct local_run *run, uint32_t awaits)
{
    struct tcp_group *group = local_tcp_of(run);
    struct tcp_news news = {.kind = TCP_ELSEWHERE};
    if (awaits == TCP_NONE && !group->elsewhere)
        return;
    if (awaits != TCP_NONE)
        local_describe_elsewhere(run->group, &run->head, awaits, news.cause.text);
    group->elsewhere = awaits != TCP_NONE;
    local_for_others(&group->local, say_elsewhere, &news);
}

static weir_status tcp_split(struct local_run *run, const struct local_part *part,
                             struct local_group **out_group)
{
    const weir_status status = local_tcp_split(run, part, out_group);
    if (*out_group)
        local_enlist_part(run->group, *out_group);
    return status;
}

static void tcp_leave(struct local_group *local)
{
    struct tcp_group *group = (struct tcp_group *)local;
    if (!local_tcp_is_inherited(group))
        tell(group, &(struct tcp_news){.kind = TCP_LEAVES});
    local_tcp_destroy(group);
}

static size_t segment_for(uint32_t count)
{
    const size_t share = STAGING_BYTES / count & ~(size_t)63;
    if (share < LEAST_SEGMENT)
        return LEAST_SEGMENT;
    return share < LOCAL_SEGMENT_BYTES ? share : LOCAL_SEGMENT_BYTES;
}

struct tcp_group *local_tcp_create(const struct weir_host *host, const char *label, uint32_t rank,
                                   uint32_t count)
{
    struct tcp_group *group = host->allocate(sizeof *group);
    if (!group)
        return NULL;
    group->local =
        (struct local_group){.wire = &local_tcp_wire, .host = host, .rank = rank, .count = count};
    snprintf(group->local.label, sizeof group->local.label, "%s", label);
    pthread_mutex_init(&group->lock, NULL);
    group->segment = segment_for(count);
    group->eager = (long)count <= sysconf(_SC_NPROCESSORS_ONLN);
    group->awaits = TCP_NONE;
    group->wake = local_descriptor_event();
    group->forks = local_descriptor_forks();
    group->peers = host->allocate(count * sizeof *group->peers);
    group->polls = host->allocate((2 * (size_t)count + 1) * sizeof *group->polls);
    for (uint32_t i = 0; group->peers && i < count; i++) {
        group->peers[i].data = -1;
        group->peers[i].control = -1;
        group->peers[i].awaits = TCP_NONE;
    }
    if (!group->peers || !group->polls || group->wake < 0) {
        local_tcp_destroy(group);
        return NULL;
    }
    return group;
}

bool local_tcp_is_inherited(const struct tcp_group *group)
{
    return group->forks != local_descriptor_forks();
}

static void close_all(struct tcp_group *group)
{
    for (uint32_t i = 0; group->peers && i < group->local.count; i++) {
        local_close(&group->peers[i].data);
        local_close(&group->peers[i].control);
    }
    local_tcp_door_close(group, group->door);
    local_close(&group->wake);
    local_window_destroy(group);
    pthread_mutex_destroy(&group->lock);
}

// A child has no mappings of the windows either.
void local_tcp_destroy(struct tcp_group *group)
{
    const struct weir_host *host = group->local.host;
    if (!local_tcp_is_inherited(group))
        local_delist(&group->local);
    if (!local_tcp_is_inherited(group))
        close_all(group);
    else
        host->release(group->windows);
    host->release(group->staging);
    host->release(group->polls);
    host->release(group->peers);
    host->release(group);
}

const struct local_wire local_tcp_wire = {
    .meet = tcp_meet,
    .phase = tcp_phase,
    .end = tcp_end,
    .messages = local_tcp_messages,
    .offer = local_tcp_offer,
    .split = tcp_split,
    .fail = tcp_fail,
    .cause = tcp_cause,
    .failed = local_failed,
    .leave = tcp_leave,
    .shrink = local_tcp_shrink,
};
