// Shared by the files of the models.
//
//   model.c       GPUs: created, read, changed, destroyed
//   model_read.c  files of lines
//   model_keys.c  the keys of [gpu]
//   model_cost.c  the keys of [kernel NAME]
#ifndef WEIR_PLUGINS_SIM_MODEL_PARTS_H
#define WEIR_PLUGINS_SIM_MODEL_PARTS_H

#include "base/text.h"
#include "plugins/sim/model.h"

enum {
    SIM_GPU_KEYS = 33,
    SIM_COST_KEYS = 4 + 2 * SIM_ARGUMENTS,
    SIM_MOST_KERNELS = 4096,
};

struct sim_gpu {
    struct sim_model model; // points to what follows
    char *name;
    struct sim_cost *costs; // by name
};

// Where a message says that something is wrong: "h200.ini:12", or "copy_engines=3".
struct sim_place {
    const char *label;
    unsigned line; // 0: none
    char *message;
    size_t message_size;
};

// Writes the sentence; returns false.
bool sim_refuse(const struct sim_place *place, const char *format, ...) WEIR_TEXT_PRINTF(2, 3);

// Sets the key of [gpu] from its text. `*out_index` is that of the key in the table.
bool sim_key_set(struct sim_gpu *gpu, const char *key, const char *value,
                 const struct sim_place *place, size_t *out_index);

// Sets every key that `seen` does not have to its default; refuses the GPU if it has none.
bool sim_keys_fill(struct sim_gpu *gpu, const bool seen[SIM_GPU_KEYS],
                   const struct sim_place *place);

// Whether the keys go together.
bool sim_keys_check(const struct sim_gpu *gpu, const struct sim_place *place);

const char *sim_key_name(size_t index);
// NULL: the key has to be set.
const char *sim_key_default(size_t index);

// Sets the key of [kernel NAME] from its text; `*out_index` is below SIM_COST_KEYS.
bool sim_cost_set(struct sim_cost *cost, const char *key, const char *value,
                  const struct sim_place *place, size_t *out_index);

// Costs of kernels, in the order of a file. Zeroed before use.
struct sim_costs {
    struct sim_cost *items;
    unsigned *lines; // of their sections
    size_t count;
};

void sim_costs_finish(struct sim_costs *costs);

// Adds a kernel without costs; false with a message.
bool sim_costs_add(struct sim_costs *costs, const char *name, size_t length,
                   const struct sim_place *place);

// Reads the text of the file that `place` names. `gpu` NULL: it has costs alone.
bool sim_model_parse(const struct sim_place *place, const char *text, size_t size,
                     struct sim_gpu *gpu, struct sim_costs *costs);

#endif
