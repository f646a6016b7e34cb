// Regions: named sections of a program (NVTX ranges). In a trace, the operations
// that a thread submits inside a region belong to it. Without a plugin that uses
// them, both calls cost a few nanoseconds.
//
//     weir_region_push(runtime, "frame", number);
//     ... submit ...
//     weir_region_pop(runtime);
#ifndef WEIR_REGION_H
#define WEIR_REGION_H

#include <weir/common.h>

#define WEIR_NO_NUMBER UINT64_MAX

// The calling thread enters a region. Plugins that use `name` copy it. `number`
// distinguishes regions of one name; WEIR_NO_NUMBER if it is not needed.
WEIR_API void weir_region_push(weir_runtime *runtime, const char *name, uint64_t number);

// The calling thread leaves its innermost region. Does nothing if there is none.
WEIR_API void weir_region_pop(weir_runtime *runtime);

#endif
