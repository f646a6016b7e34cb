// How the files of this folder report what they refuse: as the thread's error detail.
#ifndef WEIR_PIPELINES_TRAIN_FAIL_H
#define WEIR_PIPELINES_TRAIN_FAIL_H

#include <weir/status.h>

// Sets the thread's error detail, for the object with that label, and returns `status`. `label` and
// `remedy` may be NULL.
weir_status train_fail(const char *label, weir_status status, const char *remedy,
                       const char *format, ...) WEIR_PRINTF(4, 5);

weir_status train_fail_memory(const char *label);

// Reads params as <base/sized.h> says, with its refusal as the detail.
weir_status train_params(const char *function, const char *type, const void *given, void *known,
                         size_t size);

#endif
