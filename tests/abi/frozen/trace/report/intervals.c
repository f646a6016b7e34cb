#include "tests/abi/frozen/trace/report/intervals.h"

#include <stdlib.h>

void weir__cover_add(struct weir__cover *it, uint64_t begin, uint64_t end)
{
    if (end <= begin)
        return;
    if (it->any && begin < it->end)
        begin = it->end;
    if (end > begin)
        it->covered += end - begin;
    if (!it->any || end > it->end)
        it->end = end;
    it->any = true;
}

struct edge {
    uint64_t time;
    int8_t step; // +1 at a begin, -1 at an end
    bool first;
    bool second;
};

// Ends before begins: intervals that touch do not overlap.
static int by_time(const void *a, const void *b)
{
    const struct edge *x = a;
    const struct edge *y = b;
    return x->time != y->time ? (x->time < y->time ? -1 : 1) : x->step - y->step;
}

static size_t make_edges(const struct weir__member *members, size_t count, struct edge *edges)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir__member *member = &members[i];
        if (member->end <= member->begin || (!member->first && !member->second))
            continue;
        edges[used++] = (struct edge){member->begin, 1, member->first, member->second};
        edges[used++] = (struct edge){member->end, -1, member->first, member->second};
    }
    return used;
}

bool weir__intersection(const struct weir__member *members, size_t count, uint64_t *out_length)
{
    *out_length = 0;
    if (count == 0)
        return true;
    struct edge *edges =
        count <= SIZE_MAX / 2 / sizeof *edges ? malloc(2 * count * sizeof *edges) : NULL;
    if (!edges)
        return false;
    const size_t used = make_edges(members, count, edges);
    qsort(edges, used, sizeof *edges, by_time);
    int64_t first = 0;
    int64_t second = 0;
    int64_t any = 0;
    for (size_t i = 0; i < used; i++) {
        // One of each set, and two in all: an interval in both sets does not overlap itself.
        if (first > 0 && second > 0 && any > 1)
            *out_length += edges[i].time - edges[i - 1].time;
        first += edges[i].first ? edges[i].step : 0;
        second += edges[i].second ? edges[i].step : 0;
        any += edges[i].step;
    }
    free(edges);
    return true;
}
