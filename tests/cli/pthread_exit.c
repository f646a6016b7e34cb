// A program whose main thread ends by pthread_exit() after its work, without closing its runtime.
#include <pthread.h>

#include <weir/weir.h>

int main(void)
{
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &queue));
    WEIR_CHECK(weir_queue_sync(queue, WEIR_FOREVER));
    pthread_exit(NULL);
}
