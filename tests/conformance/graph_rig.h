// Shared by the tests of graphs and of captures: queues and memory, and short names for
// common steps.
#ifndef WEIR_TESTS_CONFORMANCE_GRAPH_RIG_H
#define WEIR_TESTS_CONFORMANCE_GRAPH_RIG_H

#include <string.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)
#define N 256u
#define WORDS ((size_t)4 * N)

static const struct weir_extent blocks = {N / 32, 1, 1};
static const struct weir_extent block = {32, 1, 1};

// Queues and memory that most tests use. `host` holds what a graph computed.
struct rig {
    weir_queue *a;
    weir_queue *b;
    weir_queue *c;
    weir_buffer *x;
    weir_buffer *y;
    weir_buffer *z;
    weir_buffer *host;
};

static inline struct rig make_rig(struct fixture *f)
{
    const struct rig r = {
        .a = conform_queue(f, "a"),
        .b = conform_queue(f, "b"),
        .c = conform_queue(f, "c"),
        .x = conform_device_buffer(f, SIZE),
        .y = conform_device_buffer(f, SIZE),
        .z = conform_device_buffer(f, SIZE),
        .host = conform_host_buffer(f, SIZE),
    };
    memset(conform_bytes(r.host), 0, SIZE);
    return r;
}

static inline void destroy_rig(struct rig *r)
{
    weir_buffer_destroy(&r->x);
    weir_buffer_destroy(&r->y);
    weir_buffer_destroy(&r->z);
    weir_buffer_destroy(&r->host);
    weir_queue_destroy(&r->a);
    weir_queue_destroy(&r->b);
    weir_queue_destroy(&r->c);
}

#define own_rig OWN(destroy_rig) struct rig

// A test whose body gets a rig `r` too.
#define CONFORM_RIG(suite_, name_) \
    CONFORM_OF(suite_, name_, struct rig, r, make_rig(f), destroy_rig)

static inline void fill(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size,
                        unsigned char value)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, offset, size, &value, 1));
}

static inline void copy(weir_queue *queue, weir_buffer *dst, weir_buffer *src, size_t offset,
                        size_t size)
{
    EXPECT_OK(weir_queue_copy(queue, dst, offset, src, offset, size));
}

static inline uint32_t last_node(weir_queue *queue)
{
    uint32_t node = UINT32_MAX;
    EXPECT_OK(weir_capture_node(queue, &node));
    return node;
}

static inline bool all_are(weir_buffer *host, size_t offset, size_t size, unsigned char value)
{
    const unsigned char *bytes = conform_bytes(host);
    for (size_t i = 0; i < size; i++)
        if (bytes[offset + i] != value)
            return false;
    return true;
}

// The halves of `host`.
static inline bool halves_are(const struct rig *r, unsigned char first, unsigned char second)
{
    return all_are(r->host, 0, SIZE / 2, first) && all_are(r->host, SIZE / 2, SIZE / 2, second);
}

// Whether a launch leaves these bytes in the halves of `host`, which is cleared before.
static inline bool leaves(const struct rig *r, weir_queue *queue, weir_graph *graph,
                          unsigned char first, unsigned char second)
{
    memset(conform_bytes(r->host), 0, SIZE);
    launch_and_sync(queue, graph);
    return halves_are(r, first, second);
}

// A diamond: both sides need the top, the bottom needs both sides.
static inline weir_graph *capture_diamond(const struct rig *r, unsigned char value)
{
    EXPECT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, value);
    follow(r->b, r->a);
    copy(r->a, r->y, r->x, 0, SIZE / 2);
    copy(r->b, r->y, r->x, SIZE / 2, SIZE / 2);
    follow(r->a, r->b);
    copy(r->a, r->host, r->y, 0, SIZE);
    return conform_end(r->a);
}

#endif
