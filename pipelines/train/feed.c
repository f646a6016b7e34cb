// What a run reads: augmentation, and batches on the device, in order. The host's form of augmentation is written apart
// from the kernel: each is the check of the other.
#include "pipelines/train/feed.h"

#include <math.h>

#include "kernels/augment/augment.h"
#include "patterns/shared.h"

enum {
    BLOCK = 64,
    DRAW_TOP = 0,
    DRAW_LEFT,
    DRAW_MIRRORED,
    DRAW_GAIN,
    DRAW_BIAS
};

weir_status weir_train_augment_check(const struct weir_train_augment_params *params)
{
    const uint32_t most = 1 << 14;
    if (params->channels < 1 || params->channels > WEIR_TRAIN_AUGMENT_CHANNELS_MAX)
        return weir__pattern_refuse("augment", NULL, "images of %u channels; 1 to %d are possible",
                                    params->channels, WEIR_TRAIN_AUGMENT_CHANNELS_MAX);
    if (params->width > most || params->height > most)
        return weir__pattern_refuse("augment", NULL,
                                    "images of %u x %u pixels; a side has at most %u",
                                    params->width, params->height, most);
    if (params->out_width < 1 || params->out_width > params->width || params->out_height < 1 ||
        params->out_height > params->height)
        return weir__pattern_refuse("augment", "cut out fewer pixels, or take larger images",
                                    "%u x %u pixels cannot be cut out of images of %u x %u",
                                    params->out_width, params->out_height, params->width,
                                    params->height);
    return WEIR_OK;
}

size_t weir_train_augment_in_bytes(const struct weir_train_augment_params *params, uint32_t count)
{
    return (size_t)params->width * params->height * params->channels * count;
}

size_t weir_train_augment_out_bytes(const struct weir_train_augment_params *params, uint32_t count)
{
    return sizeof(float) * params->out_width * params->out_height * params->channels * count;
}

static float scale_of(const struct weir_train_augment_params *params, uint32_t channel)
{
    return channel < params->channels ? 1 / params->deviation[channel] : 0;
}

static float shift_of(const struct weir_train_augment_params *params, uint32_t channel)
{
    return channel < params->channels ? -params->mean[channel] / params->deviation[channel] : 0;
}

weir_status weir_train_augment_submit(weir_kernel *kernel, weir_queue *queue,
                                      const struct weir_train_augment_params *p,
                                      weir_buffer *images, weir_buffer *out, uint32_t count,
                                      uint64_t first)
{
    const size_t out_bytes = weir_train_augment_out_bytes(p, count);
    const size_t blocks = (out_bytes / sizeof(float) + BLOCK - 1) / BLOCK;
    return weir_queue_launch(
        queue, kernel, weir_dim((uint32_t)blocks, 1, 1), weir_dim(BLOCK, 1, 1),
        weir_in(images, 0, weir_train_augment_in_bytes(p, count)), weir_out(out, 0, out_bytes),
        count, p->width, p->height, p->channels, p->out_width, p->out_height, first, p->seed,
        p->contrast, p->brightness,
        weir_vector(float, scale_of(p, 0), scale_of(p, 1), scale_of(p, 2), scale_of(p, 3)),
        weir_vector(float, shift_of(p, 0), shift_of(p, 1), shift_of(p, 2), shift_of(p, 3)));
}

// On the host.

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x85ebca6bU;
    x ^= x >> 13;
    x *= 0xc2b2ae35U;
    return x ^ x >> 16;
}

static uint32_t draw(uint32_t seed, uint64_t index, uint32_t which)
{
    const uint32_t low = mix(mix(seed + 0x9e3779b9U * which) ^ (uint32_t)index);
    return mix(low + (uint32_t)(index >> 32));
}

static float between(uint32_t bits, float low, float high)
{
    return fmaf((float)(bits >> 8) * 0x1p-24F, high - low, low);
}

struct drawn {
    uint32_t top;
    uint32_t left;
    bool mirrored;
    float gain;
    float bias;
};

