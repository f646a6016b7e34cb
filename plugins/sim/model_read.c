// The lines come from base/ini/ini.h.
#include <string.h>

#include "base/ini/ini.h"
#include "plugins/sim/model_parts.h"

enum part {
    NO_PART,
    GPU_PART,
    KERNEL_PART,
};

struct reader {
    struct sim_gpu *gpu;
    struct sim_costs *costs;
    struct sim_place place;
    enum part part;
    unsigned gpu_line; // 0: no [gpu] yet
    bool seen[SIM_GPU_KEYS];
    bool cost_seen[SIM_COST_KEYS]; // of the section of the current line
    bool fine;
};

static const char kind[] = "kernel";

// A kernel's section without a key would be a cost of nothing.
static bool end_section(struct reader *reader)
{
    if (reader->part != KERNEL_PART)
        return true;
    for (size_t i = 0; i < SIM_COST_KEYS; i++)
        if (reader->cost_seen[i])
            return true;
    const size_t last = reader->costs->count - 1;
    reader->place.line = reader->costs->lines[last];
    return sim_refuse(&reader->place, "[kernel %s] has no cost; write fixed_ns, or remove it",
                      reader->costs->items[last].kernel);
}

static bool begin_gpu(struct reader *reader)
{
    if (!reader->gpu)
        return sim_refuse(&reader->place, "a file of costs has [kernel NAME] sections alone; a "
                                          "model with [gpu] is named as the GPU");
    if (reader->gpu_line)
        return sim_refuse(&reader->place,
                          "section [gpu] is already in line %u; keep its keys in "
                          "one place",
                          reader->gpu_line);
    reader->gpu_line = reader->place.line;
    reader->part = GPU_PART;
    return true;
}

static bool begin_kernel(struct reader *reader, const char *name, size_t length)
{
    const size_t before = sizeof kind; // and the space
    memset(reader->cost_seen, 0, sizeof reader->cost_seen);
    reader->part = KERNEL_PART;
    return sim_costs_add(reader->costs, name + before, length - before, &reader->place);
}

static bool begin_section(struct reader *reader, const char *name, size_t length)
{
    if (length == 3 && strncmp(name, "gpu", 3) == 0)
        return begin_gpu(reader);
    if (length > sizeof kind && strncmp(name, "kernel ", sizeof kind) == 0)
        return begin_kernel(reader, name, length);
    return sim_refuse(&reader->place, "unknown section [%.*s]; a model has [gpu] and [kernel NAME]",
                      (int)length, name);
}

static bool on_section(void *user, unsigned line, const char *name, size_t length)
{
    struct reader *reader = user;
    reader->fine = end_section(reader);
    if (!reader->fine)
        return false;
    reader->place.line = line;
    return reader->fine = begin_section(reader, name, length);
}

static bool set_once(struct reader *reader, bool *seen, const char *key)
{
    if (*seen)
        return sim_refuse(&reader->place, "'%s' is set twice in this section; keep one of them",
                          key);
    *seen = true;
    return true;
}

static bool on_entry(void *user, unsigned line, const char *key, const char *value)
{
    struct reader *reader = user;
    size_t index;
    reader->place.line = line;
    if (reader->part == GPU_PART)
        return reader->fine = sim_key_set(reader->gpu, key, value, &reader->place, &index) &&
                              set_once(reader, &reader->seen[index], key);
    return reader->fine = sim_cost_set(&reader->costs->items[reader->costs->count - 1], key, value,
                                       &reader->place, &index) &&
                          set_once(reader, &reader->cost_seen[index], key);
}

static void on_refused(void *user, unsigned line, const char *remedy, const char *sentence)
{
    struct reader *reader = user;
    reader->place.line = line;
    reader->fine =
        sim_refuse(&reader->place, "%s%s%s", sentence, remedy ? "; " : "", remedy ? remedy : "");
}

static bool finish(struct reader *reader)
{
    if (!end_section(reader))
        return false;
    reader->place.line = reader->gpu_line;
    if (!reader->gpu)
        return reader->costs->count > 0 ||
               sim_refuse(&reader->place, "there is no [kernel NAME]; weir sim learn writes some");
    if (!reader->gpu_line)
        return sim_refuse(&reader->place, "there is no [gpu]; conf/gpus/reference.ini shows one");
    return sim_keys_fill(reader->gpu, reader->seen, &reader->place) &&
           sim_keys_check(reader->gpu, &reader->place);
}

bool sim_model_parse(const struct sim_place *place, const char *text, size_t size,
                     struct sim_gpu *gpu, struct sim_costs *costs)
{
    static const struct weir_ini_handler handler = {
        .section = on_section,
        .entry = on_entry,
        .refuse = on_refused,
        .kind = kind,
        .sectionless_remedy = "put it under [gpu]",
    };
    struct reader reader = {
        .gpu = gpu,
        .costs = costs,
        .place = *place,
        .fine = true,
    };
    const enum weir_ini_end end = weir_ini_read(text, size, &handler, &reader);
    if (end == WEIR_INI_NO_MEMORY)
        return sim_refuse(&reader.place, "there is no memory to read it");
    return reader.fine && finish(&reader);
}
