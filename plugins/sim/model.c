#include "plugins/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "conf/gpus/c1060_ini.h"
#include "conf/gpus/c2050_ini.h"
#include "conf/gpus/geforce_fermi_ini.h"
#include "conf/gpus/h100_ini.h"
#include "conf/gpus/h200_ini.h"
#include "conf/gpus/k20c_ini.h"
#include "conf/gpus/tegra_x2_ini.h"
#include "plugins/sim/model_parts.h"

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

const char *sim_gpu_name(size_t index)
{
    return index < CARRIED ? carried[index].name : NULL;
}

const struct sim_model *sim_gpu_model(const struct sim_gpu *gpu)
{
    return &gpu->model;
}

static void free_costs(struct sim_cost *costs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)costs[i].kernel);
    free(costs);
}

void sim_gpu_destroy(struct sim_gpu **gpu)
{
    if (!*gpu)
        return;
    free_costs((*gpu)->costs, (*gpu)->model.cost_count);
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
    struct sim_cost *all = calloc(old + costs->count + 1, sizeof *all);
    size_t count = 0;
    if (!all)
        return false;
    if (costs->count > 0)
        qsort(costs->items, costs->count, sizeof *costs->items, compare_costs);
    for (size_t i = 0, j = 0; i < old || j < costs->count; count++) {
        const int order = i == old            ? 1
                          : j == costs->count ? -1
                                              : compare_costs(&gpu->costs[i], &costs->items[j]);
        if (order == 0)
            free((char *)gpu->costs[i].kernel);
        all[count] = order < 0 ? gpu->costs[i] : costs->items[j];
        i += order <= 0;
        j += order >= 0;
    }
    free(gpu->costs);
    gpu->costs = all;
    gpu->model.costs = all;
    gpu->model.cost_count = count;
    costs->count = 0;
    return true;
}

static bool parse(struct sim_gpu *gpu, bool costs_alone, const char *text, size_t size,
                  const struct sim_place *place)
{
    struct sim_costs costs = {0};
    const bool fine =
        sim_model_parse(place, text, size, costs_alone ? NULL : gpu, &costs) &&
        (merge(gpu, &costs) || sim_refuse(place, "there is no memory for its kernels"));
    sim_costs_finish(&costs);
    return fine;
}

static bool read_file(struct sim_gpu *gpu, bool costs_alone, const struct sim_place *place)
{
    void *text;
    size_t size;
    if (!weir_file_read(place->label, FILE_LIMIT, &text, &size, place->message,
                        place->message_size))
        return false;
    const bool fine = parse(gpu, costs_alone, text, size, place);
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
            return parse(gpu, false, *carried[i].text, strlen(*carried[i].text), place);
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
    if (is_path(name) ? read_file(gpu, false, &place) : read_carried(gpu, &place))
        *out_gpu = gpu;
    else
        sim_gpu_destroy(&gpu);
    return *out_gpu != NULL;
}

bool sim_gpu_add_costs(struct sim_gpu *gpu, const char *path, char *message, size_t message_size)
{
    const struct sim_place place = place_of(path, message, message_size);
    return read_file(gpu, true, &place);
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
