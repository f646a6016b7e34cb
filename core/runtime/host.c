// The services of core for modules.
#include "core/queue/delivery.h"
#include "core/runtime/runtime.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/memory.h"

const struct weir_host weir__host = {
    .struct_size = sizeof(struct weir_host),
    .log = weir__log,
    .error = weir__error_take,
    .allocate = weir__allocate,
    .release = weir__release,
    .count_driver_object = weir__count_driver_object,
    .fail = weir__delivery_lose,
};
