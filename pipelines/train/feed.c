// What a run reads: augmentation, and batches on the device, in order. The host's form of augmentation is written apart
// from the kernel: each is the check of the other.
#include "pipelines/train/feed.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/augment/augment.h"
#include "patterns/fail.h"
#include "patterns/loader.h"
#include "pipelines/train/augment.h"

struct weir_train_centre {
    size_t count;
    bool whole;
    weir_kernel *kernel;
    weir_buffer *numbers;
};

weir_status weir_train_centre_create(weir_device *device, size_t count, bool whole,
                                     weir_train_centre **out_centre)
{
    weir_train_centre *centre = calloc(1, sizeof *centre);
    *out_centre = NULL;
    if (!centre)
        return weir__pattern_no_memory("batches", "batches");
    centre->count = count;
    centre->whole = whole;
    weir_status status = weir_kernel_load(device, &augment_kernels, "centre", &centre->kernel);
    if (status == WEIR_OK)
        status = weir_buffer_create(device,
                                    WEIR_PARAMS(weir_buffer, .label = "numbers",
                                                .size = count * sizeof(float)),
                                    &centre->numbers);
    if (status == WEIR_OK)
        *out_centre = centre;
    else
        weir_train_centre_destroy(&centre);
    return status;
}

void weir_train_centre_destroy(weir_train_centre **centre)
{
    if (!centre || !*centre)
        return;
    weir_buffer_destroy(&(*centre)->numbers);
    weir_kernel_destroy(&(*centre)->kernel);
    free(*centre);
    *centre = NULL;
}

weir_status weir_train_centre_submit(weir_train_centre *centre, weir_queue *queue,
                                     weir_buffer *images, weir_buffer **out_numbers)
{
    *out_numbers = centre->numbers;
    return weir_queue_launch_count(queue, centre->kernel, centre->count,
                                   weir_in(images, 0, centre->count),
                                   weir_whole_out(centre->numbers), (uint64_t)centre->count,
                                   (uint32_t)centre->whole);
}

enum {
    BLOCK = 64,
    DRAW_TOP = 0,
    DRAW_LEFT,
    DRAW_MIRRORED,
    DRAW_GAIN,
    DRAW_BIAS
};

struct weir_train_augment {
    struct weir_train_augment_params params;
    weir_kernel *kernel;
};

static weir_status check_colours(const struct weir_train_augment_params *params)
{
    if (!(params->contrast >= 0 && params->contrast <= 1))
        return weir__pattern_refuse("augment", NULL, "the contrast is %g; it is from 0 to 1",
                                    (double)params->contrast);
    if (!(params->brightness >= 0 && isfinite(params->brightness)))
        return weir__pattern_refuse("augment", NULL, "the brightness is %g; it is 0 or more",
                                    (double)params->brightness);
    for (uint32_t c = 0; c < params->channels; c++)
        if (!isfinite(params->mean[c]) ||
            !(params->deviation[c] > 0 && isfinite(params->deviation[c])))
            return weir__pattern_refuse(
                "augment", NULL,
                "channel %u has the mean %g and the deviation %g; the mean is finite, the "
                "deviation above 0",
                c, (double)params->mean[c], (double)params->deviation[c]);
    return WEIR_OK;
}

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
    return check_colours(params);
}

weir_status weir_train_augment_create(weir_device *device,
                                      const struct weir_train_augment_params *params,
                                      weir_train_augment **out_augment)
{
    *out_augment = NULL;
    TRY(weir_train_augment_check(params));
    weir_train_augment *augment = calloc(1, sizeof *augment);
    if (!augment)
        return weir__pattern_no_memory("augment", "an augmentation");
    augment->params = *params;
    const weir_status status =
        weir_kernel_load(device, &augment_kernels, "augment", &augment->kernel);
    if (status == WEIR_OK)
        *out_augment = augment;
    else
        weir_train_augment_destroy(&augment);
    return status;
}

