// weir run arr-coc --ranks: frame i belongs to rank i modulo the count of ranks. Each rank delivers its
// frames into a block, the ranks' blocks of one round are gathered by rank 0, and that takes them in
// the order of frames, as a run without ranks takes its own.
//
// Each rank takes part in each round, so a frame that fails is a block too, and a rank without a frame
// in the last round gives an empty one. A rank that stops before the end ends the communicator, and so
// all others.
#include <inttypes.h>

#include "cli/common/own.h"
#include "cli/common/signals.h"
#include "cli/run/run.h"

enum block_state {
    BLOCK_EMPTY,
    BLOCK_RESULT,
    BLOCK_FAILED,
};

// What one rank gives in a round: this, and after it the arrays.
struct block {
    struct weir_device_info info;
    struct weir_pipeline_statistics statistics; // so far; without the stages' names
    int32_t state;
    uint32_t stage_count; // 0: no times
    uint64_t frames;      // of all ranks, as this one counts them
    uint64_t latency_ns;
    struct weir_arr_coc_output output; // its arrays come after the block
    struct weir_pipeline_span spans[RUN_STAGES];
    char message[768];
};

struct run_ranks {
    weir_comm *comm;
    weir_queue *queue;
    weir_buffer *mine;
    weir_buffer *all; // of rank 0; elsewhere NULL
    size_t bytes;     // of a block with its arrays
    uint64_t frames;  // of all ranks
    uint64_t round;
    uint64_t began_ns;
    bool failed;
    bool ended;
    // Of rank 0.
    struct run_device *peers; // one for each rank
    struct weir_pipeline_statistics first;
    struct weir__histogram latency; // of all frames
};

// The arrays of a block come after it.
#define ARRAYS ((sizeof(struct block) + 15) / 16 * 16)

static void fill_block(const struct run *run, struct block *block,
                       const struct weir_arr_coc_output *output,
                       const struct weir_pipeline_result *result)
{
    block->state = BLOCK_RESULT;
    block->latency_ns = result->latency_ns;
    if (result->spans && result->stage_count <= RUN_STAGES) {
        block->stage_count = result->stage_count;
        memcpy(block->spans, result->spans, result->stage_count * sizeof *result->spans);
    }
    cli_results_copy(output, &run->sizes, (char *)block + ARRAYS, &block->output);
}

static void describe_failure(struct block *block, const struct run_image *image,
                             const struct weir_pipeline_result *result)
{
    block->state = BLOCK_FAILED;
    if (result->error && result->error->status == WEIR_ERROR_IO) {
        snprintf(block->message, sizeof block->message, "%s", result->error->message);
        return;
    }
    if (result->error)
        weir_error_set(result->error);
    snprintf(block->message, sizeof block->message, "%s: %s", image->path,
             result->error ? weir_last_error_text() : weir_status_text(result->status));
}

// Exchanging.

uint32_t run_rank(const struct run *run)
{
    return run->ranks ? weir_comm_rank(run->ranks->comm) : 0;
}

static void fail(struct run *run, const char *why)
{
    struct run_ranks *ranks = run->ranks;
    if (!ranks->failed && !cli_signal())
        cli_error("%s", why);
    ranks->failed = true;
    WEIR_IGNORE(weir_pipeline_group_cancel(run->group));
}

// This rank's block, zeroed but for its figures; NULL after a failure.
static struct block *begin_mine(struct run *run)
{
    const size_t bytes = run->ranks->bytes;
    void *pointer = NULL;
    if (weir_host_begin(run->ranks->mine, 0, bytes, WEIR_ACCESS_WRITE, &pointer) != WEIR_OK) {
        fail(run, weir_last_error_text());
        return NULL;
    }
    memset(pointer, 0, bytes);
    struct block *block = pointer;
    block->info = run->devices[0].info;
    block->frames = run->ranks->frames;
    weir_pipeline_get_statistics(weir_arr_coc_pipeline(run->devices[0].arr_coc),
                                 &block->statistics);
    return block;
}

// A result of rank 0's, or another rank's.
static void take_result(struct run *run, struct run_image *image, char *at, uint32_t rank)
{
    struct run_ranks *ranks = run->ranks;
    const struct block *block = (const struct block *)(const void *)at;
    struct weir_arr_coc_output output = block->output;
    const struct weir_pipeline_result result = {
        .status = WEIR_OK,
        .latency_ns = block->latency_ns,
        .spans = block->stage_count && block->stage_count <= RUN_STAGES ? block->spans : NULL,
        .stage_count = block->stage_count,
    };
    cli_results_place(&output, &run->sizes, at + ARRAYS);
    weir__histogram_add(&ranks->latency, block->latency_ns);
    if (ranks->round > 0)
        weir__histogram_add(&run->latency, block->latency_ns);
    run_take_result(image, &ranks->peers[rank], &output, &result);
}

