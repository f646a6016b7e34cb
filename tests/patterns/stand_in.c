// Shared by the stand-ins for Weir, fake_weir.c and order_log.c: a thread's error, a few
// names, and regions, of which one without a number is kept.
#include <stdio.h>

#include <weir/check.h>
#include <weir/weir.h>

#include "tests/patterns/order_log.h"

static _Thread_local struct weir_error last_error;
static char unnumbered_region[64];

const struct weir_error *weir_last_error(void)
{
    return &last_error;
}

weir_status weir_error_set_sized(const struct weir_error *error, size_t size)
{
    (void)size;
    static const struct weir_error none;
    last_error = error ? *error : none;
    return last_error.status;
}

const char *weir_status_name(weir_status status)
{
    return status == WEIR_ERROR_IO ? "WEIR_ERROR_IO" : "another status";
}

const char *weir_status_text(weir_status status)
{
    return status == WEIR_ERROR_IO ? "a file cannot be read or written" : "another text";
}

weir_runtime *weir_device_runtime(const weir_device *asked)
{
    (void)asked;
    return NULL;
}

bool weir_check_is_on(const weir_runtime *runtime)
{
    (void)runtime;
    return false;
}

void weir_check_release(weir_runtime *runtime, const void *key)
{
    (void)runtime;
    (void)key;
}

void weir_check_acquire(weir_runtime *runtime, const void *key)
{
    (void)runtime;
    (void)key;
}

void weir_region_push(weir_runtime *runtime, const char *name, uint64_t number)
{
    (void)runtime;
    if (number == WEIR_NO_NUMBER)
        snprintf(unnumbered_region, sizeof unnumbered_region, "%s", name);
}

const char *order_region(void)
{
    return unnumbered_region;
}

void weir_region_pop(weir_runtime *runtime)
{
    (void)runtime;
}