void weir_train_augment_destroy(weir_train_augment **augment)
{
    if (!augment || !*augment)
        return;
    weir_kernel_destroy(&(*augment)->kernel);
    free(*augment);
    *augment = NULL;
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

weir_status weir_train_augment_submit(weir_train_augment *augment, weir_queue *queue,
                                      weir_buffer *images, weir_buffer *out, uint32_t count,
                                      uint64_t first)
{
    const struct weir_train_augment_params *p = &augment->params;
    const size_t out_bytes = weir_train_augment_out_bytes(p, count);
    const size_t blocks = (out_bytes / sizeof(float) + BLOCK - 1) / BLOCK;
    return weir_queue_launch(
        queue, augment->kernel, weir_dim((uint32_t)blocks, 1, 1), weir_dim(BLOCK, 1, 1),
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

static struct drawn draw_all(const struct weir_train_augment_params *p, uint64_t index)
{
    return (struct drawn){
        .top = draw(p->seed, index, DRAW_TOP) % (p->height - p->out_height + 1),
        .left = draw(p->seed, index, DRAW_LEFT) % (p->width - p->out_width + 1),
        .mirrored = draw(p->seed, index, DRAW_MIRRORED) & 1,
        .gain = between(draw(p->seed, index, DRAW_GAIN), 1 - p->contrast, 1 + p->contrast),
        .bias = between(draw(p->seed, index, DRAW_BIAS), -p->brightness, p->brightness),
    };
}

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

void weir_train_augment_on_host(const struct weir_train_augment_params *params,
                                const unsigned char *images, float *out, uint32_t count,
                                uint64_t first)
{
    const size_t size = (size_t)params->out_width * params->out_height * params->channels;
    for (uint32_t i = 0; i < count; i++) {
        const struct drawn drawn = draw_all(params, first + i);
        cut(params, images + weir_train_augment_in_bytes(params, i), &drawn, out + i * size);
    }
}

// A batch is loaded as its source makes it: the inputs, then the labels. AUGMENT and ENCDEC load bytes,
// and prepare them, from there into one of two slots.

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
    unsigned char *images; // AUGMENT on the host: a batch
    weir_train_augment *augment;
    weir_train_centre *centre; // ENCDEC
    weir_loader *loader;
    weir_queue *ahead;      // that prepares; with `serial` the one that trains
    struct weir_batch held; // of the loader, where nothing is prepared
    weir_buffer *loaded;    // `serial`: on the device
    unsigned char *host;    // and on the host
    struct slot slots[SLOTS];
};

static uint64_t train_position(const struct train_order *order, uint64_t step, uint32_t pass)
{
    return ((step * order->passes + pass) * order->ranks + order->rank) * order->batch;
}

static bool is_augmented(const train_feed *feed)
{
    return feed->params.run->program == WEIR_TRAIN_AUGMENT;
}

// On a queue, and not as it is loaded.
static bool is_prepared(const train_feed *feed)
{
    return feed->augment || feed->params.encoder;
}

// Loading.

static void load_images(const train_feed *feed, uint64_t position, unsigned char *images,
                        uint32_t *labels)
{
    const weir_train_data *data = feed->params.run->data;
    for (uint32_t i = 0; i < feed->params.order.batch; i++) {
        const uint64_t index =
            weir_train_data_shuffled(data, feed->params.order.seed, position + i);
        labels[i] = weir_train_data_bytes(data, index, images + i * feed->image_bytes);
    }
}

static void load(const train_feed *feed, uint64_t pass, unsigned char *memory)
{
    const struct train_feed_params *p = &feed->params;
    const uint64_t position = train_position(&p->order, p->first + pass / p->order.passes,
                                             (uint32_t)(pass % p->order.passes));
    uint32_t *labels = (uint32_t *)(void *)(memory + feed->loaded_inputs);
    if (!is_augmented(feed) && !p->encoder) {
        weir_train_data_fill(p->run->data, p->order.seed, position, p->order.batch,
                             p->run->exact ? WEIR_TRAIN_INTEGERS : WEIR_TRAIN_CENTRED,
                             (float *)(void *)memory, labels);
        return;
    }
    load_images(feed, position, feed->images ? feed->images : memory, labels);
    if (feed->images)
        weir_train_augment_on_host(p->augment, feed->images, (float *)(void *)memory,
                                   p->order.batch, position);
}

static size_t loaded_bytes(const train_feed *feed)
{
    return feed->loaded_inputs + feed->params.order.batch * sizeof(uint32_t);
}

static weir_status load_for_loader(void *user, uint64_t index, void *memory, size_t capacity,
                                   size_t *out_size)
{
    const train_feed *feed = user;
    (void)capacity;
    *out_size = index < feed->pass_count ? loaded_bytes(feed) : 0;
    if (index < feed->pass_count)
        load(feed, index, memory);
    return WEIR_OK;
}

// The next batch as it is loaded, for `queue`.
static weir_status take_loaded(train_feed *feed, weir_queue *queue, uint64_t pass,
                               struct weir_batch *out_batch)
{
    if (feed->loader)
        return weir_loader_next(feed->loader, queue, out_batch);
    load(feed, pass, feed->host);
    *out_batch = (struct weir_batch){.buffer = feed->loaded};
    return weir_upload(queue, feed->loaded, 0, feed->host, loaded_bytes(feed));
}

static weir_status give_loaded(train_feed *feed, weir_queue *queue, struct weir_batch *batch)
{
    return feed->loader ? weir_loader_release(feed->loader, batch, queue) : WEIR_OK;
}

// Preparing.

static weir_status encode(train_feed *feed, const struct slot *slot, weir_buffer *loaded)
{
    const struct weir_train_view to = {slot->memory, 0};
    weir_buffer *numbers;
    TRY(weir_train_centre_submit(feed->centre, feed->ahead, loaded, &numbers));
    return weir_train_model_encode(feed->params.encoder, feed->ahead,
                                   (struct weir_train_view){numbers, 0}, to);
}

static weir_status fill_slot(train_feed *feed, uint64_t pass, const struct slot *slot,
                             weir_buffer *loaded)
{
    const struct train_feed_params *p = &feed->params;
    const uint64_t position = train_position(&p->order, p->first + pass / p->order.passes,
                                             (uint32_t)(pass % p->order.passes));
    TRY(feed->augment ? weir_train_augment_submit(feed->augment, feed->ahead, loaded, slot->memory,
                                                  p->order.batch, position)
                      : encode(feed, slot, loaded));
    return weir_queue_copy(feed->ahead, slot->memory, feed->slot_inputs, loaded,
                           feed->loaded_inputs, p->order.batch * sizeof(uint32_t));
}

static weir_status prepare(train_feed *feed)
{
    const uint64_t pass = feed->prepared++;
    struct slot *slot = &feed->slots[pass % SLOTS];
    struct weir_batch loaded;
    TRY(take_loaded(feed, feed->ahead, pass, &loaded));
    if (slot->freed.queue)
        TRY(weir_queue_wait(feed->ahead, slot->freed));
    TRY(fill_slot(feed, pass, slot, loaded.buffer));
    TRY(give_loaded(feed, feed->ahead, &loaded));
    return weir_queue_record(feed->ahead, &slot->ready);
}

// The next pass is prepared before this one is submitted, so that both are in flight.
static weir_status next_prepared(train_feed *feed, weir_buffer **out_memory)
{
    const struct slot *slot = &feed->slots[feed->taken % SLOTS];
    if (feed->prepared == feed->taken)
        TRY(prepare(feed));
    *out_memory = slot->memory;
    TRY(weir_queue_wait(feed->params.queue, slot->ready));
    if (feed->loader && feed->prepared < feed->pass_count)
        TRY(prepare(feed));
    return WEIR_OK;
}

weir_status train_feed_next(train_feed *feed, struct weir_train_batch *out_batch)
{
    weir_buffer *memory = NULL;
    if (is_prepared(feed)) {
        TRY(next_prepared(feed, &memory));
    } else {
        TRY(take_loaded(feed, feed->params.queue, feed->taken, &feed->held));
        memory = feed->held.buffer;
    }
    const size_t labels = is_prepared(feed) ? feed->slot_inputs : feed->loaded_inputs;
    *out_batch = (struct weir_train_batch){.inputs = {memory, 0}, .labels = {memory, labels}};
    return WEIR_OK;
}

weir_status train_feed_release(train_feed *feed)
{
    struct slot *slot = &feed->slots[feed->taken++ % SLOTS];
    if (is_prepared(feed))
        return weir_queue_record(feed->params.queue, &slot->freed);
    return give_loaded(feed, feed->params.queue, &feed->held);
}

void train_feed_get_statistics(const train_feed *feed, struct weir_loader_statistics *out)
{
    weir_loader_get_statistics(feed->loader, out);
}

// Creating.

static size_t round_up(size_t size, size_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

static void measure(train_feed *feed, size_t model_inputs)
{
    const struct train_feed_params *p = &feed->params;
    const struct weir_train_shape shape = weir_train_data_shape(p->run->data);
    const weir_device *device = weir_comm_device(p->run->comm);
    const size_t alignment = weir_device_limits(device)->argument_alignment_bytes;
    const size_t batch = p->order.batch;
    feed->image_bytes = (size_t)shape.height * shape.width * shape.channels;
    feed->slot_inputs = round_up(batch * model_inputs * sizeof(float), alignment);
    feed->loaded_inputs = round_up(batch * feed->image_bytes * sizeof(float), alignment);
    if (is_augmented(feed) && p->run->augment_on_host)
        feed->loaded_inputs = feed->slot_inputs;
    else if (is_augmented(feed) || p->encoder)
        feed->loaded_inputs = round_up(batch * feed->image_bytes, alignment);
    feed->pass_count = (p->run->steps - p->first) * p->order.passes;
}

static weir_status create_memory(weir_device *device, size_t size, weir_buffer **out)
{
    return weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .label = "batch", .size = size),
                              out);
}

static weir_status create_slots(train_feed *feed, weir_device *device)
{
    const size_t size = feed->slot_inputs + feed->params.order.batch * sizeof(uint32_t);
    for (int i = 0; i < SLOTS && is_prepared(feed); i++)
        TRY(create_memory(device, size, &feed->slots[i].memory));
    return WEIR_OK;
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
    if (is_prepared(feed)) {
        feed->ahead = NULL;
        TRY(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "prepare"), &feed->ahead));
    }
    const struct weir_loader_params loader = {.struct_size = sizeof loader,
                                              .device = device,
                                              .label = "batches",
                                              .batch_bytes = loaded_bytes(feed),
                                              .source = load_for_loader,
                                              .user = feed};
    return weir_loader_create(&loader, &feed->loader);
}

static weir_status create_conversion(train_feed *feed, weir_device *device)
{
    if (feed->params.encoder)
        return weir_train_centre_create(device, feed->params.order.batch * feed->image_bytes,
                                        feed->params.run->exact, &feed->centre);
    if (!is_augmented(feed))
        return WEIR_OK;
    if (!feed->params.run->augment_on_host)
        return weir_train_augment_create(device, feed->params.augment, &feed->augment);
    feed->images = malloc(feed->params.order.batch * feed->image_bytes);
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
    feed->params = *params;
    measure(feed, model_inputs);
    TRY(create_conversion(feed, device));
    TRY(create_slots(feed, device));
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
    WEIR_IGNORE(weir_loader_destroy(&f->loader));
    if (f->ahead != f->params.queue)
        weir_queue_destroy(&f->ahead);
    for (int i = 0; i < SLOTS; i++)
        weir_buffer_destroy(&f->slots[i].memory);
    weir_buffer_destroy(&f->loaded);
    weir_train_centre_destroy(&f->centre);
    weir_train_augment_destroy(&f->augment);
    free(f->host);
    free(f->images);
    free(f);
    *feed = NULL;
}
