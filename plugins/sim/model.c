// Models of GPUs: their keys, created, read from files of lines, and changed.
#include "plugins/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/ini/ini.h"
#include "conf/gpus/texts.h"

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

// Where a message says that something is wrong: "h200.ini:12", or "copy_engines=3".
struct place {
    const char *label;
    unsigned line; // 0: none
    char *message;
    size_t message_size;
};

// The keys of [gpu]: conf/gpus/reference.ini is tested against the table.

enum type {
    NAME,     // text
    QUEUES,   // enum sim_queues, by its name
    KIND,     // bool: a processor, by its name
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

static const struct key keys[] = {
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

enum {
    KEYS = sizeof keys / sizeof *keys
};

const char *sim_key_name(size_t index)
{
    return index < KEYS ? keys[index].name : NULL;
}

const char *sim_key_default(size_t index)
{
    return keys[index].fallback;
}

// Writes the sentence; returns false.
WEIR_TEXT_PRINTF(2, 3)
static bool refuse(const struct place *place, const char *format, ...)
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

static bool refuse_value(const struct key *key, const char *value, const struct place *place)
{
    return refuse(place, "'%s' of [gpu] is a %s from %.9g to %.9g, not '%s'", key->name,
                  key->type == RATE ? "number" : "whole number", key->minimum, key->maximum, value);
}

// Whether it is the second of the words that a key has; false with a message if it is none.
static bool read_word(const char *what, const char *const words[2], const char *value,
                      const struct place *place, bool *out_second)
{
    *out_second = strcmp(value, words[1]) == 0;
    return *out_second || strcmp(value, words[0]) == 0 ||
           refuse(place, "%s is %s or %s, not '%s'", what, words[0], words[1], value);
}

static const char *const kind_words[2] = {"gpu", "cpu"};
static const char *const queue_words[2] = {"engine", "stream"}; // as enum sim_queues has them

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
                       const struct place *place)
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
    if (key->type == RATE && number > 0 && number < LEAST_GB_PER_S)
        return refuse(place, "'%s' of [gpu] is 0 or at least %g, not '%s'", key->name,
                      LEAST_GB_PER_S, value);
    store(&gpu->model, key, number);
    share(&gpu->model);
    return true;
}

static bool set(struct sim_gpu *gpu, const struct key *key, const char *value,
                const struct place *place)
{
    bool streams;
    if (key->type == NAME) {
        char *name = value[0] ? strdup(value) : NULL;
        if (!name)
            return refuse(place, value[0]
                                     ? "there is no memory for the model"
                                     : "'name' of [gpu] is empty; write what the card is called");
        free(gpu->name);
        gpu->model.name = gpu->name = name;
        return true;
    }
    if (key->type == KIND)
        return read_word("'kind' of [gpu]", kind_words, value, place, &gpu->model.processor);
    if (key->type == QUEUES) {
        const bool fine = read_word("'queues' of [gpu]", queue_words, value, place, &streams);
        gpu->model.queues = streams ? SIM_STREAM_QUEUES : SIM_ENGINE_QUEUES;
        return fine;
    }
    return set_number(gpu, key, value, place);
}

// Sets the key of [gpu] from its text. `*out_index` is that of the key in the table.
static bool key_set(struct sim_gpu *gpu, const char *key, const char *value,
                    const struct place *place, size_t *out_index)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < KEYS; i++) {
        *out_index = i;
        if (strcmp(key, keys[i].name) == 0)
            return set(gpu, &keys[i], value, place);
        nearest = weir_text_nearer(key, nearest, keys[i].name);
    }
    if (nearest)
        return refuse(place, "[gpu] has no key '%s'; did you mean '%s'?", key, nearest);
    return refuse(place, "[gpu] has no key '%s'; conf/gpus/reference.ini has all", key);
}

// Sets every key that `seen` does not have to its default; refuses the GPU if it has none.
static bool keys_fill(struct sim_gpu *gpu, const bool seen[KEYS], const struct place *place)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (seen[i])
            continue;
        if (!keys[i].fallback)
            return refuse(place, "[gpu] lacks '%s'; conf/gpus/reference.ini tells what it is",
                          keys[i].name);
        if (!set(gpu, &keys[i], keys[i].fallback, place))
            return false;
    }
    return true;
}

