// Handles are not unique: a driver gives one of a released object to the next. So an object is forgotten at the program's
// last release, before the driver's, and stays as long as commands hold it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/check.h>

#include "layers/opencl/layer.h"

enum {
    BUCKETS = 1 << 16
};

static struct object *buckets[BUCKETS]; // by handle
static struct object *newest;

static struct object **bucket_of(enum object_kind kind, const void *handle)
{
    const uint64_t bits = ((uint64_t)(uintptr_t)handle >> 4) ^ ((uint64_t)kind << 56);
    return &buckets[(bits * UINT64_C(0x9e3779b97f4a7c15)) >> 48];
}

struct object *object_find(enum object_kind kind, const void *handle)
{
    struct object *object = *bucket_of(kind, handle);
    while (object && (object->handle != handle || object->kind != kind))
        object = object->next;
    return object;
}

static void forget(struct object *object)
{
    struct object **at = bucket_of(object->kind, object->handle);
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    object->handle = NULL;
}

void *object_make(enum object_kind kind, size_t size)
{
    struct object *object = calloc(1, size);
    if (!object) {
        layer_lose(LAYER_LOSS_MEMORY);
        return NULL;
    }
    object->kind = kind;
    object->holds = 1;
    object->older = newest;
    if (newest)
        newest->newer = object;
    newest = object;
    return object;
}

void object_name(struct object *object, const void *handle)
{
    // What had the handle is gone, though its release was not seen.
    struct object *old = object_find(object->kind, handle);
    if (old) {
        forget(old);
        object_drop(old);
    }
    struct object **bucket = bucket_of(object->kind, handle);
    object->handle = handle;
    object->references = 1;
    object->holds++;
    object->next = *bucket;
    *bucket = object;
}

void *object_add(enum object_kind kind, const void *handle, size_t size)
{
    struct object *object = object_make(kind, size);
    if (!object)
        return NULL;
    object_name(object, handle);
    object_drop(object);
    return object;
}

void object_release(enum object_kind kind, const void *handle)
{
    struct object *object = object_find(kind, handle);
    if (!object || --object->references > 0)
        return;
    forget(object);
    object_drop(object);
}

void object_hold(struct object *object)
{
    object->holds++;
}

// Queues. Weir's queues of released ones are kept for a while: that one is destroyed tells plugins that its work has ended.

enum {
    GONE_QUEUES = 128
};

static struct {
    weir_queue *lanes[GONE_QUEUES];
    size_t next;
} gone;

static void retire_lane(weir_queue *lane)
{
    weir_queue **place = &gone.lanes[gone.next++ % GONE_QUEUES];
    weir_queue_destroy(place);
    *place = lane;
}

static void retire_queue(struct queue *queue)
{
    for (uint32_t i = 0; i < queue->lane_count; i++)
        retire_lane(queue->lanes[i]);
    if (queue->control)
        retire_lane(queue->control);
}

static void finish(struct object *object)
{
    switch (object->kind) {
    case OBJECT_QUEUE:
        retire_queue((struct queue *)object);
        break;
    case OBJECT_MEMORY: {
        struct memory *memory = (struct memory *)object;
        while (memory->mappings) {
            struct mapping *next = memory->mappings->next;
            free(memory->mappings);
            memory->mappings = next;
        }
        weir_buffer_destroy(&memory->buffer);
        if (memory->parent)
            object_drop(&memory->parent->object);
        break;
    }
    case OBJECT_KERNEL: {
        struct kernel *kernel = (struct kernel *)object;
        free(kernel->arguments);
        free(kernel->parameters);
        free(kernel->pointers);
        break;
    }
    case OBJECT_PROGRAM: {
        struct program *program = (struct program *)object;
        free(program->kernels);
        free(program->source);
        free(program->options);
        break;
    }
    case OBJECT_EVENT:
    case OBJECT_ADDRESS:
        break;
    }
    *(object->newer ? &object->newer->older : &newest) = object->older;
    if (object->older)
        object->older->newer = object->newer;
    free(object);
}

