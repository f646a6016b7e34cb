// A program that opens libweir.so itself, and closes it while a thread that had a queue of its
// own still runs.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include <weir/weir.h>

#include "tests/support/test.h"

struct world {
    void *library;
    weir_device *device;
    weir_status status;
    sem_t has_queue;
    sem_t may_end;
};

static void *have_queue(void *argument)
{
    struct world *world = argument;
    weir_queue *queue;
    weir_status (*thread_queue)(weir_device *, weir_queue **, const char *, int);
    *(void **)&thread_queue = dlsym(world->library, "weir_thread_queue_at");
    world->status = thread_queue(world->device, &queue, NULL, 0);
    sem_post(&world->has_queue);
    while (sem_wait(&world->may_end) != 0)
        ;
    return NULL;
}

WEIR_TEST(Dlclose, AThreadWithAQueueEndsLater)
{
    struct world world = {.library = NULL};
    weir_status (*open)(const struct weir_open_params *, weir_runtime **, const char *, int);
    weir_status (*close)(weir_runtime **, const char *, int);
    weir_status (*device_open)(weir_runtime *, const struct weir_device_params *, weir_device **,
                               const char *, int);
    weir_status (*device_close)(weir_device **, const char *, int);
    weir_runtime *runtime;
    pthread_t thread;

    world.library = dlopen(weir_test_runfile("dist/libweir.so"), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NOT_NULL(world.library);
    *(void **)&open = dlsym(world.library, "weir_open_at");
    *(void **)&close = dlsym(world.library, "weir_close_at");
    *(void **)&device_open = dlsym(world.library, "weir_device_open_at");
    *(void **)&device_close = dlsym(world.library, "weir_device_close_at");
    ASSERT_INT_EQ(open(WEIR_PARAMS(weir_open, .config_path = "", .backend = "null",
                                   .module_path = weir_test_runfile("backends/null")),
                       &runtime, NULL, 0),
                  WEIR_OK);
    ASSERT_INT_EQ(device_open(runtime, NULL, &world.device, NULL, 0), WEIR_OK);
    ASSERT_INT_EQ(sem_init(&world.has_queue, 0, 0), 0);
    ASSERT_INT_EQ(sem_init(&world.may_end, 0, 0), 0);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, have_queue, &world), 0);
    while (sem_wait(&world.has_queue) != 0)
        ;
    EXPECT_INT_EQ(world.status, WEIR_OK);
    EXPECT_INT_EQ(device_close(&world.device, NULL, 0), WEIR_OK);
    EXPECT_INT_EQ(close(&runtime, NULL, 0), WEIR_OK);
    EXPECT_INT_EQ(dlclose(world.library), 0);
    sem_post(&world.may_end);
    EXPECT_INT_EQ(pthread_join(thread, NULL), 0);
}
