// Each queue has a ring of its last operations, and a list of waits for it that are not drawn yet.
// A wait is drawn when the queue's rows have passed the record, and at the latest when the list is
// full: then with the rows known so far, which is correct unless rows arrive very late.
#include "tests/abi/frozen/trace/report/trace_arrows.h"

#include <stdlib.h>

enum {
    RING = 1024,
    FIRST_POINTS = 16, // of queues that live briefly there may be very many
    WAIT_LIMIT = 4096
};

struct point {
    uint64_t sequence;
    uint64_t last_ns; // the last nanosecond of the operation
};

struct waiting {
    uint64_t sequence; // of the record
    uint64_t to_queue;
    uint64_t to_ns;
};

struct weir__arrow_queue {
    uint64_t id;
    size_t count; // of all points so far; the last RING are kept
    size_t capacity;
    struct point *ring;
    struct waiting *waits;
    size_t wait_count;
    size_t wait_capacity;
};

static struct weir__arrow_queue *find_or_add(struct weir__arrows *arrows, uint64_t id)
{
    for (size_t i = arrows->queue_count; i-- > 0;)
        if (arrows->queues[i].id == id)
            return &arrows->queues[i];
    struct weir__arrow_queue *queues =
        realloc(arrows->queues, (arrows->queue_count + 1) * sizeof *queues);
    if (!queues)
        return NULL;
    arrows->queues = queues;
    struct weir__arrow_queue *queue = &queues[arrows->queue_count];
    *queue = (struct weir__arrow_queue){.id = id};
    arrows->queue_count++;
    return queue;
}

static bool add_point(struct weir__arrow_queue *queue, const struct point *point)
{
    if (queue->count == queue->capacity && queue->capacity < RING) {
        const size_t capacity = queue->capacity ? 2 * queue->capacity : FIRST_POINTS;
        struct point *ring = realloc(queue->ring, capacity * sizeof *ring);
        if (!ring)
            return false;
        queue->ring = ring;
        queue->capacity = capacity;
    }
    queue->ring[queue->count++ % RING] = *point;
    return true;
}

static void draw_wait(struct weir__arrows *arrows, const struct weir__arrow_queue *queue,
                      const struct waiting *wait, weir__arrow_function draw, void *user)
{
    const size_t kept = queue->count < RING ? queue->count : RING;
    for (size_t back = 1; back <= kept; back++) {
        const struct point *point = &queue->ring[(queue->count - back) % RING];
        if (point->sequence > wait->sequence)
            continue;
        const struct weir__arrow arrow = {
            .id = ++arrows->drawn,
            .from_queue = queue->id,
            .from_ns = point->last_ns,
            .to_queue = wait->to_queue,
            .to_ns = wait->to_ns,
        };
        draw(user, &arrow);
        return;
    }
}

static bool is_past(const struct weir__arrow_queue *queue, uint64_t sequence)
{
    return queue->count > 0 && queue->ring[(queue->count - 1) % RING].sequence > sequence;
}

// Draws the waits whose record the queue's rows have passed, or all of them.
static void draw_known(struct weir__arrows *arrows, struct weir__arrow_queue *queue, bool all,
                       weir__arrow_function draw, void *user)
{
    size_t left = 0;
    for (size_t i = 0; i < queue->wait_count; i++) {
        const struct waiting wait = queue->waits[i];
        if (all || is_past(queue, wait.sequence))
            draw_wait(arrows, queue, &wait, draw, user);
        else
            queue->waits[left++] = wait;
    }
    queue->wait_count = left;
}

static bool add_wait(struct weir__arrow_queue *queue, const struct waiting *wait)
{
    if (queue->wait_count == queue->wait_capacity) {
        const size_t capacity = queue->wait_capacity ? 2 * queue->wait_capacity : 64;
        struct waiting *waits = realloc(queue->waits, capacity * sizeof *waits);
        if (!waits)
            return false;
        queue->waits = waits;
        queue->wait_capacity = capacity;
    }
    queue->waits[queue->wait_count++] = *wait;
    return true;
}

bool weir__arrows_add(struct weir__arrows *arrows, const struct weir_trace_operation *operation,
                      weir__arrow_function draw, void *user)
{
    // An arrow must begin within its row, so before the row's end.
    const struct point point = {
        .sequence = operation->sequence,
        .last_ns =
            operation->end_ns > operation->start_ns ? operation->end_ns - 1 : operation->start_ns,
    };
    struct weir__arrow_queue *queue = find_or_add(arrows, operation->queue);
    if (!queue || !add_point(queue, &point))
        return false;
    draw_known(arrows, queue, false, draw, user);
    for (size_t i = 0; i < operation->wait_count; i++) {
        const struct waiting waiting = {
            .sequence = operation->waits[i].sequence,
            .to_queue = operation->queue,
            .to_ns = operation->start_ns,
        };
        if (operation->waits[i].queue == operation->queue)
            continue;
        struct weir__arrow_queue *producer = find_or_add(arrows, operation->waits[i].queue);
        if (!producer || !add_wait(producer, &waiting))
            return false;
        draw_known(arrows, producer, producer->wait_count >= WAIT_LIMIT, draw, user);
    }
    return true;
}

void weir__arrows_finish(struct weir__arrows *arrows, weir__arrow_function draw, void *user)
{
    for (size_t i = 0; i < arrows->queue_count; i++) {
        draw_known(arrows, &arrows->queues[i], true, draw, user);
        free(arrows->queues[i].ring);
        free(arrows->queues[i].waits);
    }
    free(arrows->queues);
    *arrows = (struct weir__arrows){0};
}
