// Launches of kernels in traces, and the sum of terms that tells their times best.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/own.h"
#include "cli/sim/fit.h"

// A launch beside another kernel took longer than it would have alone, which says nothing about what
// it takes, so it is counted and left out.

enum {
    ARGUMENTS = 16 // of a kernel, on which a model's cost may depend
};

// One operation of the kernels' engine.
struct run {
    const struct weir_trace_operation *operation;
    uint32_t device;
    bool beside;
};

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->operation->start_ns != y->operation->start_ns)
        return x->operation->start_ns < y->operation->start_ns ? -1 : 1;
    return 0;
}

// It is enough to compare each run with the one of those before it that ends last: if an earlier
// one is also at work then, these two were at work together.
static void mark_beside(struct run *runs, size_t count)
{
    size_t last = 0;
    for (size_t i = 1; i < count; i++) {
        const bool same = runs[i].device == runs[last].device;
        if (same && runs[i].operation->start_ns < runs[last].operation->end_ns)
            runs[i].beside = runs[last].beside = true;
        if (!same || runs[i].operation->end_ns > runs[last].operation->end_ns)
            last = i;
    }
}

static size_t take_runs(struct run *runs, const struct weir_trace *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        if (operation->timed && operation->engine == WEIR_ENGINE_KERNELS)
            runs[count++] = (struct run){
                .operation = operation,
                .device = trace->queues[operation->queue_index].device,
            };
    }
    qsort(runs, count, sizeof *runs, compare_runs);
    mark_beside(runs, count);
    return count;
}

// The kernel of that name; the list is in their order.
static struct sim_kernel *kernel_of(struct sim_kernels *kernels, const char *name)
{
    size_t low = 0;
    size_t high = kernels->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(kernels->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < kernels->count && strcmp(kernels->items[low].name, name) == 0)
        return &kernels->items[low];
    struct sim_kernel *items =
        cli_grow(kernels->items, kernels->count, &kernels->capacity, sizeof *items);
    kernels->items = items;
    memmove(&items[low + 1], &items[low], (kernels->count++ - low) * sizeof *items);
    items[low] = (struct sim_kernel){.name = name};
    return &items[low];
}

static double volume(const uint32_t extent[3])
{
    return (double)extent[0] * extent[1] * extent[2];
}

// Where the argument of that place is among the kernel's scalars, or SIM_SCALARS.
static size_t scalar_of(struct sim_kernel *kernel, uint32_t argument)
{
    size_t i = 0;
    while (i < kernel->argument_count && kernel->arguments[i] != argument)
        i++;
    if (i == kernel->argument_count && i < SIM_SCALARS && argument < ARGUMENTS)
        kernel->arguments[kernel->argument_count++] = argument;
    return i < kernel->argument_count ? i : SIM_SCALARS;
}

static void add_scalars(struct sim_kernel *kernel, struct sim_launch *launch,
                        const struct weir_trace_operation *operation)
{
    for (size_t i = 0; i < operation->scalar_count; i++) {
        const size_t scalar = scalar_of(kernel, operation->scalars[i].argument);
        const double value = operation->scalars[i].value;
        if (scalar == SIM_SCALARS || !isfinite(value))
            continue;
        launch->terms[SIM_TERM_ARGUMENT + scalar] = value;
        launch->terms[SIM_TERM_ITEM_ARGUMENT + scalar] = value * launch->terms[SIM_TERM_ITEM];
    }
}

static void add_launch(struct sim_kernel *kernel, const struct weir_trace_operation *operation)
{
    struct sim_launch *launches =
        cli_grow(kernel->launches, kernel->count, &kernel->capacity, sizeof *launches);
    const double blocks = volume(operation->grid);
    kernel->launches = launches;
    launches[kernel->count] = (struct sim_launch){
        .terms = {1, blocks * volume(operation->block), blocks, (double)operation->argument_bytes},
        .ns = (double)(operation->end_ns - operation->start_ns),
    };
    add_scalars(kernel, &launches[kernel->count++], operation);
}

size_t sim_kernels_add(struct sim_kernels *kernels, const struct weir_trace *trace)
{
    struct run *runs = cli_allocate(trace->operation_count + 1, sizeof *runs);
    const size_t count = take_runs(runs, trace);
    size_t launches = 0;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].operation->kind != WEIR_TRACE_LAUNCH)
            continue;
        struct sim_kernel *kernel = kernel_of(kernels, runs[i].operation->name);
        launches++;
        if (runs[i].beside)
            kernel->beside++;
        else if (runs[i].operation->start_is_earliest)
            kernel->inexact++;
        else
            add_launch(kernel, runs[i].operation);
    }
    return launches;
}

