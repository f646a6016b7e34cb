// See the header.
#include "tests/bench/peers/pageable_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t least_size = 4096;
static const size_t ready_bytes = (size_t)64 << 20; // small copies are repeated up to this
static const unsigned repeats_max = 200;

static unsigned char byte_of(size_t index, unsigned seed)
{
    return (unsigned char)(index * 7 + (index >> 12) + (index >> 21) + seed);
}

static void fill(struct pageable_job *job, unsigned seed)
{
    for (size_t i = 0; i < job->most; i++)
        job->src[i] = byte_of(i, seed);
}

// Whole, and a size that is a multiple of nothing.
static bool check_way(struct pageable_job *job, const struct pageable_way *way)
{
    const size_t sizes[] = {job->most, job->most - job->most / 3 - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(job->dst, 0, job->most);
        if (!way->up(job->user, job->src, sizes[i]) || !way->down(job->user, job->dst, sizes[i]))
            return false;
        if (memcmp(job->src, job->dst, sizes[i]) != 0)
            return peer_fail("%s: bytes that went up and down differ", way->name);
        peer_checked(1);
    }
    return true;
}

bool pageable_open(struct pageable_job *job)
{
    job->src = malloc(job->most);
    job->dst = malloc(job->most);
    if (!job->src || !job->dst)
        return peer_skip("there is no memory for %llu bytes twice", (unsigned long long)job->most);
    for (size_t i = 0; i < job->way_count; i++) {
        fill(job, (unsigned)i);
        if (!job->ways[i].is_bound && !check_way(job, &job->ways[i]))
            return false;
    }
    return true;
}

void pageable_close(struct pageable_job *job)
{
    free(job->src);
    free(job->dst);
}

static void write_size(char *text, size_t room, size_t size)
{
    if (size >> 30)
        snprintf(text, room, "%zuG", size >> 30);
    else if (size >> 20)
        snprintf(text, room, "%zuM", size >> 20);
    else
        snprintf(text, room, "%zuK", size >> 10);
}

static bool measure(struct pageable_job *job, const struct pageable_way *way, size_t size, bool up)
{
    char shown[24];
    char name[96];
    unsigned repeats = 1;
    while (repeats < repeats_max && repeats * size < ready_bytes)
        repeats++;
    const double began = peer_now_ms();
    for (unsigned i = 0; i < repeats; i++)
        if (up ? !way->up(job->user, job->src, size) : !way->down(job->user, job->dst, size))
            return false;
    const double ms = (peer_now_ms() - began) / repeats;
    write_size(shown, sizeof shown, size);
    snprintf(name, sizeof name, "%s_%s_%s", way->name, up ? "up" : "down", shown);
    peer_value(name, ms);
    return true;
}

bool pageable_round(struct pageable_job *job)
{
    for (size_t size = least_size; size <= job->most; size *= 4)
        for (size_t i = 0; size >= job->least && i < job->way_count; i++)
            if (!measure(job, &job->ways[i], size, true) ||
                !measure(job, &job->ways[i], size, false))
                return false;
    return true;
}

void pageable_options(struct pageable_job *job, struct peer_option out_options[PAGEABLE_OPTIONS])
{
    job->least = least_size;
    job->most = (uint64_t)1 << 30;
    out_options[0] = (struct peer_option){.name = "least",
                                          .help = "the smallest copy, in bytes",
                                          .value = &job->least,
                                          .least = 1,
                                          .most = (uint64_t)1 << 32};
    out_options[1] = (struct peer_option){.name = "most",
                                          .help = "the largest copy, in bytes",
                                          .value = &job->most,
                                          .least = least_size,
                                          .most = (uint64_t)1 << 32};
}