static void cut(const struct weir_train_augment_params *p, const unsigned char *image,
                const struct drawn *drawn, float *out)
{
    for (uint32_t row = 0; row < p->out_height; row++) {
        const unsigned char *line = image + (size_t)(drawn->top + row) * p->width * p->channels;
        for (uint32_t column = 0; column < p->out_width; column++) {
            const uint32_t x = drawn->left + (drawn->mirrored ? p->out_width - 1 - column : column);
            for (uint32_t c = 0; c < p->channels; c++) {
                const float part = (float)line[(size_t)x * p->channels + c] * (1 / 255.0F);
                *out++ = fmaf(fmaf(part, drawn->gain, drawn->bias), scale_of(p, c), shift_of(p, c));
            }
        }
    }
}

void weir_train_augment_on_host(const struct weir_train_augment_params *p,
                                const unsigned char *images, float *out, uint32_t count,
                                uint64_t first)
{
    const size_t size = (size_t)p->out_width * p->out_height * p->channels;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t index = first + i;
        const struct drawn drawn = {
            .top = draw(p->seed, index, DRAW_TOP) % (p->height - p->out_height + 1),
            .left = draw(p->seed, index, DRAW_LEFT) % (p->width - p->out_width + 1),
            .mirrored = draw(p->seed, index, DRAW_MIRRORED) & 1,
            .gain = between(draw(p->seed, index, DRAW_GAIN), 1 - p->contrast, 1 + p->contrast),
            .bias = between(draw(p->seed, index, DRAW_BIAS), -p->brightness, p->brightness),
        };
        cut(p, images + weir_train_augment_in_bytes(p, i), &drawn, out + i * size);
    }
}

// A batch is loaded as bytes, then its labels, and prepared from there into one of two slots: the bytes become numbers,
// augmented ones, or what an encoder makes of them. What the host augments is numbers already.

enum {
    SLOTS = 2
};

struct slot {
    weir_buffer *memory; // inputs, then labels, as the model reads them
    struct weir_event ready;
    struct weir_event freed;
};

struct train_feed {
    struct train_feed_params params;
    size_t image_bytes;    // of a sample, as bytes
    size_t loaded_inputs;  // bytes of a batch before its labels
    size_t slot_inputs;    // the same of a slot
    uint64_t pass_count;   // of all steps
    uint64_t prepared;     // passes
    uint64_t taken;        // passes
    unsigned char *images; // a batch that the host augments; NULL: it does not
    weir_kernel *kernel;   // that makes numbers
    weir_buffer *numbers;  // ENCDEC: of which the encoder makes features
    weir_loader *loader;
    weir_queue *ahead;   // that prepares; with `serial` the one that trains
    weir_buffer *loaded; // `serial`: on the device
    unsigned char *host; // and on the host
    struct slot slots[SLOTS];
};

// The first sample of a pass: train.h.
static uint64_t position_of(const train_feed *feed, uint64_t pass)
{
    const struct weir_train_run_params *run = feed->params.run;
    const uint64_t in_all = feed->params.first * run->passes + pass;
    return (in_all * weir_comm_count(run->comm) + weir_comm_rank(run->comm)) * run->batch;
}

// Loading.

static void load(const train_feed *feed, uint64_t pass, unsigned char *memory)
{
    const struct train_feed_params *p = &feed->params;
    const uint64_t position = position_of(feed, pass);
    unsigned char *images = feed->images ? feed->images : memory;
    uint32_t *labels = (uint32_t *)(void *)(memory + feed->loaded_inputs);
    for (uint32_t i = 0; i < p->run->batch; i++) {
        const uint64_t index = weir_train_data_shuffled(p->run->data, p->run->seed, position + i);
        labels[i] = weir_train_data_bytes(p->run->data, index, images + i * feed->image_bytes);
    }
    if (feed->images)
        weir_train_augment_on_host(p->augment, images, (float *)(void *)memory,
                                   (uint32_t)p->run->batch, position);
}

