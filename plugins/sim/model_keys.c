// The keys of a model, [gpu] and [kernel NAME], and what operations cost with them: one table has the keys of
// [gpu], and conf/gpus/reference.ini is tested against it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "plugins/sim/model.h"

enum type {
    NAME,     // text
    QUEUES,   // enum sim_queues
    KIND,     // bool: a processor
    FLAG,     // bool
    COUNT,    // uint32_t
    PRIORITY, // int32_t
    TIME,     // uint64_t, nanoseconds
    RATE,     // uint64_t, bytes a second, from GB/s
};

struct key {
    const char *name;
    enum type type;
    size_t offset; // in struct sim_model
    const char *fallback;
    double minimum;
    double maximum;
};

#define MOST_GB_PER_S 100000.0
#define LEAST_GB_PER_S 0.001
#define MOST_NS 1e9
#define AT(field) offsetof(struct sim_model, field)
#define SUBMIT(kind) (offsetof(struct sim_model, submit_ns) + (kind) * sizeof(uint64_t))
#define LINK(kind, field)                                                    \
    (offsetof(struct sim_model, copies) + (kind) * sizeof(struct sim_link) + \
     offsetof(struct sim_link, field))

// Kinds that have the latency and the submit of uploads.
static const enum sim_kind copies_alike[] = {SIM_D2H, SIM_D2D, SIM_PEER};

static const struct key keys[SIM_GPU_KEYS] = {
    {"name", NAME, 0, NULL, 0, 0},
    {"kind", KIND, AT(processor), "gpu", 0, 0},
    {"queues", QUEUES, AT(queues), "stream", 0, 0},
    {"late_signals", FLAG, AT(late_signals), "0", 0, 1},
    {"channels", COUNT, AT(channels), "0", 0, 128},
    {"copy_engines", COUNT, AT(copy_engines), NULL, 1, 3},
    {"copy_channels", COUNT, AT(copy_channels), "0", 0, 128},
    {"kernels", COUNT, AT(kernels), NULL, 1, 4096},
    {"multiprocessors", COUNT, AT(multiprocessors), "0", 0, 65536},
    {"threads_per_multiprocessor", COUNT, AT(threads), "0", 0, 65536},
    {"greatest_priority", PRIORITY, AT(greatest_priority), "0", -1000, 0},
    {"h2d_gb_per_s", RATE, LINK(SIM_H2D, bytes_per_s), NULL, LEAST_GB_PER_S, MOST_GB_PER_S},
    {"d2h_gb_per_s", RATE, LINK(SIM_D2H, bytes_per_s), NULL, LEAST_GB_PER_S, MOST_GB_PER_S},
    {"h2d_both_gb_per_s", RATE, LINK(SIM_H2D, both_bytes_per_s), "0", 0, MOST_GB_PER_S},
    {"d2h_both_gb_per_s", RATE, LINK(SIM_D2H, both_bytes_per_s), "0", 0, MOST_GB_PER_S},
    {"d2d_gb_per_s", RATE, LINK(SIM_D2D, bytes_per_s), "100000", LEAST_GB_PER_S, MOST_GB_PER_S},
    {"peer_gb_per_s", RATE, LINK(SIM_PEER, bytes_per_s), "100000", LEAST_GB_PER_S, MOST_GB_PER_S},
    {"copy_latency_ns", TIME, LINK(SIM_H2D, latency_ns), "0", 0, MOST_NS},
    {"copy_both_latency_ns", TIME, LINK(SIM_H2D, both_latency_ns), "0", 0, MOST_NS},
    {"pull_latency_ns", TIME, AT(pull_latency_ns), "0", 0, MOST_NS},
    {"collective_gb_per_s", RATE, LINK(SIM_COLLECTIVE, bytes_per_s), "0", 0, MOST_GB_PER_S},
    {"collective_latency_ns", TIME, LINK(SIM_COLLECTIVE, latency_ns), "0", 0, MOST_NS},
    {"signal_ns", TIME, AT(signal_ns), "0", 0, MOST_NS},
    {"kernel_gap_ns", TIME, AT(kernel_gap_ns), "0", 0, MOST_NS},
    {"graph_ns", TIME, AT(graph_ns), "0", 0, MOST_NS},
    {"host_call_ns", TIME, AT(host_call_ns), "0", 0, MOST_NS},
    {"submit_kernel_ns", TIME, SUBMIT(SIM_KERNEL), "0", 0, MOST_NS},
    {"submit_copy_ns", TIME, SUBMIT(SIM_H2D), "0", 0, MOST_NS},
    {"submit_mark_ns", TIME, SUBMIT(SIM_MARK), "0", 0, MOST_NS},
    {"submit_graph_ns", TIME, AT(submit_graph_ns), "0", 0, MOST_NS},
    {"submit_branch_ns", TIME, AT(submit_branch_ns), "0", 0, MOST_NS},
    {"wait_ns", TIME, AT(wait_ns), "0", 0, MOST_NS},
    {"wake_ns", TIME, AT(wake_ns), "0", 0, MOST_NS},
    {"staging_gb_per_s", RATE, AT(staging.bytes_per_s), "0", 0, MOST_GB_PER_S},
    {"staging_all_gb_per_s", RATE, AT(staging.all_bytes_per_s), "0", 0, MOST_GB_PER_S},
};

