// The sizes of chunks that the library chooses.
//
// How many. Cutting a transfer of t seconds into n chunks leaves about t / n in which only one engine
// works, at the beginning and at the end, and costs the start of n operations. The sum is least at
// n = sqrt(t / cost): the square root of the job's bytes divided by the bytes that are transferred in the
// time of one start. If the same cores copy and compute, none of this applies; a chunk is then a piece that
// stays in their cache from its upload to its download.
//
// Growing. A chunk that is much larger than the one before arrives after that one has left, and the way
// down waits; so each is a little larger, up to what one of n equal chunks has, and the first is the only one
// that the way down waits for as a whole. At the end, where the last kernel and the last download come after
// all uploads, they shrink faster. What that gains was measured: docs/chunks.md.
#include <stdint.h>

#include "patterns/chunks_parts.h"

// At 55.3 GB/s, in the 4.4 + 0.6 µs of a launch, a record and a wait; measured on an H200.
#define BYTES_PER_START ((size_t)256 * 1024)
// Measured on an H200: with smaller ones the chunks that come of growing cost more than the first one gains.
#define LEAST_BYTES ((size_t)4 * 1024 * 1024)
#define GROWTH 20 // each chunk is larger by so manieth a part
// None has more than such a part of what is left, so that each is a quarter smaller at the end.
#define TAIL 4
// The largest chunk is at most so many times the least: then at most 48 chunks come of growing.
#define RATIO_MAX 16
// With about 1,000 operations pending, drivers block further submits. CHOSEN_EQUAL_MAX leaves room for those
// that come of growing.
#define CHOSEN_CHUNKS_MAX 256
#define CHOSEN_EQUAL_MAX (CHOSEN_CHUNKS_MAX - 48)
// Measured on PoCL: flat between 0.5 and 4 MiB.
#define BYTES_PER_CACHED_CHUNK ((size_t)1024 * 1024)

// Bytes of an element in the direction of more bytes.
static size_t widest(const struct weir_chunks_params *params)
{
    return params->in_bytes > params->out_bytes ? params->in_bytes : params->out_bytes;
}

static uint32_t cached_count(size_t bytes)
{
    size_t pieces = bytes > 0 ? (bytes - 1) / BYTES_PER_CACHED_CHUNK + 1 : 1;
    return pieces < CHOSEN_CHUNKS_MAX ? (uint32_t)pieces : CHOSEN_CHUNKS_MAX;
}

// The square root, rounded to nearest: the first n with ratio <= n (n + 1).
static uint32_t balanced_count(size_t bytes, uint32_t most)
{
    uint32_t count = 1;
    while (count < most && (size_t)count * (count + 1) < bytes / BYTES_PER_START)
        count++;
    return count;
}

// How many bytes the next chunk gets of those that are left. The last two share them.
static size_t take(size_t size, size_t least, size_t left)
{
    const size_t most = left / TAIL > least ? left / TAIL : least;

    size = size < most ? size : most;
    if (left <= size)
        return left;
    return left < 2 * size ? left / 2 : size;
}

// Cuts into chunks that grow, and stores their ends, in units, in `ends` unless it is NULL.
static uint32_t grow(const struct weir_chunks_params *params, size_t unit, size_t units,
                     size_t *ends)
{
    if (units <= 1) { // a unit may then be larger than what can be counted in bytes
        if (ends && units > 0)
            ends[0] = units;
        return (uint32_t)units;
    }

    const size_t bytes = params->element_count * widest(params);
    const size_t unit_bytes = unit * widest(params);
    const size_t most = (bytes - 1) / balanced_count(bytes, CHOSEN_EQUAL_MAX) + 1;
    const size_t least = most / RATIO_MAX > LEAST_BYTES ? most / RATIO_MAX : LEAST_BYTES;
    size_t size = least, at = 0, end = 0;
    uint32_t count = 0;

    while (end < units) {
        size = size < most ? size : most;
        at += take(size, least, bytes - at);
        end = at / unit_bytes > end ? at / unit_bytes : end + 1;
        if (at == bytes)
            end = units;
        if (ends)
            ends[count] = end;
        count++;
        size += size / GROWTH;
    }
    return count;
}

// Chunks of the same size, but for a unit.
static void cut_evenly(const weir_chunks *chunks)
{
    const uint32_t count = chunks->plan.chunk_count;
    const size_t each = count > 0 ? chunks->units / count : 0;
    const size_t more = count > 0 ? chunks->units % count : 0; // chunks with one unit more

    for (uint32_t i = 0; i < count; i++)
        chunks->cuts[i] = (i + 1) * each + (i + 1 < more ? i + 1 : more);
}

// The same chunks in the other order.
static void turn_round(const weir_chunks *chunks)
{
    const uint32_t count = chunks->plan.chunk_count;

    for (uint32_t i = 0; i < count / 2; i++) {
        size_t *early = &chunks->cuts[i], *late = &chunks->cuts[count - 2 - i];
        const size_t other = chunks->units - *late;
        *late = chunks->units - *early;
        *early = other;
    }
}

static bool grows(const struct weir_chunks_params *params, const struct weir_chunks_plan *plan)
{
    return params->chunk_count == 0 && plan->layout == WEIR_CHUNKS_BY_ENGINE &&
           !weir__chunks_on_cores(params);
}

uint32_t weir__chunks_count(const struct weir_chunks_params *params,
                            const struct weir_chunks_plan *plan, size_t units)
{
    const size_t bytes = params->element_count * widest(params);
    uint32_t count = params->chunk_count;

    if (grows(params, plan))
        return grow(params, plan->unit, units, NULL);
    if (count == 0)
        count = weir__chunks_on_cores(params) ? cached_count(bytes)
                                              : balanced_count(bytes, CHOSEN_CHUNKS_MAX);
    return count < units ? count : (uint32_t)units;
}

void weir__chunks_write_cuts(weir_chunks *chunks)
{
    if (!grows(&chunks->params, &chunks->plan)) {
        cut_evenly(chunks);
    } else {
        grow(&chunks->params, chunks->plan.unit, chunks->units, chunks->cuts);
        if (chunks->params.in_bytes > chunks->params.out_bytes)
            turn_round(chunks);
    }
    for (uint32_t i = 0; i < chunks->plan.chunk_count; i++) {
        const struct weir_chunk chunk = weir__chunks_at(chunks, i);
        if (i == 0)
            chunks->plan.first_count = chunk.count;
        if (chunk.count > chunks->plan.most_count)
            chunks->plan.most_count = chunk.count;
    }
}