static size_t loaded_bytes(const train_feed *feed)
{
    return feed->loaded_inputs + feed->params.run->batch * sizeof(uint32_t);
}

static weir_status load_for_loader(void *user, uint64_t index, void *memory, size_t capacity,
                                   size_t *out_size)
{
    const train_feed *feed = user;
    *out_size = index < feed->pass_count ? loaded_bytes(feed) : 0;
    if (index < feed->pass_count)
        load(feed, index, memory);
    return WEIR_OK;
}

// Preparing.

static weir_status make_numbers(train_feed *feed, uint64_t pass, weir_buffer *to,
                                weir_buffer *loaded)
{
    const struct train_feed_params *p = &feed->params;
    const size_t count = p->run->batch * feed->image_bytes;
    if (feed->images)
        return weir_queue_copy(feed->ahead, to, 0, loaded, 0, feed->loaded_inputs);
    if (p->run->program == WEIR_TRAIN_AUGMENT)
        return weir_train_augment_submit(feed->kernel, feed->ahead, p->augment, loaded, to,
                                         (uint32_t)p->run->batch, position_of(feed, pass));
    // Numbers about 0, exact in bfloat16: multiples of 1/64 from -2 up to 2, or of 1 from -4 to 3.
    return weir_queue_launch_count(feed->ahead, feed->kernel, count, weir_in(loaded, 0, count),
                                   weir_out(to, 0, count * sizeof(float)), (uint64_t)count,
                                   (uint32_t)p->run->exact);
}

static weir_status fill_slot(train_feed *feed, uint64_t pass, const struct slot *slot,
                             weir_buffer *loaded)
{
    weir_buffer *numbers = feed->numbers;
    TRY(make_numbers(feed, pass, numbers ? numbers : slot->memory, loaded));
    if (numbers)
        TRY(weir_train_model_encode(feed->params.encoder, feed->ahead,
                                    (struct weir_train_view){numbers, 0},
                                    (struct weir_train_view){slot->memory, 0}));
    return weir_queue_copy(feed->ahead, slot->memory, feed->slot_inputs, loaded,
                           feed->loaded_inputs, feed->params.run->batch * sizeof(uint32_t));
}

static weir_status prepare(train_feed *feed)
{
    const uint64_t pass = feed->prepared++;
    struct slot *slot = &feed->slots[pass % SLOTS];
    struct weir_batch loaded = {.buffer = feed->loaded};
    if (feed->loader) {
        TRY(weir_loader_next(feed->loader, feed->ahead, &loaded));
    } else {
        load(feed, pass, feed->host);
        TRY(weir_upload(feed->ahead, feed->loaded, 0, feed->host, loaded_bytes(feed)));
    }
    if (slot->freed.queue)
        TRY(weir_queue_wait(feed->ahead, slot->freed));
    TRY(fill_slot(feed, pass, slot, loaded.buffer));
    if (feed->loader)
        TRY(weir_loader_release(feed->loader, &loaded, feed->ahead));
    return weir_queue_record(feed->ahead, &slot->ready);
}

// The next pass is prepared before this one is submitted, so that both are in flight.
weir_status train_feed_next(train_feed *feed, struct weir_train_batch *out_batch)
{
    const struct slot *slot = &feed->slots[feed->taken % SLOTS];
    if (feed->prepared == feed->taken)
        TRY(prepare(feed));
    *out_batch = (struct weir_train_batch){.inputs = {slot->memory, 0},
                                           .labels = {slot->memory, feed->slot_inputs}};
    TRY(weir_queue_wait(feed->params.queue, slot->ready));
    return feed->loader && feed->prepared < feed->pass_count ? prepare(feed) : WEIR_OK;
}

weir_status train_feed_release(train_feed *feed)
{
    return weir_queue_record(feed->params.queue, &feed->slots[feed->taken++ % SLOTS].freed);
}

// Creating.

