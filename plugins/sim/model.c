// Models of GPUs: created, read from files of lines, and changed.
#include "plugins/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/ini/ini.h"
#include "conf/gpus/c1060_ini.h"
#include "conf/gpus/c2050_ini.h"
#include "conf/gpus/geforce_fermi_ini.h"
#include "conf/gpus/h100_ini.h"
#include "conf/gpus/h200_ini.h"
#include "conf/gpus/k20c_ini.h"
#include "conf/gpus/tegra_x2_ini.h"

#define FILE_LIMIT ((size_t)4 << 20)

static const struct carried {
    const char *name;
    const char *const *text;
} carried[] = {
    {"c1060", &weir_sim_gpu_c1060},
    {"c2050", &weir_sim_gpu_c2050},
    {"geforce_fermi", &weir_sim_gpu_geforce_fermi},
    {"h100", &weir_sim_gpu_h100},
    {"h200", &weir_sim_gpu_h200},
    {"k20c", &weir_sim_gpu_k20c},
    {"tegra_x2", &weir_sim_gpu_tegra_x2},
};

enum {
    CARRIED = sizeof carried / sizeof *carried
};

// Costs of kernels, in the order of a file. Zeroed before use.
struct sim_costs {
    struct sim_cost *items;
    size_t count;
};

#define MOST_COST_NS 1e15

static void finish_costs(struct sim_cost *costs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)costs[i].kernel);
    free(costs);
}

static bool is_named(const struct sim_cost *cost, const char *name, size_t length)
{
    return strncmp(cost->kernel, name, length) == 0 && cost->kernel[length] == '\0';
}

// Room for one more: the room doubles when a power of two is full.
static bool make_room(struct sim_costs *costs)
{
    const size_t count = costs->count;
    if (count & (count - 1))
        return true;
    struct sim_cost *items = realloc(costs->items, (count ? 2 * count : 1) * sizeof *items);
    if (items)
        costs->items = items;
    return items != NULL;
}

// Adds a kernel without costs; false with a message.
static bool add_costs(struct sim_costs *costs, const char *name, size_t length,
                      const struct sim_place *place)
{
    for (size_t i = 0; i < costs->count; i++)
        if (is_named(&costs->items[i], name, length))
            return sim_refuse(place,
                              "section [kernel %.*s] is already in line %u; keep one of them",
                              (int)length, name, costs->items[i].line);
    if (costs->count == SIM_MOST_KERNELS)
        return sim_refuse(place, "more than %d kernels; remove those that the program does not use",
                          SIM_MOST_KERNELS);
    char *copy = make_room(costs) ? strndup(name, length) : NULL;
    if (!copy)
        return sim_refuse(place, "there is no memory for the kernel");
    costs->items[costs->count++] = (struct sim_cost){.kernel = copy, .line = place->line};
    return true;
}

// The key of a term; SIM_TERMS: none.
static size_t term_of(const char *key)
{
    static const char *const names[] = {"fixed_ns", "per_block_ns", "per_item_ns", "per_byte_ns"};
    char name[40];
    size_t term = 0;
    for (; term < SIM_TERM_ARGUMENT; term++)
        if (strcmp(key, names[term]) == 0)
            return term;
    for (; term < SIM_TERMS; term++) {
        const bool items = term >= SIM_TERM_ITEM_ARGUMENT;
        snprintf(name, sizeof name, "per_%sargument_%zu_ns", items ? "item_" : "",
                 term - (items ? SIM_TERM_ITEM_ARGUMENT : SIM_TERM_ARGUMENT));
        if (strcmp(key, name) == 0)
            break;
    }
    return term;
}

// Sets the key of [kernel NAME] from its text; `*out_index` is below SIM_TERMS.
static bool set_cost(struct sim_cost *cost, const char *key, const char *value,
                     const struct sim_place *place, size_t *out_index)
{
    double number;
    *out_index = term_of(key);
    if (*out_index == SIM_TERMS)
        return sim_refuse(place,
                          "[kernel %s] has no key '%s'; its keys are fixed_ns, per_block_ns, "
                          "per_item_ns, per_byte_ns, per_argument_0_ns to per_argument_%d_ns and "
                          "per_item_argument_0_ns to per_item_argument_%d_ns",
                          cost->kernel, key, SIM_ARGUMENTS - 1, SIM_ARGUMENTS - 1);
    if (!sim_read_number(value, true, &number) || !(number <= MOST_COST_NS))
        return sim_refuse(place, "'%s' of [kernel %s] is a number from 0 to %g, not '%s'", key,
                          cost->kernel, MOST_COST_NS, value);
    cost->factors[*out_index] = number;
    return true;
}

// Files. The lines come from base/ini/ini.h.

enum part {
    NO_PART,
    GPU_PART,
    KERNEL_PART,
    LEARNT_PART,
};

// The device that costs are of.
struct learnt {
    unsigned line; // 0: not told
    char device[128];
    bool processor;
    bool seen[2]; // its keys
};

