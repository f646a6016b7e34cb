// Which of several things is not like the others.
//
// Threads: safe.
#ifndef WEIR_BASE_ODD_H
#define WEIR_BASE_ODD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ODD_NONE UINT32_MAX

// Returns the first of `count` things that differs from what more than half of them have in common,
// and stores the first that has it in `*out_common`. WEIR_ODD_NONE: none differs, or there is no such
// half. One that is not known is not even the same as itself: it counts, and is never returned.
uint32_t weir_odd_one(const void *things, uint32_t count,
                      bool (*same)(const void *things, uint32_t a, uint32_t b),
                      uint32_t *out_common);

#ifdef __cplusplus
}
#endif

#endif
