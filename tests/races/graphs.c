// Graphs: what is between their nodes, and between their launches and other work.
#include "tests/races/race.h"

// Two branches of a capture write the same bytes; the join orders what comes after it only.
RACE(branches_of_a_capture, WRITE_AFTER_WRITE)
{
    weir_graph *graph;

    must(weir_capture_begin(one));
    after(two, one);
    must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
    mend(race, two, one);
    must(weir_queue_fill(two, b, 0, SIZE, &nine, 1)); // second
    after(one, two);
    must(weir_capture_end(one, NULL, &graph));
    must(weir_queue_graph(one, graph));
    race_expect(race, b, 0, SIZE, 9);
    weir_graph_destroy(&graph);
}

// The branch writes what the trunk reads before the join.
RACE(read_before_the_join, READ_AFTER_WRITE)
{
    weir_graph *graph;

    must(weir_capture_begin(one));
    after(two, one);
    must(weir_queue_fill(two, b, 0, SIZE, &seven, 1)); // first
    mend(race, one, two);
    must(weir_queue_copy(one, c, 0, b, 0, SIZE)); // second
    after(one, two);
    must(weir_capture_end(one, NULL, &graph));
    must(weir_queue_graph(one, graph));
    race_expect(race, c, 0, SIZE, 7);
    weir_graph_destroy(&graph);
}

// The graph's input is filled for the next launch while the last launch still reads it.
RACE(input_of_a_graph_between_launches, WRITE_AFTER_READ)
{
    weir_graph *graph;

    must(weir_capture_begin(one));
    must(weir_queue_copy(one, b, 0, a, 0, SIZE)); // first
    must(weir_capture_end(one, NULL, &graph));
    must(weir_queue_graph(one, graph));
    mend(race, two, one);
    must(weir_queue_fill(two, a, 0, SIZE, &nine, 1)); // second
    race_expect(race, b, 0, SIZE, 7);
    weir_graph_destroy(&graph);
}

// The graph is launched before its input is there.
RACE(graph_before_its_input, READ_AFTER_WRITE)
{
    weir_graph *graph;

    must(weir_capture_begin(one));
    must(weir_queue_copy(one, c, 0, b, 0, SIZE)); // second
    must(weir_capture_end(one, NULL, &graph));
    must(weir_queue_fill(two, b, 0, SIZE, &seven, 1)); // first
    mend(race, one, two);
    must(weir_queue_graph(one, graph));
    race_expect(race, c, 0, SIZE, 7);
    weir_graph_destroy(&graph);
}

// The host reads a graph's pinned result before the launch is done.
RACE(host_reads_a_graphs_result, HOST_READ)
{
    weir_graph *graph;

    must(weir_capture_begin(one));
    must(weir_queue_copy(one, out, 0, a, 0, SIZE)); // first
    must(weir_capture_end(one, NULL, &graph));
    must(weir_queue_graph(one, graph));
    if (race->mended)
        must(weir_queue_sync(one, WEIR_FOREVER));
    host_sees(race, out, 0, SIZE, 7); // second
    must(weir_queue_sync(one, WEIR_FOREVER));
    weir_graph_destroy(&graph);
}

// Two graphs on two queues: launches of one graph are in order, those of two are not.
RACE(two_graphs_on_two_queues, READ_AFTER_WRITE)
{
    weir_graph *graphs[2];

    must(weir_capture_begin(one));
    must(weir_queue_copy(one, b, 0, a, 0, SIZE)); // first
    must(weir_capture_end(one, NULL, &graphs[0]));
    must(weir_capture_begin(two));
    must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
    must(weir_capture_end(two, NULL, &graphs[1]));
    must(weir_queue_graph(one, graphs[0]));
    mend(race, two, one);
    must(weir_queue_graph(two, graphs[1]));
    race_expect(race, c, 0, SIZE, 7);
    weir_graph_destroy(&graphs[0]);
    weir_graph_destroy(&graphs[1]);
}

// An update gives the node another source, which another queue still writes.
RACE(graph_updated_to_a_buffer_in_work, READ_AFTER_WRITE)
{
    weir_buffer *old = race_buffer(race, "old", SIZE, 9);
    weir_graph *graph;

    must(weir_capture_begin(one));
    must(weir_queue_copy(one, c, 0, old, 0, SIZE)); // second
    must(weir_capture_end(one, NULL, &graph));
    must(weir_queue_graph(one, graph));
    must(weir_queue_fill(two, b, 0, SIZE, &seven, 1)); // first
    must(weir_graph_set_copy(graph, 0, c, 0, b, 0, SIZE));
    mend(race, one, two);
    must(weir_queue_graph(one, graph));
    race_expect(race, c, 0, SIZE, 7);
    weir_graph_destroy(&graph);
}