// Whether the keys go together.
static bool keys_check(const struct sim_gpu *gpu, const struct place *place)
{
    const struct sim_model *model = &gpu->model;
    const struct sim_link *up = &model->copies[SIM_H2D];
    const struct sim_link *down = &model->copies[SIM_D2H];
    if (up->both_bytes_per_s > up->bytes_per_s)
        return refuse(place, "'h2d_both_gb_per_s' is more than 'h2d_gb_per_s', that of a copy "
                             "alone; one of them is wrong");
    if (down->both_bytes_per_s > down->bytes_per_s)
        return refuse(place, "'d2h_both_gb_per_s' is more than 'd2h_gb_per_s', that of a copy "
                             "alone; one of them is wrong");
    if (up->both_latency_ns && up->both_latency_ns < up->latency_ns)
        return refuse(place, "'copy_both_latency_ns' is 0 or at least 'copy_latency_ns', that "
                             "of a copy alone");
    return true;
}

// Costs of kernels: those of the file that is read come after the others, until all of it was read.

#define MOST_COST_NS 1e15

// Of the kernels from `first` on.
static void drop_costs(struct sim_gpu *gpu, size_t first)
{
    for (size_t i = first; i < gpu->model.cost_count; i++)
        free((char *)gpu->costs[i].kernel);
    gpu->model.cost_count = first;
}

