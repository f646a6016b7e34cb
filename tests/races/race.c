// The programs' list, and what they share.
#include "tests/races/race.h"

#include "tests/races/races.h"

static struct race_pair *first_pair;
static const char *const kernel_names[RACE_KERNELS] = {"add", "sum", "bump", "set"};

static bool comes_before(const struct race_pair *a, const struct race_pair *b)
{
    const int order = strcmp(a->file, b->file);
    return order < 0 || (order == 0 && a->line < b->line);
}

void race_add(struct race_pair *pair)
{
    struct race_pair **at = &first_pair;
    while (*at && comes_before(*at, pair))
        at = &(*at)->next;
    pair->next = *at;
    *at = pair;
}

struct race_pair *race_first(void)
{
    return first_pair;
}

void must(weir_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", weir_last_error_text());
    exit(1);
}

// The objects of a run are kept in fixed lists.
static size_t next_object(size_t *count)
{
    if (*count < RACE_OBJECTS_MAX)
        return (*count)++;
    fprintf(stderr, "a program has more than %d objects of a kind\n", RACE_OBJECTS_MAX);
    exit(1);
}

weir_queue *race_queue(struct race *race, const char *label)
{
    weir_queue **queue = &race->queues[next_object(&race->queue_count)];
    must(weir_queue_create(race->device, WEIR_PARAMS(weir_queue, .label = label), queue));
    return *queue;
}

weir_buffer *race_blank(struct race *race, const char *label, size_t size, weir_placement placement)
{
    weir_buffer **buffer = &race->buffers[next_object(&race->buffer_count)];
    must(weir_buffer_create(race->device,
                            WEIR_PARAMS(weir_buffer, .label = label, .size = size,
                                        .placement = placement),
                            buffer));
    return *buffer;
}

weir_buffer *race_buffer(struct race *race, const char *label, size_t size, int value)
{
    weir_buffer *buffer = race_blank(race, label, size, WEIR_PLACE_DEVICE);
    unsigned char *bytes = malloc(size);
    if (!bytes)
        exit(1);
    memset(bytes, value, size);
    must(weir_upload(race->queues[0], buffer, 0, bytes, size));
    free(bytes);
    return buffer;
}

weir_buffer *race_pinned(struct race *race, const char *label, size_t size, int value)
{
    weir_buffer *buffer = race_blank(race, label, size, WEIR_PLACE_HOST);
    void *bytes;
    must(weir_host_begin(buffer, 0, size, WEIR_ACCESS_WRITE, &bytes));
    memset(bytes, value, size);
    must(weir_host_end(buffer, 0, size, WEIR_ACCESS_WRITE));
    return buffer;
}

// Before the program begins: it would take its time between two operations.
static void create_kernels(struct race *race)
{
    must(weir_program_create(race->device, WEIR_PARAMS(weir_program, .bundle = &races_kernels),
                             &race->program));
    for (size_t i = 0; i < RACE_KERNELS; i++)
        must(weir_kernel_create(race->program, kernel_names[i], &race->kernels[i]));
}

weir_kernel *race_kernel(const struct race *race, const char *name)
{
    for (size_t i = 0; i < RACE_KERNELS; i++)
        if (strcmp(kernel_names[i], name) == 0)
            return race->kernels[i];
    return NULL;
}

void after(weir_queue *queue, weir_queue *other)
{
    struct weir_event end;
    must(weir_queue_record(other, &end));
    must(weir_queue_wait(queue, end));
}

void mend(const struct race *race, weir_queue *queue, weir_queue *other)
{
    if (race->mended)
        after(queue, other);
}

bool all_bytes(const void *memory, size_t size, int value)
{
    const unsigned char *bytes = memory;
    size_t right = 0;
    while (right < size && bytes[right] == (unsigned char)value)
        right++;
    return right == size;
}

static void sync_all(struct race *race)
{
    for (size_t i = 0; i < race->queue_count; i++)
        if (race->queues[i])
            must(weir_queue_sync(race->queues[i], WEIR_FOREVER));
}

void race_expect(struct race *race, weir_buffer *buffer, size_t offset, size_t size, int value)
{
    unsigned char *bytes = malloc(size);
    if (!bytes)
        exit(1);
    sync_all(race);
    must(weir_download(race->queues[0], bytes, buffer, offset, size));
    race_saw(race, all_bytes(bytes, size, value));
    free(bytes);
}

void race_saw(struct race *race, bool right)
{
    race->wrong = race->wrong || !right;
}

void race_look(struct race *race, weir_buffer *buffer, size_t offset, size_t size, int value,
               const char *file, int line)
{
    void *bytes;
    must(weir_host_begin_at(buffer, offset, size, WEIR_ACCESS_READ, &bytes, file, line));
    race_saw(race, all_bytes(bytes, size, value));
    must(weir_host_end_at(buffer, offset, size, WEIR_ACCESS_READ, file, line));
}

void race_put(weir_buffer *buffer, size_t offset, size_t size, int value, const char *file,
              int line)
{
    void *bytes;
    must(weir_host_begin_at(buffer, offset, size, WEIR_ACCESS_WRITE, &bytes, file, line));
    memset(bytes, value, size);
    must(weir_host_end_at(buffer, offset, size, WEIR_ACCESS_WRITE, file, line));
}

static void destroy_objects(struct race *race)
{
    for (size_t i = 0; i < race->buffer_count; i++)
        weir_buffer_destroy(&race->buffers[i]);
    for (size_t i = 0; i < RACE_KERNELS; i++)
        weir_kernel_destroy(&race->kernels[i]);
    for (size_t i = 0; i < race->queue_count; i++)
        weir_queue_destroy(&race->queues[i]);
    weir_program_destroy(&race->program);
}

bool race_run(const struct race_pair *pair, bool mended, weir_device *device)
{
    struct race race = {.mended = mended,
                        .device = device,
                        .grid = weir_dim(SIZE / 64, 1, 1),
                        .block = weir_dim(64, 1, 1)};
    race_queue(&race, "setup");
    if (pair->kernels)
        create_kernels(&race);
    pair->run(&race);
    sync_all(&race);
    destroy_objects(&race);
    return !race.wrong;
}
