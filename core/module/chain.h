// A chain: zero or more plugins, a link of the front end, and one backend. Only the builder here
// knows how long a chain is.
#ifndef WEIR_CORE_MODULE_CHAIN_H
#define WEIR_CORE_MODULE_CHAIN_H

#include <weir/module/module.h>

#include "base/names.h"
#include "core/module/loader.h"

struct weir__chain {
    struct weir_link *links; // [count], outermost first
    uint32_t count;
    uint32_t first_open;       // they open from the last one to the first
    bool host_notes;           // some link sets host_note
    bool regions;              // and some region
    bool times;                // and times of operations
    struct weir_names *labels; // that live as long as the links; core/object/object.c adds them
};

// Builds links out of loaded modules, outermost first, the backend last, adds the link of the front
// end's `own` slots before the backend, and opens every link, the backend first. `settings[i]` belongs
// to `modules[i]`; `*out_failed` is the index of the module that failed. What is open by then stays so
// until weir__chain_finish().
weir_status weir__chain_open(struct weir__chain *chain, const struct weir__loaded *modules,
                             uint32_t module_count, const struct weir_module_ops *own,
                             const struct weir_host *host,
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

// All kinds of object are created and destroyed alike: link by link, from the outermost one, along the first
// `links_used` of the chain. If one fails, those before it are rolled back in reverse order. Stores WEIR_OK or the
// error in `status`. `kind` begins the names of the slots, and `CREATE` is one link's create, with `link` and `slot`,
// the place of its data, in scope.
#define WEIR__CREATE_ALONG(status, chain, links_used, data, kind, object, CREATE)        \
    do {                                                                                 \
        (status) = WEIR_OK;                                                              \
        for (uint32_t i = 0; i < (links_used); i++) {                                    \
            const struct weir_link *link = &(chain)->links[i];                           \
            void **slot = &(data)[i];                                                    \
            const weir_status made = link->ops->kind##_create ? (CREATE) : WEIR_OK;      \
            if (made >= 0)                                                               \
                continue;                                                                \
            while (i-- > 0)                                                              \
                if ((chain)->links[i].ops->kind##_destroy)                               \
                    (chain)->links[i].ops->kind##_destroy(&(chain)->links[i], (object)); \
            (status) = made;                                                             \
            break;                                                                       \
        }                                                                                \
    } while (0)

// Destroys an object link by link, from the last of them outwards.
#define WEIR__DESTROY_ALONG(chain, links_used, kind, object)                         \
    do {                                                                             \
        for (uint32_t i = (links_used); i-- > 0;)                                    \
            if ((chain)->links[i].ops->kind##_destroy)                               \
                (chain)->links[i].ops->kind##_destroy(&(chain)->links[i], (object)); \
    } while (0)

#endif