static void take_block(struct run *run, char *at, uint32_t rank)
{
    struct run_ranks *ranks = run->ranks;
    const struct block *block = (const struct block *)(const void *)at;
    if (block->frames != ranks->frames) { // other images, or another --repeat
        char why[192];
        snprintf(why, sizeof why,
                 "rank %u has %" PRIu64 " frames to run, and rank 0 has %" PRIu64
                 "; give all ranks the same images and the same --repeat",
                 (unsigned)rank, block->frames, ranks->frames);
        fail(run, why);
        return;
    }
    const uint64_t frame = ranks->round * weir_comm_count(ranks->comm) + rank;
    struct run_device *peer = &ranks->peers[rank];
    if (ranks->round == 0) // the thread that writes files reads it later
        *peer = (struct run_device){.run = run, .info = block->info};
    peer->statistics = block->statistics;
    peer->statistics.stage_count = run->statistics.stage_count;
    for (uint32_t i = 0; i < RUN_STAGES; i++)
        peer->statistics.stages[i].name = run->stages[i];
    if (frame >= ranks->frames || block->state == BLOCK_EMPTY)
        return;
    struct run_image *image = &run->images[frame / run->repeat];
    if (block->state == BLOCK_RESULT)
        take_result(run, image, at, rank);
    else if (!atomic_exchange(&image->failed, true))
        cli_error("rank %u: %s", (unsigned)rank, block->message);
    run_end_delivery(run, image);
}

// Of all ranks, which begin one after the other: this one need not be the first.
static uint64_t wall_ns_of(const struct run_ranks *ranks)
{
    uint64_t wall_ns = cli_now_ns() - ranks->began_ns;
    for (uint32_t i = 0; i < weir_comm_count(ranks->comm); i++)
        if (wall_ns < ranks->peers[i].statistics.wall_ns)
            wall_ns = ranks->peers[i].statistics.wall_ns;
    return wall_ns;
}

static void take_blocks(struct run *run)
{
    struct run_ranks *ranks = run->ranks;
    const size_t bytes = ranks->bytes * weir_comm_count(ranks->comm);
    void *all;
    if (!ranks->all || weir_host_begin(ranks->all, 0, bytes, WEIR_ACCESS_READ, &all) != WEIR_OK)
        return;
    for (uint32_t i = 0; i < weir_comm_count(ranks->comm); i++)
        take_block(run, (char *)all + i * ranks->bytes, i);
    WEIR_IGNORE(weir_host_end(ranks->all, 0, bytes, WEIR_ACCESS_READ));
    if (ranks->failed)
        return;
    run->shown = ranks->peers;
    run->shown_count = weir_comm_count(ranks->comm);
    if (ranks->round == 0)
        ranks->first = (struct weir_pipeline_statistics){
            .succeeded = ranks->latency.count,
            .latency_max_ns = ranks->latency.maximum,
            .wall_ns = wall_ns_of(ranks),
        };
}

// This rank's block is filled. Rank 0 takes the blocks of all.
static void end_round(struct run *run)
{
    struct run_ranks *ranks = run->ranks;
    WEIR_IGNORE(weir_host_end(ranks->mine, 0, ranks->bytes, WEIR_ACCESS_WRITE));
    if (weir_queue_gather(ranks->queue, ranks->comm, ranks->all, 0, ranks->mine, 0, ranks->bytes,
                          WEIR_U8, 0) == WEIR_OK &&
        weir_queue_sync(ranks->queue, WEIR_FOREVER) == WEIR_OK)
        take_blocks(run);
    else
        fail(run, weir_last_error_text());
    ranks->round++;
}

// Hands a frame that was delivered to rank 0, which waits for a frame of each rank. Rank 0 takes the
// frames of all ranks in it.
static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    struct run *run = ((struct run_device *)user)->run;
    const struct weir_arr_coc_sizes *sizes = &run->sizes;
    struct block *mine = run->ranks->failed ? NULL : begin_mine(run);
    if (!mine)
        return;
    if (output && (output->token_count > sizes->budget ||
                   output->patch_count > (uint64_t)sizes->grid * sizes->grid)) {
        mine->state = BLOCK_FAILED;
        snprintf(mine->message, sizeof mine->message,
                 "the device gave more results than there can be");
    } else if (output) {
        fill_block(run, mine, output, result);
    } else {
        describe_failure(mine, frame->user, result);
    }
    end_round(run);
}

// The beginning and the end.

