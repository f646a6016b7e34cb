#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sim/model_parts.h"

#define MOST_COST_NS 1e15

enum {
    FIELDS = SIM_COST_KEYS - 2 * SIM_ARGUMENTS // that do not depend on an argument
};

void sim_costs_finish(struct sim_costs *costs)
{
    for (size_t i = 0; i < costs->count; i++)
        free((char *)costs->items[i].kernel);
    free(costs->items);
    free(costs->lines);
    *costs = (struct sim_costs){0};
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
    const size_t capacity = count ? 2 * count : 1;
    struct sim_cost *items = realloc(costs->items, capacity * sizeof *items);
    if (items)
        costs->items = items;
    unsigned *lines = items ? realloc(costs->lines, capacity * sizeof *lines) : NULL;
    if (lines)
        costs->lines = lines;
    return lines != NULL;
}

bool sim_costs_add(struct sim_costs *costs, const char *name, size_t length,
                   const struct sim_place *place)
{
    for (size_t i = 0; i < costs->count; i++)
        if (is_named(&costs->items[i], name, length))
            return sim_refuse(place,
                              "section [kernel %.*s] is already in line %u; keep one of them",
                              (int)length, name, costs->lines[i]);
    if (costs->count == SIM_MOST_KERNELS)
        return sim_refuse(place, "more than %d kernels; remove those that the program does not use",
                          SIM_MOST_KERNELS);
    char *copy = make_room(costs) ? strndup(name, length) : NULL;
    if (!copy)
        return sim_refuse(place, "there is no memory for the kernel");
    costs->items[costs->count] = (struct sim_cost){.kernel = copy};
    costs->lines[costs->count++] = place->line;
    return true;
}

// "PREFIXn_ns": n, or -1.
static int argument_of(const char *key, const char *prefix)
{
    const size_t length = strlen(prefix);
    if (strncmp(key, prefix, length) != 0)
        return -1;
    for (int i = 0; i < SIM_ARGUMENTS; i++) {
        char rest[16];
        snprintf(rest, sizeof rest, "%d_ns", i);
        if (strcmp(key + length, rest) == 0)
            return i;
    }
    return -1;
}

// The number of a key, or SIM_COST_KEYS.
static size_t index_of(const char *key)
{
    static const char *const fields[] = {"fixed_ns", "per_block_ns", "per_item_ns", "per_byte_ns"};
    for (size_t i = 0; i < FIELDS; i++)
        if (strcmp(key, fields[i]) == 0)
            return i;
    int argument = argument_of(key, "per_argument_");
    if (argument >= 0)
        return FIELDS + (size_t)argument;
    argument = argument_of(key, "per_item_argument_");
    return argument >= 0 ? FIELDS + SIM_ARGUMENTS + (size_t)argument : SIM_COST_KEYS;
}

static void store(struct sim_cost *cost, size_t index, double number)
{
    double *const fields[FIELDS] = {&cost->fixed_ns, &cost->per_block_ns, &cost->per_item_ns,
                                    &cost->per_byte_ns};
    if (index < FIELDS)
        *fields[index] = number;
    else if (index < FIELDS + SIM_ARGUMENTS)
        cost->per_argument_ns[index - FIELDS] = number;
    else
        cost->per_item_argument_ns[index - FIELDS - SIM_ARGUMENTS] = number;
}

bool sim_cost_set(struct sim_cost *cost, const char *key, const char *value,
                  const struct sim_place *place, size_t *out_index)
{
    double number;
    *out_index = index_of(key);
    if (*out_index == SIM_COST_KEYS)
        return sim_refuse(place,
                          "[kernel %s] has no key '%s'; its keys are fixed_ns, per_block_ns, "
                          "per_item_ns, per_byte_ns, per_argument_0_ns to per_argument_%d_ns and "
                          "per_item_argument_0_ns to per_item_argument_%d_ns",
                          cost->kernel, key, SIM_ARGUMENTS - 1, SIM_ARGUMENTS - 1);
    if (!sim_read_number(value, true, &number) || !(number <= MOST_COST_NS))
        return sim_refuse(place, "'%s' of [kernel %s] is a number from 0 to %g, not '%s'", key,
                          cost->kernel, MOST_COST_NS, value);
    store(cost, *out_index, number);
    return true;
}