// Least squares.
// Every set of a few terms is tried: with the terms of a set, and no bound, the least squares are
// the solution of its normal equations, and the best of the sets whose solution has no negative
// factor is the best non-negative one.

// Pivots below this, of columns of length 1, are those of terms that others in the set explain.
#define LEAST_PIVOT 1e-9
// Squared relative errors below this count as none: clocks are no better.
#define LEAST_SQUARE 1e-10
// Criteria that differ by less than this are equal: rounding makes them differ.
#define EQUAL 0.05

// Launches of one size.
struct size {
    double terms[SIM_TERM_COUNT]; // over the median time
};

// The equations of all terms, in units in which their diagonal is 1.
struct equations {
    double products[SIM_TERM_COUNT][SIM_TERM_COUNT];
    double right[SIM_TERM_COUNT];
    double units[SIM_TERM_COUNT]; // 0: the term is 0 in all launches, or negative in some, or a
                                  // multiple of another
};

static int compare_sizes(const struct sim_launch *a, const struct sim_launch *b)
{
    for (int term = 0; term < SIM_TERM_COUNT; term++)
        if (a->terms[term] != b->terms[term])
            return a->terms[term] < b->terms[term] ? -1 : 1;
    return 0;
}

static int compare_launches(const void *a, const void *b)
{
    const struct sim_launch *x = a;
    const struct sim_launch *y = b;
    const int sizes = compare_sizes(x, y);
    return sizes ? sizes : (x->ns > y->ns) - (x->ns < y->ns);
}

// The launches are sorted. Times of 0 are those of clocks that are too coarse.
static size_t take_sizes(const struct sim_kernel *kernel, struct size *sizes)
{
    const struct sim_launch *launches = kernel->launches;
    size_t count = 0;
    for (size_t i = 0, next; i < kernel->count; i = next) {
        for (next = i + 1;
             next < kernel->count && compare_sizes(&launches[i], &launches[next]) == 0;)
            next++;
        // The lower one of two: slow launches are the exceptions.
        const double median = fmax(launches[i + (next - i - 1) / 2].ns, 1);
        for (int term = 0; term < SIM_TERM_COUNT; term++)
            sizes[count].terms[term] = launches[i].terms[term] / median;
        count++;
    }
    return count;
}

static void scale(struct equations *equations)
{
    for (int i = 0; i < SIM_TERM_COUNT; i++)
        equations->units[i] = sqrt(equations->products[i][i]);
    for (int i = 0; i < SIM_TERM_COUNT; i++) {
        const double unit = equations->units[i] > 0 ? equations->units[i] : 1;
        equations->right[i] /= unit;
        for (int j = 0; j < SIM_TERM_COUNT; j++) {
            equations->products[i][j] /= unit;
            equations->products[j][i] /= unit;
        }
    }
}

static struct equations make_equations(const struct size *sizes, size_t count)
{
    struct equations equations = {0};
    bool negative[SIM_TERM_COUNT] = {false};
    const double share = 1 / (double)count;
    for (size_t s = 0; s < count; s++)
        for (int i = 0; i < SIM_TERM_COUNT; i++) {
            negative[i] = negative[i] || sizes[s].terms[i] < 0;
            equations.right[i] += share * sizes[s].terms[i];
            for (int j = 0; j < SIM_TERM_COUNT; j++)
                equations.products[i][j] += share * sizes[s].terms[i] * sizes[s].terms[j];
        }
    scale(&equations);
    for (int i = 0; i < SIM_TERM_COUNT; i++)
        if (negative[i])
            equations.units[i] = 0;
    // Of multiples of each other the first stays: rounding would choose among them.
    for (int i = 1; i < SIM_TERM_COUNT; i++)
        for (int j = 0; j < i; j++)
            if (equations.units[j] > 0 && equations.products[i][j] > 1 - LEAST_PIVOT)
                equations.units[i] = 0;
    return equations;
}

