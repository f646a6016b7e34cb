// A chain: zero or more plugins, a link of the front end, and one backend. Only the builder here
// knows how long a chain is.
#ifndef WEIR_CORE_MODULE_CHAIN_H
#define WEIR_CORE_MODULE_CHAIN_H

#include <weir/module/module.h>

#include "core/module/loader.h"

struct weir__chain {
    struct weir_link *links; // [count], outermost first
    uint32_t count;
    bool host_notes; // some link sets host_note
    bool regions;    // and some region
    bool times;      // and times of operations
};

// Builds links out of loaded modules, outermost first, the backend last, and adds the link of
// the front end's `own` slots before the backend. Opens nothing.
weir_status weir__chain_build(struct weir__chain *chain, const struct weir__loaded *modules,
                              uint32_t module_count, const struct weir_module_ops *own,
                              const struct weir_host *host);

// Opens every link, the backend first, and closes those already open when one
// fails. `settings[i]` belongs to `modules[i]` of the build; `*out_failed` is
// the index of the module that failed.
weir_status weir__chain_open(struct weir__chain *chain,
                             const struct weir_setting *const *const *settings,
                             uint32_t *out_failed);

// Closes open links and frees all links. Accepts a chain that was never built. Returns the first
// error that a link reported at its close, as the thread's error; without one the thread's error
// does not change.
weir_status weir__chain_finish(struct weir__chain *chain);

static inline const struct weir_link *weir__chain_first(const struct weir__chain *chain)
{
    return &chain->links[0];
}
static inline const struct weir_link *weir__chain_backend(const struct weir__chain *chain)
{
    return &chain->links[chain->count - 1];
}

// Creates an object link by link, from the outermost to the backend. If one
// fails, those before it are rolled back in reverse order.
weir_status weir__chain_device_create(const struct weir__chain *chain, weir_device *device,
                                      const struct weir_device_setup *setup, void **data);
weir_status weir__chain_queue_create(const struct weir__chain *chain, weir_device *device,
                                     weir_queue *queue, const struct weir_queue_setup *setup,
                                     void **data);
weir_status weir__chain_buffer_create(const struct weir__chain *chain, weir_device *device,
                                      weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                      void **data, void **out_pointer);
weir_status weir__chain_program_create(const struct weir__chain *chain, weir_device *device,
                                       weir_program *program,
                                       const struct weir_program_params *params, void **data);
weir_status weir__chain_kernel_create(const struct weir__chain *chain, weir_program *program,
                                      weir_kernel *kernel,
                                      const struct weir_kernel_signature *signature,
                                      struct weir_kernel_info *info, void **data);

weir_status weir__chain_graph_create(const struct weir__chain *chain, weir_device *device,
                                     weir_graph *graph, const struct weir_graph_setup *setup,
                                     bool with_backend, void **data);

// Destroys an object link by link, from the backend outwards.
void weir__chain_device_destroy(const struct weir__chain *chain, weir_device *device);
// Tells the backend that the native queue may be destroyed.
void weir__chain_queue_leave(const struct weir__chain *chain, weir_queue *queue);
void weir__chain_queue_destroy(const struct weir__chain *chain, weir_queue *queue);
void weir__chain_buffer_destroy(const struct weir__chain *chain, weir_buffer *buffer);
void weir__chain_program_destroy(const struct weir__chain *chain, weir_program *program);
void weir__chain_kernel_destroy(const struct weir__chain *chain, weir_kernel *kernel);
void weir__chain_graph_destroy(const struct weir__chain *chain, weir_graph *graph,
                               bool with_backend);

// Gets the limits from the backend and lets every plugin change them.
void weir__chain_device_limits(const struct weir__chain *chain, weir_device *device,
                               struct weir_limits *limits);

#endif