static size_t round_up(size_t size, size_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

static bool augments_on_host(const struct train_feed_params *params)
{
    return params->run->program == WEIR_TRAIN_AUGMENT && params->run->augment_on_host;
}

static weir_status create_memory(weir_device *device, size_t size, weir_buffer **out)
{
    return weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .label = "batch", .size = size),
                              out);
}

// What loads, and the queue that prepares.
static weir_status create_loading(train_feed *feed, weir_device *device)
{
    feed->ahead = feed->params.queue;
    if (feed->params.run->serial) {
        feed->host = calloc(1, loaded_bytes(feed));
        return feed->host ? create_memory(device, loaded_bytes(feed), &feed->loaded)
                          : weir__pattern_no_memory("batch", "a batch");
    }
    feed->ahead = NULL;
    TRY(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "prepare"), &feed->ahead));
    const struct weir_loader_params loader = {.struct_size = sizeof loader,
                                              .device = device,
                                              .label = "batches",
                                              .batch_bytes = loaded_bytes(feed),
                                              .source = load_for_loader,
                                              .user = feed};
    return weir_loader_create(&loader, &feed->loader);
}

static weir_status create_preparing(train_feed *feed, weir_device *device)
{
    const struct train_feed_params *p = &feed->params;
    const size_t images = p->run->batch * feed->image_bytes;
    for (int i = 0; i < SLOTS; i++)
        TRY(create_memory(device, feed->slot_inputs + p->run->batch * sizeof(uint32_t),
                          &feed->slots[i].memory));
    if (p->encoder)
        TRY(create_memory(device, images * sizeof(float), &feed->numbers));
    if (!augments_on_host(p))
        return weir_kernel_load(device, &augment_kernels,
                                p->run->program == WEIR_TRAIN_AUGMENT ? "augment" : "centre",
                                &feed->kernel);
    feed->images = malloc(images);
    return feed->images ? WEIR_OK : weir__pattern_no_memory("batch", "a batch");
}

weir_status train_feed_create(const struct train_feed_params *params, size_t model_inputs,
                              train_feed **out_feed)
{
    weir_device *device = weir_comm_device(params->run->comm);
    train_feed *feed = calloc(1, sizeof *feed);
    *out_feed = feed;
    if (!feed)
        return weir__pattern_no_memory("batches", "batches");
    const struct weir_train_run_params *run = params->run;
    const struct weir_train_shape shape = run->data->shape;
    const size_t alignment = weir_device_limits(device)->argument_alignment_bytes;
    feed->params = *params;
    feed->image_bytes = (size_t)shape.height * shape.width * shape.channels;
    feed->slot_inputs = round_up(run->batch * model_inputs * sizeof(float), alignment);
    feed->loaded_inputs = augments_on_host(params)
                              ? feed->slot_inputs
                              : round_up(run->batch * feed->image_bytes, alignment);
    feed->pass_count = (run->steps - params->first) * run->passes;
    TRY(create_preparing(feed, device));
    return create_loading(feed, device);
}

void train_feed_destroy(train_feed **feed)
{
    train_feed *f = *feed;
    if (!f)
        return;
    // An encoder's native calls that are held would run after the run has freed what they read.
    if (f->ahead && f->ahead != f->params.queue)
        WEIR_IGNORE(weir_queue_sync(f->ahead, WEIR_FOREVER));
    if (f->params.figures)
        weir_loader_get_statistics(f->loader, f->params.figures);
    WEIR_IGNORE(weir_loader_destroy(&f->loader));
    if (f->ahead != f->params.queue)
        weir_queue_destroy(&f->ahead);
    for (int i = 0; i < SLOTS; i++)
        weir_buffer_destroy(&f->slots[i].memory);
    weir_buffer_destroy(&f->loaded);
    weir_buffer_destroy(&f->numbers);
    weir_kernel_destroy(&f->kernel);
    free(f->host);
    free(f->images);
    free(f);
    *feed = NULL;
}
