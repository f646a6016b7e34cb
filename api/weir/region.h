// Regions: names for stretches of a program, in the user's own words. What a thread
// submits inside a region belongs to it in traces. Without a plugin that wants them,
// both calls cost a few nanoseconds.
//
//     weir_region_push(runtime, "frame", number);
//     ... submit ...
//     weir_region_pop(runtime);
#ifndef WEIR_REGION_H
#define WEIR_REGION_H

#include <weir/common.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_NO_NUMBER UINT64_MAX

// The calling thread enters a region. `name` is copied by who wants it; `number`
// tells regions of one name apart, or is WEIR_NO_NUMBER.
WEIR_API void weir_region_push(weir_runtime *runtime, const char *name, uint64_t number);

// The calling thread leaves its innermost region. Does nothing outside of any.
WEIR_API void weir_region_pop(weir_runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
