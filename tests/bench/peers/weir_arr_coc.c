// ARR-COC's frames a second, streamed: frames of 1024 x 1024 RGB8 that are already in the
// pinned memory of the slots, as from a capture card, and frames that the host copies
// there first.
//
// Results are compared with the float64 reference before anything is timed. With --dump a
// frame, the query and its results are written for torch_arr_coc.py to compare with.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/npy.h"
#include "tests/bench/peers/peer.h"
#include "tests/pipelines/measure.h"
#include "tests/support/made_images.h"

enum {
    SIDE = 1024,
    SLOTS_MAX = 16
};

static const struct weir_arr_coc_sizes sizes = {SIDE, 32, 4096};
static const struct form {
    const char *name;
    uint32_t slots;
    bool graphs;
} forms[] = {
    {"frame_1_slots", 1, false},       {"frame_3_slots", 3, false},
    {"frame_8_slots", 8, false},       {"frame_3_slots_graphs", 3, true},
    {"frame_8_slots_graphs", 8, true},
};

enum {
    PIPELINES = sizeof forms / sizeof *forms
};

// A frame that is loaded into each slot once, and found there afterwards.
struct resident {
    struct rig_frame
        rig; // first, because the pipeline returns a pointer to its frame; without a grid
             // the rig keeps no output
    const unsigned char *rgb;
    bool always; // copied every time
    const void *seen[SLOTS_MAX];
    size_t seen_count;
};

struct bench {
    uint64_t frames;
    const char *dump;
    struct rig rig;
    struct rig_image image;
    weir_arr_coc *pipelines[PIPELINES];
    struct resident resident[PIPELINES], copied;
};

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    struct resident *resident = user;
    bool there = false;
    for (size_t i = 0; i < resident->seen_count; i++)
        there = there || resident->seen[i] == rgb;
    *out_width = *out_height = SIDE;
    if (capacity < (size_t)SIDE * SIDE * 3)
        return WEIR_ERROR_INVALID;
    if (there && !resident->always)
        return WEIR_OK;
    memcpy(rgb, resident->rgb, (size_t)SIDE * SIDE * 3);
    if (!there && resident->seen_count < SLOTS_MAX)
        resident->seen[resident->seen_count++] = rgb;
    return WEIR_OK;
}

static struct resident make_resident(const struct rig_image *image, bool always)
{
    return (struct resident){.rig.frame.load = load, .rgb = image->rgb, .always = always};
}

// Figures that other programs do not report themselves.
static bool probe(void)
{
    weir_runtime *runtime = NULL;
    setenv("WEIR_MODULE_PATH", "lib/weir", 0);
    if (weir_open(NULL, &runtime) != WEIR_OK)
        return peer_skip("%s", weir_last_error_text());
    weir_close(&runtime);
    return true;
}

// Checking, and the dump.

static bool write_array(const char *directory, const char *name, int rank, const uint64_t *shape,
                        enum weir_io_dtype dtype, const void *data)
{
    struct weir_io_error error;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.npy", directory, name);
    return weir_io_npy_write(path, dtype, rank, shape, data, &error) ||
           peer_fail("%s", error.message);
}

