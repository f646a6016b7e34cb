// The services that modules are given.
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/runtime.h"

const struct weir_host weir__host = {
    .struct_size = sizeof(struct weir_host),
    .log = weir__log,
    .error = weir__error_set,
    .allocate = weir__allocate,
    .release = weir__release,
    .count_driver_object = weir__count_driver_object,
};