void objects_finish(void)
{
    for (struct object *object = newest; object; object = object->older) {
        if (object->kind == OBJECT_MEMORY)
            weir_buffer_destroy(&((struct memory *)object)->buffer);
        if (object->kind != OBJECT_QUEUE)
            continue;
        struct queue *queue = (struct queue *)object;
        for (uint32_t i = 0; i < queue->lane_count; i++)
            weir_queue_destroy(&queue->lanes[i]);
        queue->lane_count = 0;
        weir_queue_destroy(&queue->control);
    }
    for (size_t i = 0; i < GONE_QUEUES; i++)
        weir_queue_destroy(&gone.lanes[i]);
}

void object_drop(struct object *object)
{
    if (object && --object->holds == 0)
        finish(object);
}

struct queue *queue_find(cl_command_queue handle)
{
    static uint32_t number;
    struct queue *queue = (struct queue *)object_find(OBJECT_QUEUE, handle);
    if (queue)
        return queue;
    cl_command_queue_properties properties = 0;
    if (layer.driver->clGetCommandQueueInfo(handle, CL_QUEUE_PROPERTIES, sizeof properties,
                                            &properties, NULL) != CL_SUCCESS)
        return NULL;
    queue = object_add(OBJECT_QUEUE, handle, sizeof *queue);
    if (!queue)
        return NULL;
    queue->unordered = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    queue->profiled = properties & CL_QUEUE_PROFILING_ENABLE;
    layer.driver->clGetCommandQueueInfo(handle, CL_QUEUE_DEVICE, sizeof(cl_device_id),
                                        &queue->device, NULL);
    queue->number = number++;
    return queue;
}

// Memory.

struct memory *memory_root(struct memory *memory, size_t *offset)
{
    while (memory->parent) {
        *offset += memory->offset;
        memory = memory->parent;
    }
    return memory;
}