struct reader {
    struct sim_gpu *gpu;
    struct sim_costs *costs;
    struct sim_place place;
    enum part part;
    unsigned gpu_line; // 0: no [gpu] yet
    struct learnt learnt;
    bool seen[SIM_GPU_KEYS];
    bool cost_seen[SIM_TERMS]; // of the section of the current line
    bool fine;
};

static const char kind[] = "kernel";

// A kernel's section without a key would be a cost of nothing.
static bool end_section(struct reader *reader)
{
    if (reader->part != KERNEL_PART)
        return true;
    for (size_t i = 0; i < SIM_TERMS; i++)
        if (reader->cost_seen[i])
            return true;
    const size_t last = reader->costs->count - 1;
    reader->place.line = reader->costs->items[last].line;
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
    return add_costs(reader->costs, name + before, length - before, &reader->place);
}

static bool begin_learnt(struct reader *reader)
{
    if (reader->learnt.line)
        return sim_refuse(&reader->place,
                          "section [learnt] is already in line %u: costs of two devices are two "
                          "files",
                          reader->learnt.line);
    reader->learnt.line = reader->place.line;
    reader->part = LEARNT_PART;
    return true;
}

static bool begin_section(struct reader *reader, const char *name, size_t length)
{
    if (length == 3 && strncmp(name, "gpu", 3) == 0)
        return begin_gpu(reader);
    if (length > sizeof kind && strncmp(name, "kernel ", sizeof kind) == 0)
        return begin_kernel(reader, name, length);
    if (length == 6 && strncmp(name, "learnt", 6) == 0)
        return begin_learnt(reader);
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

static bool set_learnt(struct reader *reader, const char *key, const char *value)
{
    struct learnt *learnt = &reader->learnt;
    const bool is_kind = strcmp(key, "kind") == 0;
    if (!is_kind && strcmp(key, "device") != 0)
        return sim_refuse(&reader->place, "[learnt] has no key '%s'; it has device and kind", key);
    if (is_kind && !sim_read_kind(value, &learnt->processor))
        return sim_refuse(&reader->place, "'kind' of [learnt] is gpu or cpu, not '%s'", value);
    if (!is_kind)
        snprintf(learnt->device, sizeof learnt->device, "%s", value);
    return set_once(reader, &learnt->seen[is_kind], key);
}

static bool on_entry(void *user, unsigned line, const char *key, const char *value)
{
    struct reader *reader = user;
    size_t index;
    reader->place.line = line;
    if (reader->part == LEARNT_PART)
        return reader->fine = set_learnt(reader, key, value);
    if (reader->part == GPU_PART)
        return reader->fine = sim_key_set(reader->gpu, key, value, &reader->place, &index) &&
                              set_once(reader, &reader->seen[index], key);
    return reader->fine = set_cost(&reader->costs->items[reader->costs->count - 1], key, value,
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

static bool end_text(struct reader *reader)
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

// Reads the text of the file that `place` names. `gpu` NULL: it has costs alone.
static bool parse_text(const struct sim_place *place, const char *text, size_t size,
                       struct sim_gpu *gpu, struct sim_costs *costs, struct learnt *out_learnt)
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
    *out_learnt = reader.learnt;
    return reader.fine && end_text(&reader);
}

// GPUs.

const char *sim_gpu_name(size_t index)
{
    return index < CARRIED ? carried[index].name : NULL;
}

void sim_gpu_destroy(struct sim_gpu **gpu)
{
    if (!*gpu)
        return;
    finish_costs((*gpu)->costs, (*gpu)->model.cost_count);
    free((*gpu)->name);
    free(*gpu);
    *gpu = NULL;
}

static int compare_costs(const void *a, const void *b)
{
    return strcmp(((const struct sim_cost *)a)->kernel, ((const struct sim_cost *)b)->kernel);
}

// The file's costs replace those of the same kernels. Takes the names of `costs` if it succeeds.
static bool merge(struct sim_gpu *gpu, struct sim_costs *costs)
{
    const size_t old = gpu->model.cost_count;
    size_t count = old;
    struct sim_cost *all = realloc(gpu->costs, (old + costs->count + 1) * sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < costs->count; i++) {
        struct sim_cost *same = bsearch(&costs->items[i], all, old, sizeof *all, compare_costs);
        if (same)
            free((char *)same->kernel);
        *(same ? same : &all[count++]) = costs->items[i];
    }
    qsort(all, count, sizeof *all, compare_costs);
    gpu->costs = all;
    gpu->model.costs = all;
    gpu->model.cost_count = count;
    costs->count = 0;
    return true;
}

// A model's own costs are of what it models, unless it says otherwise too.
static bool match_kinds(const struct learnt *learnt, struct sim_costs *costs,
                        const struct sim_model *model, double scale, struct sim_place place)
{
    static const char *const kinds[] = {"a GPU", "a processor"};
    if (!learnt->seen[1] || learnt->processor == model->processor)
        return true;
    for (size_t i = 0; i < costs->count && scale > 0; i++)
        for (size_t term = 0; term < SIM_TERMS; term++)
            costs->items[i].factors[term] *= scale;
    place.line = learnt->line;
    return scale > 0 ||
           sim_refuse(&place,
                      "these costs were learnt on %s%s%s, and the model '%s' is that of %s: learn "
                      "them there, or say what part of that time it takes, such as `weir sim "
                      "--scale 0.05`, or kernel_scale of [sim]",
                      kinds[learnt->processor], *learnt->device ? ", " : "", learnt->device,
                      model->name, kinds[model->processor]);
}

static bool parse(struct sim_gpu *gpu, bool costs_alone, double scale, const char *text,
                  size_t size, const struct sim_place *place)
{
    struct sim_costs costs = {0};
    struct learnt learnt;
    const bool fine =
        parse_text(place, text, size, costs_alone ? NULL : gpu, &costs, &learnt) &&
        match_kinds(&learnt, &costs, &gpu->model, scale, *place) &&
        (merge(gpu, &costs) || sim_refuse(place, "there is no memory for its kernels"));
    finish_costs(costs.items, costs.count);
    return fine;
}

static bool read_file(struct sim_gpu *gpu, bool costs_alone, double scale,
                      const struct sim_place *place)
{
    void *text;
    size_t size;
    if (!weir_file_read(place->label, FILE_LIMIT, &text, &size, place->message,
                        place->message_size))
        return false;
    const bool fine = parse(gpu, costs_alone, scale, text, size, place);
    free(text);
    return fine;
}

static bool is_path(const char *name)
{
    const size_t length = strlen(name);
    return strchr(name, '/') || (length > 4 && strcmp(name + length - 4, ".ini") == 0);
}

static bool refuse_name(const struct sim_place *place)
{
    const char *nearest = NULL;
    char list[256];
    size_t used = 0;
    for (size_t i = 0; i < CARRIED; i++) {
        nearest = weir_text_nearer(place->label, nearest, carried[i].name);
        weir_text_append(list, sizeof list, &used, "%s%s", i ? ", " : "", carried[i].name);
    }
    if (nearest)
        return sim_refuse(place, "no GPU of that name is known; did you mean '%s'?", nearest);
    return sim_refuse(place,
                      "no GPU of that name is known; choose one of %s, or name a file, such as "
                      "./gpu.ini",
                      list);
}

static bool read_carried(struct sim_gpu *gpu, const struct sim_place *place)
{
    for (size_t i = 0; i < CARRIED; i++)
        if (strcmp(place->label, carried[i].name) == 0)
            return parse(gpu, false, 0, *carried[i].text, strlen(*carried[i].text), place);
    return refuse_name(place);
}

static struct sim_place place_of(const char *label, char *message, size_t message_size)
{
    message[0] = '\0';
    return (struct sim_place){.label = label, .message = message, .message_size = message_size};
}

bool sim_gpu_open(const char *name, struct sim_gpu **out_gpu, char *message, size_t message_size)
{
    const struct sim_place place = place_of(name, message, message_size);
    struct sim_gpu *gpu = calloc(1, sizeof *gpu);
    *out_gpu = NULL;
    if (!gpu)
        return sim_refuse(&place, "there is no memory for the model");
    if (is_path(name) ? read_file(gpu, false, 0, &place) : read_carried(gpu, &place))
        *out_gpu = gpu;
    else
        sim_gpu_destroy(&gpu);
    return *out_gpu != NULL;
}

bool sim_gpu_add_costs(struct sim_gpu *gpu, const char *path, double scale, char *message,
                       size_t message_size)
{
    const struct sim_place place = place_of(path, message, message_size);
    return read_file(gpu, true, scale, &place);
}

// "key=value", trimmed.
static bool change_one(struct sim_gpu *gpu, char *text, struct sim_place *place)
{
    char *equals = strchr(text, '=');
    size_t index;
    place->label = text;
    if (!equals)
        return sim_refuse(place, "a change is KEY=VALUE");
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(text, " \t="), text);
    return sim_key_set(gpu, key, equals + 1 + strspn(equals + 1, " \t"), place, &index) &&
           sim_keys_check(gpu, place);
}

bool sim_gpu_change(struct sim_gpu *gpu, const char *changes, char *message, size_t message_size)
{
    struct sim_place place = place_of(changes, message, message_size);
    for (const char *at = changes; *at; at += *at == ',') {
        char text[128];
        at += strspn(at, " \t");
        size_t length = strcspn(at, ",");
        const char *next = at + length;
        while (length > 0 && strchr(" \t", at[length - 1]))
            length--;
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        place.label = text;
        if (length >= sizeof text)
            return sim_refuse(&place, "a change is KEY=VALUE, and shorter");
        if (!change_one(gpu, text, &place))
            return false;
        at = next;
    }
    return true;
}
