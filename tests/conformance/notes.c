// Notes: work that the program says others do on a queue. They do nothing, keep their place in the order of the
// queue, and stand where operations stand: in held queues, in graphs, in their clones.
#include "tests/conformance/graph_rig.h"

static const char long_name[] = "a name with \"quotes\" and a line\nbreak";

// The ranges end with the call: what keeps a note keeps a copy.
static weir_status note(weir_queue *queue, weir_buffer *reads, weir_buffer *writes)
{
    OWN_MEMORY struct weir_note_range *ranges = calloc(2, sizeof *ranges);
    char name[16] = "noted";
    ranges[0] = (struct weir_note_range){.buffer = reads, .size = SIZE, .access = WEIR_ACCESS_READ};
    ranges[1] = (struct weir_note_range){.buffer = writes,
                                         .offset = 64,
                                         .size = 16,
                                         .access = WEIR_ACCESS_WRITE,
                                         .assumed = true,
                                         .rows = 8,
                                         .pitch = 32,
                                         .slices = 2,
                                         .slice_pitch = 1024};
    const weir_status status =
        weir_queue_note(queue,
                        WEIR_PARAMS(weir_note, .name = name, .ranges = ranges, .range_count = 2),
                        NULL);
    memset(ranges, 0xff, 2 * sizeof *ranges);
    memset(name, 'x', sizeof name);
    return status;
}

// At once, and in a held queue, which keeps copies.
CONFORM_RIG(Notes, DoNothing)
{
    for (unsigned char held = 0; held < 2; held++) {
        fill(r->a, r->y, 0, SIZE, 9);
        fill(r->a, r->x, 0, SIZE, 7 + held);
        own_gate gate = held ? gate_on(r->a) : NULL;
        const struct weir_event before = test_record(r->a);
        for (int i = 0; i < 100; i++)
            ASSERT_OK(note(r->a, r->y, r->x));
        const struct weir_event after = test_record(r->a);
        EXPECT_UINT_EQ(after.sequence, before.sequence + 101);
        ASSERT_OK(weir_queue_copy(r->a, r->host, 0, r->x, 0, SIZE));
        if (held)
            gate_open(gate);
        ASSERT_SYNC(r->a);
        EXPECT_TRUE(conform_is_filled(r->host, 7 + held));
        EXPECT_OK(weir_event_query(after));
    }
}

CONFORM_RIG(Notes, NumbersAndTimes)
{
    uint64_t first = 0;
    uint64_t second = 0;
    const uint64_t now = 1000000;
    ASSERT_OK(
        weir_queue_note(r->a, WEIR_PARAMS(weir_note, .name = long_name, .timed = true), &first));
    ASSERT_OK(weir_queue_note(r->a,
                              WEIR_PARAMS(weir_note, .name = "copy", .timed = true,
                                          .work = WEIR_NOTE_TO_HOST),
                              &second));
    EXPECT_UINT_EQ(second, first + 1);
    EXPECT_OK(weir_queue_note_times(r->a, second, now, now + 10));
    EXPECT_OK(weir_queue_note_times(r->a, first, now, now));
    EXPECT_OK(weir_queue_note_times(r->a, first + 100, now, now)); // of no note
    ASSERT_SYNC(r->a);
    EXPECT_OK(weir_queue_note_times(r->a, first, now, now + 1));
    EXPECT_REFUSED(weir_queue_note_times(r->a, 0, now, now), WEIR_ERROR_INVALID, "note");
    EXPECT_REFUSED(weir_queue_note_times(r->a, first, now + 1, now), WEIR_ERROR_INVALID,
                   "begin_ns");
    EXPECT_REFUSED(weir_queue_note_times(NULL, first, now, now), WEIR_ERROR_INVALID, "queue");
}