const char *sim_key_name(size_t index)
{
    return index < SIM_GPU_KEYS ? keys[index].name : NULL;
}

const char *sim_key_default(size_t index)
{
    return keys[index].fallback;
}

bool sim_refuse(const struct sim_place *place, const char *format, ...)
{
    char about[256];
    va_list arguments;
    if (place->line)
        snprintf(about, sizeof about, "%s:%u", place->label, place->line);
    else
        snprintf(about, sizeof about, "%s", place->label);
    va_start(arguments, format);
    weir_text_vabout(place->message, place->message_size, about, format, arguments);
    va_end(arguments);
    return false;
}

bool sim_read_number(const char *text, bool exponent, double *out_number)
{
    char *end;
    if (!strchr("0123456789", text[0]) || text[0] == '\0' ||
        text[strspn(text, exponent ? "0123456789.e+-" : "0123456789.")] != '\0')
        return false;
    *out_number = weir_c_number(text, &end);
    return *end == '\0';
}

static bool refuse_value(const struct key *key, const char *value, const struct sim_place *place)
{
    if (key->type == KIND)
        return sim_refuse(place, "'kind' of [gpu] is gpu or cpu, not '%s'", value);
    if (key->type == NAME)
        return sim_refuse(place, "'name' of [gpu] is empty; write what the card is called");
    return sim_refuse(place, "'%s' of [gpu] is a %s from %.9g to %.9g, not '%s'", key->name,
                      key->type == RATE ? "number" : "whole number", key->minimum, key->maximum,
                      value);
}

static bool set_name(struct sim_gpu *gpu, const char *value, const struct sim_place *place)
{
    if (value[0] == '\0')
        return refuse_value(&keys[0], value, place);
    char *name = strdup(value);
    if (!name)
        return sim_refuse(place, "there is no memory for the model");
    free(gpu->name);
    gpu->name = name;
    gpu->model.name = name;
    return true;
}

static bool set_queues(struct sim_gpu *gpu, const char *value, const struct sim_place *place)
{
    const bool engine = strcmp(value, "engine") == 0;
    if (!engine && strcmp(value, "stream") != 0)
        return sim_refuse(place, "'queues' of [gpu] is engine or stream, not '%s'", value);
    gpu->model.queues = engine ? SIM_ENGINE_QUEUES : SIM_STREAM_QUEUES;
    return true;
}

bool sim_read_kind(const char *text, bool *out_processor)
{
    *out_processor = strcmp(text, "cpu") == 0;
    return *out_processor || strcmp(text, "gpu") == 0;
}

static void store(struct sim_model *model, const struct key *key, double number)
{
    void *at = (char *)model + key->offset;
    switch (key->type) {
    case FLAG:
        *(bool *)at = number != 0;
        break;
    case COUNT:
        *(uint32_t *)at = (uint32_t)number;
        break;
    case PRIORITY:
        *(int32_t *)at = (int32_t)number;
        break;
    case TIME:
        *(uint64_t *)at = (uint64_t)number;
        break;
    default:
        *(uint64_t *)at = (uint64_t)(number * 1e9 + 0.5);
        break;
    }
}

// One key for all copies, one for what is launched, and one for what has no engine.
static void share(struct sim_model *model)
{
    for (size_t i = 0; i < sizeof copies_alike / sizeof *copies_alike; i++) {
        model->copies[copies_alike[i]].latency_ns = model->copies[SIM_H2D].latency_ns;
        model->submit_ns[copies_alike[i]] = model->submit_ns[SIM_H2D];
    }
    model->copies[SIM_D2H].both_latency_ns = model->copies[SIM_H2D].both_latency_ns;
    model->submit_ns[SIM_COLLECTIVE] = model->submit_ns[SIM_KERNEL];
    model->submit_ns[SIM_HOST] = model->submit_ns[SIM_MARK];
}

static bool set_number(struct sim_gpu *gpu, const struct key *key, const char *value,
                       const struct sim_place *place)
{
    const bool negative = key->type == PRIORITY && value[0] == '-';
    double number;
    if (!sim_read_number(value + negative, false, &number) ||
        (key->type != RATE && strchr(value, '.')))
        return refuse_value(key, value, place);
    if (negative)
        number = -number;
    if (!(number >= key->minimum && number <= key->maximum))
        return refuse_value(key, value, place);
    store(&gpu->model, key, number);
    share(&gpu->model);
    return true;
}