// Cholesky's decomposition of the set's equations. False if one of its terms is explained by others.
static bool decompose(const struct equations *equations, const int *set, int count,
                      double lower[SIM_TERM_COUNT][SIM_TERM_COUNT])
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j <= i; j++) {
            double sum = equations->products[set[i]][set[j]];
            for (int k = 0; k < j; k++)
                sum -= lower[i][k] * lower[j][k];
            if (i == j && !(sum > LEAST_PIVOT))
                return false;
            lower[i][j] = i == j ? sqrt(sum) : sum / lower[j][j];
        }
    return true;
}

// Solves the equations of a set; false if they have no solution without negative factors.
static bool solve(const struct equations *equations, const int *set, int count,
                  double factors[SIM_TERM_COUNT])
{
    double lower[SIM_TERM_COUNT][SIM_TERM_COUNT];
    double x[SIM_TERM_COUNT];
    if (!decompose(equations, set, count, lower))
        return false;
    for (int i = 0; i < count; i++) {
        x[i] = equations->right[set[i]];
        for (int k = 0; k < i; k++)
            x[i] -= lower[i][k] * x[k];
        x[i] /= lower[i][i];
    }
    for (int i = count; i-- > 0;) {
        for (int k = i + 1; k < count; k++)
            x[i] -= lower[k][i] * x[k];
        x[i] /= lower[i][i];
        if (!(x[i] > 0))
            return false;
        factors[set[i]] = x[i] / equations->units[set[i]];
    }
    return true;
}

// Of the sizes' errors, from the equations: their shares add up to 1.
static double square_of(const struct equations *equations, const int *set, int count,
                        const double *factors)
{
    double square = 1;
    for (int i = 0; i < count; i++) {
        const double x = factors[set[i]] * equations->units[set[i]];
        square -= 2 * x * equations->right[set[i]];
        for (int j = 0; j < count; j++)
            square += x * factors[set[j]] * equations->units[set[j]] *
                      equations->products[set[i]][set[j]];
    }
    return fmax(square, 0);
}

// Schwarz's criterion: less is better.
static double criterion(double square, size_t sizes, int terms)
{
    return (double)sizes * log(square + LEAST_SQUARE) + terms * log((double)sizes);
}

static int take_set(unsigned bits, const struct equations *equations, int set[SIM_TERM_COUNT])
{
    int count = 0;
    for (int term = 0; term < SIM_TERM_COUNT; term++)
        if (bits & 1u << term) {
            if (equations->units[term] == 0 || count == SIM_TERMS_AT_ONCE)
                return 0;
            set[count++] = term;
        }
    return count;
}

// Of equally good sets the one with the fewest terms, then the one with the first terms.
static void fit_sizes(const struct size *sizes, size_t size_count, double best[SIM_TERM_COUNT])
{
    const struct equations equations = make_equations(sizes, size_count);
    double least = INFINITY;
    int best_count = 0;
    for (unsigned bits = 1; bits < 1u << SIM_TERM_COUNT; bits++) {
        double factors[SIM_TERM_COUNT] = {0};
        int set[SIM_TERM_COUNT];
        const int count = take_set(bits, &equations, set);
        if (count == 0 || !solve(&equations, set, count, factors))
            continue;
        const double value =
            criterion(square_of(&equations, set, count, factors), size_count, count);
        const bool equal = fabs(value - least) < EQUAL;
        if (equal ? count < best_count : value < least) {
            least = value;
            best_count = count;
            memcpy(best, factors, sizeof factors);
        }
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

void sim_fit(struct sim_kernel *kernel, struct sim_fit *out_fit)
{
    struct size *sizes = cli_allocate(kernel->count, sizeof *sizes);
    double *errors = cli_allocate(kernel->count, sizeof *errors);
    *out_fit = (struct sim_fit){0};
    qsort(kernel->launches, kernel->count, sizeof *kernel->launches, compare_launches);
    out_fit->sizes = take_sizes(kernel, sizes);
    fit_sizes(sizes, out_fit->sizes, out_fit->factors);
    for (size_t i = 0; i < kernel->count; i++) {
        const double ns = fmax(kernel->launches[i].ns, 1);
        double told = 0;
        for (int term = 0; term < SIM_TERM_COUNT; term++)
            told += kernel->launches[i].terms[term] * out_fit->factors[term];
        errors[i] = fabs(told - ns) / ns;
    }
    qsort(errors, kernel->count, sizeof *errors, compare_numbers);
    out_fit->median = (errors[(kernel->count - 1) / 2] + errors[kernel->count / 2]) / 2;
    out_fit->worst = errors[kernel->count - 1];
}