// docs/interop.md shows it.
CONFORM_RIG(Notes, Rows)
{
    uint64_t number = 0;
    const uint64_t begin_ns = 1000;
    const uint64_t end_ns = 2000;
    fill(r->a, r->x, 0, SIZE, 9);
    const struct weir_note_range ranges[] = {
        {.buffer = r->x, .size = SIZE, .access = WEIR_ACCESS_READ},
        {.buffer = r->y, .size = 64, .access = WEIR_ACCESS_WRITE, .rows = 8, .pitch = 256},
    };
    ASSERT_OK(weir_queue_note(r->a,
                              WEIR_PARAMS(weir_note, .name = "multiply", .ranges = ranges,
                                          .range_count = 2, .timed = true),
                              &number));
    ASSERT_OK(weir_queue_note_times(r->a, number, begin_ns, end_ns));
    EXPECT_SYNC(r->a);
}

CONFORM_RIG(Notes, Refusals)
{
    struct weir_note_range range = {.buffer = r->x, .size = 16, .access = WEIR_ACCESS_READ};
    const struct weir_note_params params = {.struct_size = sizeof params,
                                            .name = "n",
                                            .ranges = &range,
                                            .range_count = 1};
    const struct weir_note_params no_ranges = {.struct_size = sizeof no_ranges,
                                               .name = "n",
                                               .range_count = 1};
    uint64_t number = 5;
#define NO_NOTE(change, part) \
    EXPECT_INVALID_WITH(range, change, weir_queue_note(r->a, &params, &number), part)
    NO_NOTE(size = SIZE + 1, "range 0");
    NO_NOTE(offset = SIZE_MAX, "range 0");
    NO_NOTE(buffer = NULL, "range 0 is no buffer");
    NO_NOTE(access = (weir_access)0, "access 0");
    EXPECT_UINT_EQ(number, 0);
    range.rows = 2;
    NO_NOTE(pitch = 15, "the pitch of range 0");
    range.pitch = 16;
    NO_NOTE(rows = SIZE_MAX, "range 0");
    range.rows = range.pitch = 0;
    range.slices = 2;
    NO_NOTE(slice_pitch = 15, "the slice pitch of range 0");
#undef NO_NOTE
    EXPECT_INVALID(weir_queue_note(r->a, WEIR_PARAMS(weir_note, .range_count = 0), NULL), "name");
    EXPECT_INVALID(weir_queue_note(r->a, &no_ranges, NULL), "ranges");
    EXPECT_INVALID(weir_queue_note(NULL, &params, NULL), "queue");
    // A refused argument does not fail the queue, and a range of no bytes is one.
    range.slices = 0;
    range.size = 0;
    EXPECT_OK(weir_queue_note(r->a, &params, NULL));
    EXPECT_SYNC(r->a);
}

// A node that does nothing, between two branches.
CONFORM_RIG(Notes, InAGraph)
{
    own_graph clone = NULL;
    uint64_t number = 1;
    uint32_t node = 7;
    fill(r->a, r->y, 0, SIZE, 9);
    ASSERT_OK(weir_capture_begin(r->a));
    fill(r->a, r->x, 0, SIZE, 1);
    follow(r->b, r->a);
    ASSERT_OK(weir_queue_note(r->b, WEIR_PARAMS(weir_note, .name = "in a graph"), &number));
    EXPECT_UINT_EQ(number, 0);
    ASSERT_OK(weir_capture_node(r->b, &node));
    EXPECT_UINT_EQ(node, 1);
    ASSERT_OK(note(r->b, r->y, r->x));
    fill(r->b, r->x, 0, SIZE / 2, 2);
    follow(r->a, r->b);
    ASSERT_OK(weir_queue_copy(r->a, r->host, 0, r->x, 0, SIZE));
    own_graph graph = conform_end(r->a);
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 5);
    ASSERT_OK(weir_graph_clone(graph, NULL, &clone));
    for (int i = 0; i < 2; i++)
        EXPECT_TRUE(leaves(r, r->a, i ? clone : graph, 2, 1));
    // All of a graph may be notes.
    ASSERT_OK(weir_capture_begin(r->a));
    ASSERT_OK(note(r->a, r->y, r->x));
    own_graph all = conform_end(r->a);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_queue_graph(i % 2 ? r->b : r->a, all));
    EXPECT_SYNC(r->a);
    EXPECT_SYNC(r->b);
}