// A note of the host's, which it has waited for: nothing that comes later can run before it.
static void write_all(struct memory *memory, const struct place *place)
{
    const struct weir_note_range range = {.buffer = memory->buffer,
                                          .size = memory->size,
                                          .access = WEIR_ACCESS_WRITE};
    struct weir_event event;
    if (weir_queue_note_at(layer.host,
                           WEIR_PARAMS(weir_note, .name = "the program", .ranges = &range,
                                       .range_count = 1, .work = WEIR_NOTE_ON_HOST),
                           NULL, place->file, place->line) < 0 ||
        weir_queue_record_at(layer.host, &event, place->file, place->line) < 0 ||
        weir_event_sync_at(event, WEIR_FOREVER, place->file, place->line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
}

static void open_buffer(struct memory *memory, const char *label, bool written,
                        const struct place *place)
{
    if (weir_buffer_create_at(layer.device,
                              WEIR_PARAMS(weir_buffer, .label = label, .size = memory->size),
                              &memory->buffer, place->file, place->line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
    else if (written && weir_check_is_on(layer.runtime))
        write_all(memory, place);
}

static size_t ask(cl_mem handle, cl_mem_info name)
{
    size_t size = 0;
    layer.driver->clGetMemObjectInfo(handle, name, sizeof size, &size, NULL);
    return size;
}

static size_t ask_image(cl_mem image, cl_image_info name)
{
    size_t size = 0;
    layer.driver->clGetImageInfo(image, name, sizeof size, &size, NULL);
    return size ? size : 1;
}

// Elements as they would lie without gaps, or as they lie in the buffer that has them.
static void measure_image(struct memory *memory, cl_mem handle, cl_mem_object_type type)
{
    cl_uint levels = 0;
    const size_t array = ask_image(handle, CL_IMAGE_ARRAY_SIZE);
    const size_t element = ask_image(handle, CL_IMAGE_ELEMENT_SIZE);
    const bool lines = type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    const bool planes = type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
    const size_t height = lines ? array : ask_image(handle, CL_IMAGE_HEIGHT);
    const size_t depth = planes ? array : ask_image(handle, CL_IMAGE_DEPTH);
    memory->row = memory->parent && height > 1 ? ask_image(handle, CL_IMAGE_ROW_PITCH)
                                               : element * ask_image(handle, CL_IMAGE_WIDTH);
    memory->slice = memory->row * height;
    memory->size = memory->slice * depth;
    layer.driver->clGetImageInfo(handle, CL_IMAGE_NUM_MIP_LEVELS, sizeof levels, &levels, NULL);
    memory->element = levels > 1 ? 0 : element;
}

static void describe(char *label, size_t size, const char *what, const struct place *place)
{
    static unsigned number;
    const char *slash = place->file ? strrchr(place->file, '/') : NULL;
    const char *file = slash ? slash + 1 : place->file;
    if (file && place->line)
        snprintf(label, size, "%s %u, %.60s:%d", what, number++, file, place->line);
    else
        snprintf(label, size, "%s %u", what, number++);
}

struct memory *memory_add(cl_mem handle, bool written, const struct place *place)
{
    static const struct place nowhere = {NULL, 0};
    char label[128];
    cl_mem parent = NULL;
    cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    const cl_icd_dispatch *cl = layer.driver;
    if (cl->clGetMemObjectInfo(handle, CL_MEM_TYPE, sizeof type, &type, NULL) != CL_SUCCESS)
        return NULL;
    struct memory *memory = object_add(OBJECT_MEMORY, handle, sizeof *memory);
    if (!memory)
        return NULL;
    const bool image = type != CL_MEM_OBJECT_BUFFER;
    cl->clGetMemObjectInfo(handle, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem), &parent, NULL);
    memory->size = ask(handle, CL_MEM_SIZE);
    memory->offset = ask(handle, CL_MEM_OFFSET);
    memory->assumed = !place;
    memory->parent = parent ? memory_find(parent) : NULL;
    if (memory->parent)
        object_hold(&memory->parent->object);
    if (image && place)
        measure_image(memory, handle, type);
    describe(label, sizeof label,
             !place  ? "memory"
             : image ? "image"
                     : "buffer",
             place ? place : &nowhere);
    if (!memory->parent && memory->size > 0)
        open_buffer(memory, label, written, place ? place : &nowhere);
    return memory;
}

struct memory *memory_find(cl_mem handle)
{
    struct memory *memory = (struct memory *)object_find(OBJECT_MEMORY, handle);
    return memory || !handle ? memory : memory_add(handle, true, NULL);
}

struct memory *argument_memory(const struct argument *argument)
{
    return argument->size == sizeof(cl_mem) && argument->bits
               ? (struct memory *)object_find(OBJECT_MEMORY,
                                              (const void *)(uintptr_t)argument->bits)
               : NULL;
}

// Shared virtual memory, in ascending order. Its handle is its address.

static struct memory **areas;
static size_t area_count;
static size_t area_room;

// The index of the first area that begins after the address.
static size_t area_after(const void *address)
{
    size_t low = 0;
    size_t high = area_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)areas[middle]->object.handle <= (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct memory *memory_at(const void *address, size_t *out_offset)
{
    const size_t after = area_after(address);
    if (after == 0)
        return NULL;
    struct memory *memory = areas[after - 1];
    *out_offset = (size_t)((uintptr_t)address - (uintptr_t)memory->object.handle);
    return *out_offset < memory->size ? memory : NULL;
}

void svm_add(const void *address, size_t size, const struct place *place)
{
    char label[64];
    if (area_count == area_room) {
        const size_t room = area_room ? 2 * area_room : 64;
        struct memory **more = realloc(areas, room * sizeof(struct memory *));
        if (!more) {
            layer_lose(LAYER_LOSS_MEMORY);
            return;
        }
        areas = more;
        area_room = room;
    }
    svm_remove(address);
    struct memory *memory = object_add(OBJECT_MEMORY, address, sizeof *memory);
    if (!memory)
        return;
    snprintf(label, sizeof label, "shared memory %p", address);
    memory->size = size;
    open_buffer(memory, label, true, place);
    const size_t at = area_after(address);
    memmove(&areas[at + 1], &areas[at], (area_count - at) * sizeof(struct memory *));
    areas[at] = memory;
    area_count++;
}

void svm_remove(const void *address)
{
    const size_t after = area_after(address);
    if (after == 0 || areas[after - 1]->object.handle != address)
        return;
    area_count--;
    memmove(&areas[after - 1], &areas[after], (area_count + 1 - after) * sizeof(struct memory *));
    object_release(OBJECT_MEMORY, address);
}