static bool set(struct sim_gpu *gpu, const struct key *key, const char *value,
                const struct sim_place *place)
{
    if (key->type == NAME)
        return set_name(gpu, value, place);
    if (key->type == QUEUES)
        return set_queues(gpu, value, place);
    if (key->type == KIND)
        return sim_read_kind(value, &gpu->model.processor) || refuse_value(key, value, place);
    return set_number(gpu, key, value, place);
}

bool sim_key_set(struct sim_gpu *gpu, const char *key, const char *value,
                 const struct sim_place *place, size_t *out_index)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < SIM_GPU_KEYS; i++) {
        *out_index = i;
        if (strcmp(key, keys[i].name) == 0)
            return set(gpu, &keys[i], value, place);
        nearest = weir_text_nearer(key, nearest, keys[i].name);
    }
    if (nearest)
        return sim_refuse(place, "[gpu] has no key '%s'; did you mean '%s'?", key, nearest);
    return sim_refuse(place, "[gpu] has no key '%s'; conf/gpus/reference.ini has all", key);
}

bool sim_keys_fill(struct sim_gpu *gpu, const bool seen[SIM_GPU_KEYS],
                   const struct sim_place *place)
{
    for (size_t i = 0; i < SIM_GPU_KEYS; i++) {
        if (seen[i])
            continue;
        if (!keys[i].fallback)
            return sim_refuse(place, "[gpu] lacks '%s'; conf/gpus/reference.ini tells what it is",
                              keys[i].name);
        if (!set(gpu, &keys[i], keys[i].fallback, place))
            return false;
    }
    return true;
}

static bool is_too_low(uint64_t bytes_per_s)
{
    return bytes_per_s > 0 && (double)bytes_per_s < LEAST_GB_PER_S * 1e9;
}

bool sim_keys_check(const struct sim_gpu *gpu, const struct sim_place *place)
{
    const struct sim_model *model = &gpu->model;
    const struct sim_link *up = &model->copies[SIM_H2D];
    const struct sim_link *down = &model->copies[SIM_D2H];
    if (up->both_bytes_per_s > up->bytes_per_s)
        return sim_refuse(place, "'h2d_both_gb_per_s' is more than 'h2d_gb_per_s', that of a copy "
                                 "alone; one of them is wrong");
    if (down->both_bytes_per_s > down->bytes_per_s)
        return sim_refuse(place, "'d2h_both_gb_per_s' is more than 'd2h_gb_per_s', that of a copy "
                                 "alone; one of them is wrong");
    if (up->both_latency_ns && up->both_latency_ns < up->latency_ns)
        return sim_refuse(place, "'copy_both_latency_ns' is 0 or at least 'copy_latency_ns', that "
                                 "of a copy alone");
    if (is_too_low(up->both_bytes_per_s) || is_too_low(down->both_bytes_per_s))
        return sim_refuse(place, "'h2d_both_gb_per_s' and 'd2h_both_gb_per_s' are 0 or at least %g",
                          LEAST_GB_PER_S);
    if (is_too_low(model->copies[SIM_COLLECTIVE].bytes_per_s))
        return sim_refuse(place, "'collective_gb_per_s' is 0 or at least %g", LEAST_GB_PER_S);
    if (is_too_low(model->staging.bytes_per_s) || is_too_low(model->staging.all_bytes_per_s))
        return sim_refuse(place,
                          "'staging_gb_per_s' and 'staging_all_gb_per_s' are 0 or at least %g",
                          LEAST_GB_PER_S);
    return true;
}

// What a kernel costs.

uint32_t sim_kernel_places(const struct sim_model *model, double blocks)
{
    if (model->multiprocessors == 0 || blocks >= (double)model->multiprocessors)
        return model->kernels;
    const double places = blocks * (double)model->kernels / (double)model->multiprocessors;
    return places > 1 ? (uint32_t)(places + 0.5) : 1;
}

static int compare_costs(const void *name, const void *cost)
{
    return strcmp(name, ((const struct sim_cost *)cost)->kernel);
}

bool sim_kernel_ns(const struct sim_model *model, const struct sim_launch *launch, uint64_t *out_ns)
{
    const struct sim_cost *cost = model->cost_count
                                      ? bsearch(launch->kernel, model->costs, model->cost_count,
                                                sizeof *model->costs, compare_costs)
                                      : NULL;
    if (!cost)
        return false;
    double ns = 0; // summed in one order, so that every machine rounds alike
    for (size_t i = 0; i < SIM_TERMS; i++)
        ns += cost->factors[i] * launch->terms[i];
    // A negative argument may make it negative; a year is more than any kernel runs.
    const double most = 365.0 * 86400e9;
    *out_ns = ns > 0 ? (uint64_t)((ns < most ? ns : most) + 0.5) : 0;
    return true;
}