static bool write_image(const char *directory, const struct rig_image *image)
{
    const uint64_t shape[] = {SIDE, SIDE, 3};
    const size_t count = (size_t)SIDE * SIDE * 3;
    int32_t *values = rig_alloc(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = image->rgb[i];
    const bool fine = write_array(directory, "frame", 3, shape, WEIR_IO_I32, values);
    free(values);
    return fine;
}

static bool dump(const struct bench *bench, const struct rig_frame *frame)
{
    const char *directory = bench->dump;
    const struct weir_arr_coc_output *output = &frame->output;
    const uint64_t query[] = {bench->rig.query_size};
    const uint64_t map[] = {3, sizes.grid, sizes.grid};
    const uint64_t patches[] = {output->patch_count, 3};
    const uint64_t tokens[] = {output->token_count, WEIR_ARR_COC_CHANNELS};
    return write_image(directory, &bench->image) &&
           write_array(directory, "query", 1, query, WEIR_IO_F32, bench->rig.query) &&
           write_array(directory, "relevance", 2, map + 1, WEIR_IO_F32, output->relevance) &&
           write_array(directory, "scores", 3, map, WEIR_IO_F32, output->scores) &&
           write_array(directory, "balance", 1, map, WEIR_IO_F32, output->balance) &&
           write_array(directory, "patches", 2, patches, WEIR_IO_I32, output->patches) &&
           write_array(directory, "tokens", 2, tokens, WEIR_IO_F32, output->tokens);
}

static bool within_bounds(const struct distances *far)
{
    return (far->texture <= 2e-5 && far->own_relevance <= 1e-4 && far->own_scores <= 1e-4 &&
            far->own_balance <= 1e-4 && far->tokens <= 5e-5) ||
           peer_fail("the results are not those of the reference: texture %g, relevance %g, "
                     "tokens %g",
                     far->texture, far->own_relevance, far->tokens);
}

static bool check_reference(struct bench *bench, const struct rig_frame *frame)
{
    const size_t floats = (size_t)WEIR_ARR_COC_CHANNELS * SIDE * SIDE;
    float *texture = rig_alloc(floats, sizeof *texture);
    struct expected expected;
    struct distances far;
    bool fine = weir_arr_coc_download_texture(bench->pipelines[0], texture) == WEIR_OK;
    if (fine) {
        expected_init(&expected, &bench->rig, &sizes, &bench->image);
        fine = measure(&expected, &bench->rig, frame, texture, &far) && within_bounds(&far);
        expected_finish(&expected);
    }
    free(texture);
    return fine || peer_fail("the reference could not be compared");
}

static bool check(struct bench *bench)
{
    struct rig_frame frames[PIPELINES];
    bool fine = true;
    for (int i = 0; i < PIPELINES; i++) {
        rig_frame_init(&frames[i], &bench->image, sizes.grid);
        fine = fine && rig_run(bench->pipelines[i], &frames[i], 1) &&
               rig_same_bits(&frames[0], &frames[i]);
        peer_checked(1);
    }
    fine = (fine || peer_fail("pipelines with other slots gave other results")) &&
           check_reference(bench, &frames[0]) && (!*bench->dump || dump(bench, &frames[0]));
    for (int i = 0; i < PIPELINES; i++)
        rig_frame_finish(&frames[i]);
    return fine;
}

// The peer.

static bool open_bench(void *user)
{
    struct bench *bench = user;
    if (!probe())
        return false;
    if (!rig_open(&bench->rig, 0, RIG_WEIGHTS))
        return peer_fail("no device or no weights: see above");
    peer_device(weir_device_get_info(bench->rig.device)->name);
    bench->image = rig_image_make(SIDE, SIDE);
    made_image_noise(SIDE, SIDE, 1, bench->image.rgb);
    for (int i = 0; i < PIPELINES; i++) {
        struct weir_arr_coc_params params = rig_params(&bench->rig, &sizes, SIDE * SIDE);
        params.slot_count = forms[i].slots;
        params.graphs = forms[i].graphs;
        if (weir_arr_coc_create(&params, &bench->pipelines[i]) != WEIR_OK)
            return peer_fail("%s", weir_last_error_text());
        bench->resident[i] = make_resident(&bench->image, false);
        bench->resident[i].rig.frame.user = &bench->resident[i];
    }
    bench->copied = make_resident(&bench->image, true);
    bench->copied.rig.frame.user = &bench->copied;
    return check(bench);
}

// One frame is used for all: it never changes.
static bool time_frames(struct bench *bench, int pipeline_index, struct resident *resident,
                        const char *name)
{
    weir_pipeline *pipeline = weir_arr_coc_pipeline(bench->pipelines[pipeline_index]);
    struct weir_pipeline_statistics before, after;
    weir_pipeline_get_statistics(pipeline, &before);
    const double began = peer_now_ms();
    for (uint64_t i = 0; i < bench->frames; i++)
        if (weir_pipeline_submit(pipeline, &resident->rig.frame) != WEIR_OK)
            return peer_fail("%s", weir_last_error_text());
    if (weir_pipeline_drain(pipeline, WEIR_FOREVER) != WEIR_OK)
        return peer_fail("%s", weir_last_error_text());
    const double ms = peer_now_ms() - began;
    weir_pipeline_get_statistics(pipeline, &after);
    if (after.succeeded - before.succeeded != bench->frames)
        return peer_fail("%" PRIu64 " of %" PRIu64 " frames succeeded",
                         after.succeeded - before.succeeded, bench->frames);
    peer_value(name, ms / (double)bench->frames);
    return true;
}

static bool round_bench(void *user)
{
    struct bench *bench = user;
    bool fine = true;
    for (int i = 0; fine && i < PIPELINES; i++)
        fine = time_frames(bench, i, &bench->resident[i], forms[i].name);
    return fine && time_frames(bench, 1, &bench->copied, "frame_3_slots_copied");
}

static void close_bench(void *user)
{
    struct bench *bench = user;
    for (int i = 0; i < PIPELINES; i++)
        weir_arr_coc_destroy(&bench->pipelines[i]);
    rig_image_finish(&bench->image);
    rig_close(&bench->rig);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.frames = 500, .dump = ""};
    const struct peer_option options[] = {
        {.name = "frames",
         .help = "frames of a figure",
         .value = &bench.frames,
         .least = 1,
         .most = 1000000},
        {.name = "dump", .help = "folder to write a frame and its results to", .text = &bench.dump},
    };
    const struct peer peer = {
        .name = "weir_arr_coc",
        .about = "Streams frames through the ARR-COC pipeline.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .open = open_bench,
        .round = round_bench,
        .close = close_bench,
    };
    return peer_main(&peer, &bench, argc, argv);
}