static void close_ranks(void *object)
{
    struct run_ranks *ranks = object;
    if (ranks->failed)
        cli_fail_late();
    if (ranks->comm && !ranks->ended)
        WEIR_IGNORE(weir_comm_abort(ranks->comm, "the rank ended before its work was done"));
    weir_queue_destroy(&ranks->queue);
    weir_buffer_destroy(&ranks->mine);
    weir_buffer_destroy(&ranks->all);
    weir_comm_destroy(&ranks->comm);
}

// Joins the other ranks. Only rank 0 writes and tells.
static void open_ranks(struct run *run, struct weir_arr_coc_params *params)
{
    struct run_ranks *ranks = cli_allocate(1, sizeof *ranks);
    cli_own(close_ranks, ranks);
    if (weir_comm_create(run->devices[0].device, WEIR_PARAMS(weir_comm, .label = "arr-coc"),
                         &ranks->comm) < 0) {
        cli_weir_error();
        cli_end(CLI_FAILED);
    }
    run->ranks = ranks;
    const bool first = run_rank(run) == 0;
    cli_quiet = run->quiet || !first;
    if (first)
        run_prepare_output(run);
    run_open_images(run, params);
}

static void make_buffer(struct run *run, size_t size, weir_buffer **out_buffer)
{
    cli_fine(weir_buffer_create(run->devices[0].device,
                                WEIR_PARAMS(weir_buffer, .label = "ranks", .size = size,
                                            .placement = WEIR_PLACE_HOST),
                                out_buffer));
}

static void begin(struct run *run)
{
    struct run_ranks *ranks = run->ranks;
    const uint32_t count = weir_comm_count(ranks->comm);
    // Of a block with as many patches and tokens as there can be.
    struct weir_arr_coc_output most = {.patch_count = run->sizes.grid * run->sizes.grid,
                                       .token_count = run->sizes.budget};
    ranks->bytes = (ARRAYS + cli_results_place(&most, &run->sizes, NULL) + 15) / 16 * 16;
    ranks->frames = run->image_count * run->repeat;
    ranks->began_ns = cli_now_ns();
    cli_fine(weir_queue_create(run->devices[0].device, WEIR_PARAMS(weir_queue, .label = "ranks"),
                               &ranks->queue));
    make_buffer(run, ranks->bytes, &ranks->mine);
    if (run_rank(run) == 0) {
        ranks->peers = cli_allocate(count, sizeof *ranks->peers);
        make_buffer(run, ranks->bytes * count, &ranks->all);
    }
    run_begin_images(run);
}

// Each of its frames, also those that must fail: another rank may be able to read them, and all ranks
// take part in each round.
static void submit_share(struct run *run)
{
    const uint32_t count = weir_comm_count(run->ranks->comm);
    for (uint64_t i = run_rank(run); i < run->image_count * run->repeat && !cli_signal();
         i += count)
        if (!run_submit_image(run, &run->images[i / run->repeat]))
            return;
}

// Ends all ranks, after an interrupt.
static void cancel(struct run *run)
{
    char why[96];
    snprintf(why, sizeof why, "rank %u was interrupted by signal %d", (unsigned)run_rank(run),
             cli_signal());
    WEIR_IGNORE(weir_comm_abort(run->ranks->comm, why));
}

// The last round, and on rank 0 the figures of all ranks.
static void end(struct run *run)
{
    struct run_ranks *ranks = run->ranks;
    const uint64_t count = weir_comm_count(ranks->comm);
    if (cli_signal())
        cancel(run);
    while (!ranks->failed && ranks->round * count < ranks->frames)
        if (begin_mine(run))
            end_round(run);
    // Rank 0 may have refused the blocks of the last round.
    if (!ranks->failed && (weir_queue_barrier(ranks->queue, ranks->comm) != WEIR_OK ||
                           weir_queue_sync(ranks->queue, WEIR_FOREVER) != WEIR_OK))
        fail(run, weir_last_error_text());
    ranks->ended = !ranks->failed;
    if (run->shown == ranks->peers) {
        struct weir_pipeline_statistics *sum = &run->statistics;
        *sum = (struct weir_pipeline_statistics){.wall_ns = wall_ns_of(ranks)};
        weir__statistics_set_latency(sum, &ranks->latency);
        for (uint32_t r = 0; r < run->shown_count; r++)
            weir__statistics_add(sum, &ranks->peers[r].statistics);
        // Only the times of all frames are known of each stage.
        ranks->first.timed_frames = sum->timed_frames;
        run->first.statistics = ranks->first;
    }
    run_end_images(run);
}

const struct run_kind run_by_ranks = {
    .open = open_ranks,
    .begin = begin,
    .submit = submit_share,
    .deliver = deliver,
    .cancel = cancel,
    .end = end,
    .count = run_count_images,
};
