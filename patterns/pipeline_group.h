// A group of pipelines, one for each of several devices: frames are dealt out to the pipelines, and
// delivered in the order in which they were accepted, whichever device ran them.
//
//     weir_pipeline_group_create(NULL, &group);
//     for (uint32_t i = 0; i < device_count; i++) {
//         params.device = devices[i];
//         params.group = group;
//         weir_pipeline_create(&params, &pipelines[i]);
//     }
//     while (next_frame(&frame))
//         weir_pipeline_group_submit(group, frame);
//     weir_pipeline_group_drain(group, WEIR_FOREVER);
//     for (uint32_t i = 0; i < device_count; i++)
//         weir_pipeline_destroy(&pipelines[i]);
//     weir_pipeline_group_destroy(&group);
//
// Each pipeline has threads of its own, so devices do not wait for each other's `prepare` and
// `submit`. `deliver` runs on the thread of the pipeline that ran the frame, and never for two frames
// of the group at once.
//
// Dealing. A frame goes to the pipeline with the fewest frames that are not yet delivered; among
// equals, to the one after the last that got one. A frame that is done keeps its slot until all frames
// before it are delivered, so devices of different speed are limited by the slowest: group equal ones.
// A pipeline whose device is lost gets no more frames while another one has its device.
#ifndef WEIR_PATTERNS_PIPELINE_GROUP_H
#define WEIR_PATTERNS_PIPELINE_GROUP_H

#include "pipeline.h" // beside this one, in the tree and where it is installed

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PIPELINE_GROUP_MAX 64

struct weir_pipeline_group_params {
    size_t struct_size;
    const char *label; // copied; names errors
};

// Creates a group without pipelines; those that are created with it in their params join it until
// they are destroyed. They have the same policy and, for the statistics, the same stages. `params` may
// be NULL.
//
// Ownership: the caller's, until weir_pipeline_group_destroy(). Outlives its pipelines.
// Errors: WEIR_ERROR_OUT_OF_MEMORY.
WEIR_API WEIR_CHECKED weir_status
weir_pipeline_group_create_at(const struct weir_pipeline_group_params *params,
                              weir_pipeline_group **out_group, const char *file, int line);
#define weir_pipeline_group_create(...) \
    weir_pipeline_group_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the group and sets `*group` to NULL. NULL and a pointer to NULL are accepted.
//
// Errors: WEIR_ERROR_INVALID while it has pipelines; nothing is done then.
WEIR_API WEIR_CHECKED weir_status weir_pipeline_group_destroy(weir_pipeline_group **group);

// Submits a frame to one of the pipelines. When all are full, their policy applies to the group:
// WEIR_PIPELINE_DROP_OLDEST drops the oldest frame of all that wait. Otherwise as
// weir_pipeline_submit(). Allocates nothing.
//
// Threads: safe; while pipelines join or leave the group it must not be called.
// Errors: as weir_pipeline_submit(); WEIR_ERROR_INVALID for a group without pipelines.
WEIR_API WEIR_CHECKED weir_status weir_pipeline_group_submit(weir_pipeline_group *group,
                                                             void *frame);

// weir_pipeline_drain() and weir_pipeline_cancel() for all pipelines.
WEIR_API WEIR_CHECKED weir_status weir_pipeline_group_drain(weir_pipeline_group *group,
                                                            uint64_t timeout_ns);
WEIR_API WEIR_CHECKED weir_status weir_pipeline_group_cancel(weir_pipeline_group *group);

// Stores the figures of all pipelines that are in the group. Counts, and the times of stages, are
// added up, `in_flight_max` too; `covered_ns` and `overlap_ns` are those of each device, added up;
// `wall_ns` is from the first acceptance to the last delivery, and latencies are over all frames. The
// stages' names are the first pipeline's. For one device ask its pipeline.
//
// Threads: safe, also in callbacks.
WEIR_API void weir_pipeline_group_get_statistics_sized(
    weir_pipeline_group *group, struct weir_pipeline_statistics *out_statistics, size_t size);
#define weir_pipeline_group_get_statistics(group, out_statistics)   \
    weir_pipeline_group_get_statistics_sized(group, out_statistics, \
                                             sizeof(struct weir_pipeline_statistics))

#ifdef __cplusplus
}
#endif

#endif
