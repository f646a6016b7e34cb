// Models of GPUs from INI files: those of conf/gpus, which the plugin carries, and users' own.
//
// A file has a section [gpu], whose keys conf/gpus/reference.ini documents, and a section
// [kernel NAME] for each kernel whose cost is known. Costs may also come from files of their own,
// which `weir sim learn` writes.
//
// Errors: functions that fail write one sentence into `message` that begins with the file and the
// line, as in "base/file.h"; 512 bytes hold every sentence.
// Threads: one at a time for each GPU.
#ifndef WEIR_PLUGINS_SIM_MODEL_H
#define WEIR_PLUGINS_SIM_MODEL_H

#include "base/text.h"
#include "plugins/sim/engine.h"

struct sim_gpu {
    struct sim_model model; // points to what follows
    char *name;
    struct sim_cost *costs; // by name
    size_t cost_room;
};

struct sim_launch {
    const char *kernel;
    double terms[SIM_TERMS];
};

// False if the model has no cost for the kernel.
bool sim_kernel_ns(const struct sim_model *model, const struct sim_launch *launch,
                   uint64_t *out_ns);

// Reads the model of that name, such as "h200", or the file, if `name` holds a '/' or ends in
// ".ini". An unknown name's sentence has the nearest one, or all.
//
// Ownership: the caller's, until sim_gpu_destroy().
// Errors: false; `*out_gpu` is NULL.
bool sim_gpu_open(const char *name, struct sim_gpu **out_gpu, char *message, size_t message_size);

// Adds the costs of a file that has [kernel NAME] sections alone, and [learnt]: the device that they are of. A
// kernel that has a cost gets the file's instead, but occurs once in a file. Costs of a processor on the model
// of a GPU, and the other way, take `scale` times as long; 0 refuses them.
//
// Errors: false; what was added before stays.
bool sim_gpu_add_costs(struct sim_gpu *gpu, const char *path, double scale, char *message,
                       size_t message_size);

// Changes keys of [gpu]: "copy_engines=1, h2d_gb_per_s=25". "" changes nothing.
//
// Errors: false; the sentence begins with the change. The model is then of no use.
bool sim_gpu_change(struct sim_gpu *gpu, const char *changes, char *message, size_t message_size);

// A number without a sign, such as 12, 0.5 or, if `exponent`, 1e-05. False for anything else.
bool sim_read_number(const char *text, bool exponent, double *out_number);

// Accepts a pointer to NULL, and stores NULL.
void sim_gpu_destroy(struct sim_gpu **gpu);

enum {
    SIM_MOST_KERNELS = 4096,
};

// The keys of [gpu].
const char *sim_key_name(size_t index);
// NULL: the key has to be set.
const char *sim_key_default(size_t index);

#endif
