// Objects for tests: pointers to them that are destroyed at the end of their scope, the last one first. They are
// declared with a value, so that a test which ends early destroys nothing that was not made.
//
//     own_buffer buffer = NULL;
//     ASSERT_OK(weir_buffer_create(device, &params, &buffer));
//
// A test that uses them is linked with //core.
#ifndef WEIR_TESTS_SUPPORT_OWN_H
#define WEIR_TESTS_SUPPORT_OWN_H

#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "tests/support/test.h"

// A variable that `destroy` gets the address of when its scope ends.
#define OWN(destroy) __attribute__((cleanup(destroy)))

#define OWN_OBJECT(type)                         \
    static inline void own_end_##type(type **at) \
    {                                            \
        type##_destroy_at(at, NULL, 0);          \
    }
OWN_OBJECT(weir_queue)
OWN_OBJECT(weir_buffer)
OWN_OBJECT(weir_kernel)
OWN_OBJECT(weir_graph)
OWN_OBJECT(weir_pool)
OWN_OBJECT(weir_program)
OWN_OBJECT(weir_comm)
#undef OWN_OBJECT

// Up to 16 objects of one kind: own_queues queues = {NULL}.
#define OWN_LIST(type)                                                \
    typedef type *own_##type##_list[16];                              \
    static inline void own_end_##type##_list(own_##type##_list *list) \
    {                                                                 \
        for (int i = 0; i < 16; i++)                                  \
            type##_destroy_at(&(*list)[i], NULL, 0);                  \
    }
OWN_LIST(weir_queue)
OWN_LIST(weir_buffer)
#undef OWN_LIST
#define own_queues OWN(own_end_weir_queue_list) own_weir_queue_list
#define own_buffers OWN(own_end_weir_buffer_list) own_weir_buffer_list

#define own_queue OWN(own_end_weir_queue) weir_queue *
#define own_buffer OWN(own_end_weir_buffer) weir_buffer *
#define own_kernel OWN(own_end_weir_kernel) weir_kernel *
#define own_graph OWN(own_end_weir_graph) weir_graph *
#define own_pool OWN(own_end_weir_pool) weir_pool *
#define own_program OWN(own_end_weir_program) weir_program *
#define own_comm OWN(own_end_weir_comm) weir_comm *
#define own_load_report OWN(weir_load_report_destroy) weir_load_report *

// A device, and a runtime, whose closing must succeed.
static inline void own_end_device(weir_device **at)
{
    EXPECT_OK(weir_device_close(at));
}
#define own_device OWN(own_end_device) weir_device *

static inline void own_end_runtime(weir_runtime **at)
{
    EXPECT_OK(weir_close(at));
}
#define own_runtime OWN(own_end_runtime) weir_runtime *

// Memory of malloc().
static inline void own_end_memory(void *at)
{
    void *memory;
    memcpy(&memory, at, sizeof memory);
    free(memory);
}
#define OWN_MEMORY OWN(own_end_memory)

// A queue and a buffer of the device, which the caller destroys; NULL fails the test.
static inline weir_queue *test_queue(weir_device *device, const char *label)
{
    weir_queue *queue = NULL;
    EXPECT_OK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = label), &queue));
    return queue;
}

static inline weir_buffer *test_buffer(weir_device *device, const char *label, size_t size,
                                       weir_placement placement)
{
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_create(device,
                                 WEIR_PARAMS(weir_buffer, .label = label, .size = size,
                                             .placement = placement),
                                 &buffer));
    return buffer;
}

// A record of the queue.
static inline struct weir_event test_record(weir_queue *queue)
{
    struct weir_event event;
    EXPECT_OK(weir_queue_record(queue, &event));
    return event;
}

// A host call that does nothing, and a native call that submits no work.
static inline weir_status own_host_nothing(void *user)
{
    return WEIR_OK;
}

static inline weir_status own_native_nothing(const struct weir_native_queue *native, void *user)
{
    return WEIR_OK;
}

#endif