// Adds a kernel without costs to those of a file; false with a message.
static bool add_cost(struct sim_gpu *gpu, size_t first, const char *name, const struct place *place)
{
    if (gpu->model.cost_count - first == SIM_MOST_KERNELS)
        return refuse(place, "more than %d kernels; remove those that the program does not use",
                      SIM_MOST_KERNELS);
    struct sim_cost *costs =
        weir_grow(gpu->costs, gpu->model.cost_count, &gpu->cost_room, sizeof *costs);
    if (costs)
        gpu->model.costs = gpu->costs = costs;
    char *copy = costs ? strdup(name) : NULL;
    if (!copy)
        return refuse(place, "there is no memory for the kernel");
    costs[gpu->model.cost_count++] = (struct sim_cost){.kernel = copy};
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

// Sets the key of [kernel NAME] from its text.
static bool set_cost(struct sim_cost *cost, const char *key, const char *value,
                     const struct place *place)
{
    double number;
    const size_t term = term_of(key);
    if (term == SIM_TERMS)
        return refuse(place,
                      "[kernel %s] has no key '%s'; its keys are fixed_ns, per_block_ns, "
                      "per_item_ns, per_byte_ns, per_argument_0_ns to per_argument_%d_ns and "
                      "per_item_argument_0_ns to per_item_argument_%d_ns",
                      cost->kernel, key, SIM_ARGUMENTS - 1, SIM_ARGUMENTS - 1);
    if (!sim_read_number(value, true, &number) || !(number <= MOST_COST_NS))
        return refuse(place, "'%s' of [kernel %s] is a number from 0 to %g, not '%s'", key,
                      cost->kernel, MOST_COST_NS, value);
    cost->factors[term] = number;
    return true;
}

// Files.

// The device that costs are of.
struct learnt {
    unsigned line; // 0: not told
    char device[128];
    bool processor;
    bool has_kind;
};

struct reader {
    struct sim_gpu *gpu;
    bool costs_alone;
    size_t first_cost;
    struct place place;
    unsigned gpu_line; // 0: no [gpu] yet
    struct learnt learnt;
    bool seen[KEYS];
};

static const char kind[] = "kernel";

static bool begin_section(struct reader *reader, const char *name, bool has_keys)
{
    const char *kernel = name + sizeof kind;
    if (strcmp(name, "gpu") == 0) {
        reader->gpu_line = reader->place.line;
        return !reader->costs_alone ||
               refuse(&reader->place, "a file of costs has [kernel NAME] sections alone; a "
                                      "model with [gpu] is named as the GPU");
    }
    if (strcmp(name, "learnt") == 0) {
        reader->learnt.line = reader->place.line;
        return true;
    }
    if (strncmp(name, "kernel ", sizeof kind) != 0)
        return refuse(&reader->place, "unknown section [%s]; a model has [gpu] and [kernel NAME]",
                      name);
    if (!has_keys) // it would be a cost of nothing
        return refuse(&reader->place, "[kernel %s] has no cost; write fixed_ns, or remove it",
                      kernel);
    return add_cost(reader->gpu, reader->first_cost, kernel, &reader->place);
}

static bool set_learnt(struct reader *reader, const char *key, const char *value)
{
    struct learnt *learnt = &reader->learnt;
    const bool is_kind = strcmp(key, "kind") == 0;
    if (!is_kind && strcmp(key, "device") != 0)
        return refuse(&reader->place, "[learnt] has no key '%s'; it has device and kind", key);
    if (!is_kind)
        snprintf(learnt->device, sizeof learnt->device, "%s", value);
    learnt->has_kind = learnt->has_kind || is_kind;
    return !is_kind ||
           read_word("'kind' of [learnt]", kind_words, value, &reader->place, &learnt->processor);
}

static bool take_key(struct reader *reader, const struct weir_ini_entry *entry)
{
    struct sim_gpu *gpu = reader->gpu;
    size_t index;
    if (strcmp(entry->section, "learnt") == 0)
        return set_learnt(reader, entry->key, entry->value);
    if (strcmp(entry->section, "gpu") != 0)
        return set_cost(&gpu->costs[gpu->model.cost_count - 1], entry->key, entry->value,
                        &reader->place);
    if (!key_set(gpu, entry->key, entry->value, &reader->place, &index))
        return false;
    reader->seen[index] = true;
    return true;
}

static bool end_text(struct reader *reader)
{
    reader->place.line = reader->gpu_line;
    if (reader->costs_alone)
        return reader->gpu->model.cost_count > reader->first_cost ||
               refuse(&reader->place, "there is no [kernel NAME]; weir sim learn writes some");
    if (!reader->gpu_line)
        return refuse(&reader->place, "there is no [gpu]; conf/gpus/reference.ini shows one");
    return keys_fill(reader->gpu, reader->seen, &reader->place) &&
           keys_check(reader->gpu, &reader->place);
}

// Reads the text of the file that `place` names.
static bool parse_text(const struct place *place, const char *text, size_t size,
                       struct sim_gpu *gpu, bool costs_alone, struct learnt *out_learnt)
{
    static const struct weir_ini_rules rules = {
        .kind = kind,
        .sectionless_remedy = "put it under [gpu]",
        .section_limit = SIM_MOST_KERNELS + 3,
    };
    struct reader reader = {
        .gpu = gpu,
        .costs_alone = costs_alone,
        .first_cost = gpu->model.cost_count,
        .place = *place,
    };
    struct weir_ini ini;
    struct weir_ini_refusal refusal;
    bool fine = weir_ini_read(text, size, &rules, &ini, &refusal);
    if (!fine) {
        const char *remedy = refusal.remedy;
        reader.place.line = refusal.line;
        return refuse(&reader.place, "%s%s%s", refusal.sentence, remedy ? "; " : "",
                      remedy ? remedy : "");
    }
    for (size_t i = 0; i < ini.count && fine; i++) {
        const struct weir_ini_entry *entry = &ini.entries[i];
        reader.place.line = entry->line;
        fine = entry->key ? take_key(&reader, entry)
                          : begin_section(&reader, entry->section,
                                          i + 1 < ini.count && ini.entries[i + 1].key);
    }
    weir_ini_finish(&ini);
    *out_learnt = reader.learnt;
    return fine && end_text(&reader);
}

// GPUs.

void sim_gpu_destroy(struct sim_gpu **gpu)
{
    if (!*gpu)
        return;
    drop_costs(*gpu, 0);
    free((*gpu)->costs);
    free((*gpu)->name);
    free(*gpu);
    *gpu = NULL;
}

static int compare_costs(const void *a, const void *b)
{
    return strcmp(((const struct sim_cost *)a)->kernel, ((const struct sim_cost *)b)->kernel);
}

bool sim_kernel_ns(const struct sim_model *model, const struct sim_launch *launch, uint64_t *out_ns)
{
    const struct sim_cost wanted = {.kernel = launch->kernel};
    const struct sim_cost *cost =
        model->cost_count
            ? bsearch(&wanted, model->costs, model->cost_count, sizeof wanted, compare_costs)
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

// The costs from `first` on replace those of the same kernels.
static void merge(struct sim_gpu *gpu, size_t first)
{
    struct sim_cost *costs = gpu->costs;
    size_t count = first;
    for (size_t i = first; i < gpu->model.cost_count; i++) {
        struct sim_cost *same =
            first ? bsearch(&costs[i], costs, first, sizeof *costs, compare_costs) : NULL;
        if (same)
            free((char *)same->kernel);
        *(same ? same : &costs[count++]) = costs[i];
    }
    if (count > 0)
        qsort(costs, count, sizeof *costs, compare_costs);
    gpu->model.cost_count = count;
}

// A model's own costs are of what it models, unless it says otherwise too.
static bool match_kinds(const struct learnt *learnt, struct sim_gpu *gpu, size_t first,
                        double scale, struct place place)
{
    const struct sim_model *model = &gpu->model;
    static const char *const kinds[] = {"a GPU", "a processor"};
    if (!learnt->has_kind || learnt->processor == model->processor)
        return true;
    for (size_t i = first; i < model->cost_count && scale > 0; i++)
        for (size_t term = 0; term < SIM_TERMS; term++)
            gpu->costs[i].factors[term] *= scale;
    place.line = learnt->line;
    return scale > 0 ||
           refuse(&place,
                  "these costs were learnt on %s%s%s, and the model '%s' is that of %s: learn "
                  "them there, or say what part of that time it takes, such as `weir sim "
                  "--scale 0.05`, or kernel_scale of [sim]",
                  kinds[learnt->processor], *learnt->device ? ", " : "", learnt->device,
                  model->name, kinds[model->processor]);
}

static bool parse(struct sim_gpu *gpu, bool costs_alone, double scale, const char *text,
                  size_t size, const struct place *place)
{
    const size_t first = gpu->model.cost_count;
    struct learnt learnt;
    const bool fine = parse_text(place, text, size, gpu, costs_alone, &learnt) &&
                      match_kinds(&learnt, gpu, first, scale, *place);
    if (fine)
        merge(gpu, first);
    else
        drop_costs(gpu, first);
    return fine;
}

static bool read_file(struct sim_gpu *gpu, bool costs_alone, double scale,
                      const struct place *place)
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

static bool read_carried(struct sim_gpu *gpu, const struct place *place)
{
    const char *nearest = NULL;
    char list[256];
    size_t used = 0;
    for (size_t i = 0; i < CARRIED; i++) {
        if (strcmp(place->label, carried[i].name) == 0)
            return parse(gpu, false, 0, *carried[i].text, strlen(*carried[i].text), place);
        nearest = weir_text_nearer(place->label, nearest, carried[i].name);
        weir_text_append(list, sizeof list, &used, "%s%s", i ? ", " : "", carried[i].name);
    }
    if (nearest)
        return refuse(place, "no GPU of that name is known; did you mean '%s'?", nearest);
    return refuse(place,
                  "no GPU of that name is known; choose one of %s, or name a file, such as "
                  "./gpu.ini",
                  list);
}

static struct place place_of(const char *label, char *message, size_t message_size)
{
    message[0] = '\0';
    return (struct place){.label = label, .message = message, .message_size = message_size};
}

bool sim_gpu_open(const char *name, struct sim_gpu **out_gpu, char *message, size_t message_size)
{
    const struct place place = place_of(name, message, message_size);
    const size_t length = strlen(name);
    const bool is_path =
        strchr(name, '/') || (length > 4 && strcmp(name + length - 4, ".ini") == 0);
    struct sim_gpu *gpu = calloc(1, sizeof *gpu);
    *out_gpu = NULL;
    if (!gpu)
        return refuse(&place, "there is no memory for the model");
    if (is_path ? read_file(gpu, false, 0, &place) : read_carried(gpu, &place))
        *out_gpu = gpu;
    else
        sim_gpu_destroy(&gpu);
    return *out_gpu != NULL;
}

bool sim_gpu_add_costs(struct sim_gpu *gpu, const char *path, double scale, char *message,
                       size_t message_size)
{
    const struct place place = place_of(path, message, message_size);
    return read_file(gpu, true, scale, &place);
}

// "key=value", trimmed.
static bool change_one(struct sim_gpu *gpu, char *text, struct place *place)
{
    char *equals = strchr(text, '=');
    size_t index;
    place->label = text;
    if (!equals)
        return refuse(place, "a change is KEY=VALUE");
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(text, " \t="), text);
    return key_set(gpu, key, equals + 1 + strspn(equals + 1, " \t"), place, &index);
}

bool sim_gpu_change(struct sim_gpu *gpu, const char *changes, char *message, size_t message_size)
{
    struct place place = place_of(changes, message, message_size);
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
            return refuse(&place, "a change is KEY=VALUE, and shorter");
        if (!change_one(gpu, text, &place))
            return false;
        at = next;
    }
    place.label = changes;
    return keys_check(gpu, &place);
}
