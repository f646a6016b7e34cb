// NOLINTNEXTLINE(bugprone-reserved-identifier): for process_vm_readv()
#define _GNU_SOURCE
#include "transports/local/share.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/siphash.h"
#include "transports/kit/reduce.h"
#include "transports/local/window.h"

// Below this, TCP needs fewer round trips.
#define LEAST_BYTES ((size_t)32 << 10)
// A copy is cut into such pieces, after each of which a failure is noticed.
#define COPY_BYTES ((size_t)1 << 20)

// What each rank tells the others when a group is made.
struct place {
    uint64_t process;
    uint64_t word; // the address of the word, and what it holds
    uint64_t value;
};

static bool read_memory(const struct tcp_peer *peer, uint64_t address, void *to, size_t size)
{
    while (size > 0) {
        const struct iovec local = {.iov_base = to, .iov_len = size};
        const struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
        const ssize_t got = process_vm_readv(peer->process, &local, 1, &remote, 1, 0);
        if (got <= 0)
            return false;
        to = (char *)to + got;
        address += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

// Whether the peer's calls have not failed until now.
static bool is_sound(const struct tcp_peer *peer)
{
    uint64_t word = 0;
    return read_memory(peer, peer->word, &word, sizeof word) && word == peer->word_value;
}

bool local_share_gather(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns,
                        const void *record, size_t size, void *records)
{
    struct local_run run = {
        .group = &group->local,
        .head = {.kind = LOCAL_MEETING, .element = WEIR_U8, .count = size},
        .src = record,
        .dst = records,
        .timeout_ns = timeout_ns,
        .deadline_ns = deadline_ns,
    };
    return local_carry(&run);
}

static bool reaches_all(struct tcp_group *group, const struct place *places)
{
    bool reaches = true;
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct tcp_peer *peer = &group->peers[i];
        peer->process = (pid_t)places[i].process;
        peer->word = places[i].word;
        peer->word_value = places[i].value;
        reaches = reaches && is_sound(peer);
    }
    return reaches;
}

static bool agree(struct tcp_group *group, struct place *places, uint8_t *answers,
                  uint64_t timeout_ns, uint64_t deadline_ns)
{
    const struct place own = {.process = (uint64_t)getpid(),
                              .word = (uint64_t)(uintptr_t)&group->word,
                              .value = group->word};
    if (!local_share_gather(group, timeout_ns, deadline_ns, &own, sizeof own, places))
        return false;
    const uint8_t answer = reaches_all(group, places) && group->reads_memory;
    if (!local_share_gather(group, timeout_ns, deadline_ns, &answer, sizeof answer, answers))
        return false;
    group->shares = memchr(answers, 0, group->local.count) == NULL;
    return true;
}

bool local_share_agree(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns)
{
    const struct weir_host *host = group->local.host;
    struct weir_siphash_key key;
    struct place *places = host->allocate(group->local.count * sizeof *places);
    uint8_t *answers = host->allocate(group->local.count * sizeof *answers);
    weir_siphash_random_key(&key);
    group->word = key.words[0] | 1;
    const bool agreed = places && answers && agree(group, places, answers, timeout_ns, deadline_ns);
    host->release(answers);
    host->release(places);
    return agreed;
}

bool local_share_takes(const struct local_run *run)
{
    const size_t whole = (size_t)run->head.count * weir_datatype_size(run->head.element);
    return local_tcp_of(run)->shares && !local_window_takes(run) &&
           local_phases(run->head.kind) > 0 && whole >= LEAST_BYTES;
}

// All ranks have come so far.
static bool exchange_bytes(struct local_run *run)
{
    static const char byte = 0;
    struct tcp_group *group = local_tcp_of(run);
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct tcp_peer *peer = &group->peers[i];
        if (i == group->local.rank)
            continue;
        peer->spans[0] = (struct tcp_span){.at = (char *)(uintptr_t)&byte, .left = 1};
        peer->spans[1] = (struct tcp_span){.at = &peer->byte, .left = 1};
        local_tcp_append(&peer->out, &peer->spans[0]);
        local_tcp_append(&peer->in, &peer->spans[1]);
    }
    return local_tcp_pump(run, true);
}

// Reads `size` bytes of a piece from `at` on.
static bool fetch(struct local_run *run, uint32_t owner, const struct local_piece *piece, size_t at,
                  void *to, size_t size)
{
    struct tcp_group *group = local_tcp_of(run);
    const struct tcp_peer *peer = &group->peers[owner];
    char cause[LOCAL_CAUSE_SIZE];
    if (owner == group->local.rank) {
        const char *own = piece->of_result ? run->dst : run->src;
        memmove(to, own + piece->offset + at, size);
        return true;
    }
    const uint64_t base = piece->of_result ? peer->head.dst : peer->head.src;
    if (run->group->wire->failed(run->group, cause))
        return false;
    return read_memory(peer, base + piece->offset + at, to, size) || local_tcp_lost(run, owner);
}

static bool copy(struct local_run *run, uint32_t owner, const struct local_piece *piece)
{
    for (size_t at = 0; at < piece->size; at += COPY_BYTES) {
        const size_t left = piece->size - at;
        if (!fetch(run, owner, piece, at, (char *)run->dst + piece->target + at,
                   left < COPY_BYTES ? left : COPY_BYTES))
            return false;
    }
    return true;
}

// Adds the elements of one rank, which are where they are if they are this one's own.
static bool add(struct local_run *run, uint32_t owner, const struct local_piece *piece, size_t at,
                void *total, size_t size)
{
    struct tcp_group *group = local_tcp_of(run);
    const char *more = group->staging;
    if (owner == group->local.rank)
        more = (const char *)run->src + piece->offset + at;
    else if (!fetch(run, owner, piece, at, group->staging, size))
        return false;
    weir_reduce(run->head.element, run->head.reduction, total, more,
                size / weir_datatype_size(run->head.element));
    return true;
}

// Rank 0's elements come first, so it adds up where the result is to be: no other rank reads there, also in
// place.
static bool reduce_segment(struct local_run *run, uint32_t phase, size_t at, size_t size)
{
    const struct local_group *group = run->group;
    struct local_piece piece = {.size = 0};
    if (!local_tcp_stage(run))
        return false;
    local_piece(run, phase, group->rank, 0, &piece);
    char *result = (char *)run->dst + piece.target + at;
    void *total = group->rank == 0 ? result : run->total;
    if (!fetch(run, 0, &piece, at, total, size))
        return false;
    for (uint32_t owner = 1; owner < group->count; owner++) {
        local_piece(run, phase, group->rank, owner, &piece);
        if (!add(run, owner, &piece, at, total, size))
            return false;
    }
    if (run->head.reduction == WEIR_AVERAGE)
        weir_reduce_divide(run->head.element, total, size / weir_datatype_size(run->head.element),
                           group->count);
    if (total != result)
        memcpy(result, total, size);
    return true;
}

bool local_share_phase(struct local_run *run, uint32_t phase)
{
    static const struct local_reads reads = {.copy = copy, .reduce_segment = reduce_segment};
    return (phase == 0 || exchange_bytes(run)) && local_read_pieces(run, phase, &reads);
}

bool local_share_end(struct local_run *run)
{
    struct tcp_group *group = local_tcp_of(run);
    for (uint32_t i = 0; i < group->local.count; i++) {
        if (i != group->local.rank && !is_sound(&group->peers[i]))
            return local_tcp_lost(run, i);
    }
    return exchange_bytes(run);
}
