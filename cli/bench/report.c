// The figures of a benchmark: tables on the terminal, JSON, and the plot.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/common/output.h"
#include "cli/common/signals.h"

// Filling.

struct bench_table *bench_table(struct bench *bench, const char *key, const char *title,
                                const struct bench_column *columns, size_t column_count)
{
    const size_t index =
        bench->table_count < BENCH_TABLES_MAX ? bench->table_count++ : BENCH_TABLES_MAX - 1;
    struct bench_table *table = &bench->tables[index];
    free(table->cells);
    *table = (struct bench_table){.key = key, .column_count = column_count};
    snprintf(table->title, sizeof table->title, "%s", title);
    memcpy(table->columns, columns, column_count * sizeof *columns);
    return table;
}

static struct bench_cell *next_cell(struct bench_table *table)
{
    static struct bench_cell spare;
    if (table->count == table->capacity && !table->incomplete) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 64;
        struct bench_cell *cells = realloc(table->cells, capacity * sizeof *cells);
        table->incomplete = !cells;
        if (cells) {
            table->cells = cells;
            table->capacity = capacity;
        }
    }
    if (table->incomplete)
        return &spare;
    struct bench_cell *cell = &table->cells[table->count++];
    *cell = (struct bench_cell){0};
    return cell;
}

void bench_row(struct bench_table *table, ...)
{
    va_list arguments;
    va_start(arguments, table);
    for (size_t i = 0; i < table->column_count; i++) {
        struct bench_cell *cell = next_cell(table);
        const enum bench_cell_kind kind = table->columns[i].kind;
        if (kind == BENCH_TEXT) {
            snprintf(cell->text, sizeof cell->text, "%s", va_arg(arguments, const char *));
        } else if (kind == BENCH_NUMBER) {
            cell->number = va_arg(arguments, double);
        } else {
            const struct bench_samples *samples = va_arg(arguments, const struct bench_samples *);
            cell->empty = samples->count == 0;
            cell->spread = bench_spread(samples);
        }
    }
    va_end(arguments);
}

static bool check_tables(const struct bench *bench)
{
    for (size_t i = 0; i < bench->table_count; i++)
        if (bench->tables[i].incomplete) {
            cli_error("no memory for all of the figures");
            return false;
        }
    return true;
}

// Plots.

static void add_point(struct bench *bench, const char *series, double x,
                      const struct bench_samples *samples)
{
    const struct bench_spread spread = bench_spread(samples);
    cli_plot_add(cli_plot_series(&bench->plot, series),
                 (struct cli_plot_point){x, spread.median, spread.minimum, spread.maximum});
}

void bench_plot_bar(struct bench *bench, const char *series, const char *group,
                    const struct bench_samples *samples)
{
    if (samples->count > 0)
        add_point(bench, series, (double)cli_plot_group(&bench->plot, group), samples);
}

void bench_plot_point(struct bench *bench, const char *series, double x,
                      const struct bench_samples *samples)
{
    if (samples->count > 0)
        add_point(bench, series, x, samples);
}

// How many turns were kept.
static unsigned long long turns_of(const struct bench *bench)
{
    return cli_signal() && bench->turn <= bench->turns ? bench->turn - 1 : bench->turns;
}

// Text.

static void alignment_of(const struct bench_table *table, char *alignment)
{
    for (size_t i = 0; i < table->column_count; i++) {
        *alignment++ = table->columns[i].kind == BENCH_TEXT ? 'l' : 'r';
        if (table->columns[i].kind == BENCH_SPREAD)
            *alignment++ = 'l';
    }
    *alignment = '\0';
}

static void add_cell(struct weir_table *to, const struct bench_column *column,
                     const struct bench_cell *cell)
{
    const struct bench_spread *spread = &cell->spread;
    switch (column->kind) {
    case BENCH_TEXT:
        weir_table_add(to, "%s", cell->text);
        break;
    case BENCH_NUMBER:
        weir_table_add(to, "%.*f", column->decimals, cell->number);
        break;
    case BENCH_SPREAD:
        if (cell->empty) {
            weir_table_add(to, "%s", "");
            weir_table_add(to, "%s", "");
            break;
        }
        weir_table_add(to, "%.*f", column->decimals, spread->median);
        weir_table_add(to, "%.*f .. %.*f", column->decimals, spread->minimum, column->decimals,
                       spread->maximum);
        break;
    }
}

static void print_table(const struct bench_table *table)
{
    char alignment[64];
    struct weir_table to = {.alignment = alignment};
    alignment_of(table, alignment);
    for (size_t i = 0; i < table->column_count; i++) {
        weir_table_add(&to, "%s", table->columns[i].head);
        if (table->columns[i].kind == BENCH_SPREAD)
            weir_table_add(&to, "%s", "");
    }
    for (size_t i = 0; i < table->count; i++)
        add_cell(&to, &table->columns[i % table->column_count], &table->cells[i]);
    printf("\n%s\n", table->title);
    cli_table_print(&to, stdout, 2);
}

static void print_head(const struct bench *bench)
{
    printf("%s", bench->command);
    if (bench->device) {
        const struct weir_device_info *info = weir_device_get_info(bench->device);
        printf(" on %s (%s, %s)", info->name, weir_runtime_backend(bench->runtime), info->driver);
    }
    printf("\nmedian of %llu turn%s, smallest .. largest", turns_of(bench),
           turns_of(bench) == 1 ? "" : "s");
    for (size_t i = 0; i < bench->parameter_count; i++)
        printf("; %s %.6g", bench->parameters[i].key, bench->parameters[i].value);
    printf("; %llu results checked\n", (unsigned long long)bench->checked);
}

static void print_text(const struct bench *bench)
{
    print_head(bench);
    for (size_t i = 0; i < bench->table_count; i++)
        if (bench->tables[i].count > 0)
            print_table(&bench->tables[i]);
    for (size_t i = 0; i < bench->note_count; i++)
        printf("%snote: %s\n", i == 0 ? "\n" : "", bench->notes[i]);
}

// JSON.

static json_t *cell_value(const struct bench_column *column, const struct bench_cell *cell,
                          bool *ok)
{
    if (column->kind == BENCH_TEXT)
        return cli_json_string(cell->text);
    if (column->kind == BENCH_NUMBER)
        return json_real(cell->number);
    if (cell->empty)
        return json_null();
    json_t *object = json_object();
    weir_json_set(object, "median", json_real(cell->spread.median), ok);
    weir_json_set(object, "min", json_real(cell->spread.minimum), ok);
    weir_json_set(object, "max", json_real(cell->spread.maximum), ok);
    return object;
}

static json_t *row_value(const struct bench_table *table, size_t first, bool *ok)
{
    json_t *row = json_object();
    for (size_t i = 0; i < table->column_count; i++)
        weir_json_set(row, table->columns[i].key,
                      cell_value(&table->columns[i], &table->cells[first + i], ok), ok);
    return row;
}

static json_t *table_value(const struct bench_table *table, bool *ok)
{
    json_t *rows = json_array();
    for (size_t i = 0; i + table->column_count <= table->count; i += table->column_count)
        weir_json_append(rows, row_value(table, i, ok), ok);
    return rows;
}

static void set_device(json_t *root, const struct bench *bench, bool *ok)
{
    if (!bench->device)
        return;
    const struct weir_device_info *info = weir_device_get_info(bench->device);
    weir_json_set(root, "backend", cli_json_string(weir_runtime_backend(bench->runtime)), ok);
    weir_json_set(root, "device", cli_json_string(info->name), ok);
    weir_json_set(root, "driver", cli_json_string(info->driver), ok);
}

static json_t *report_value(const struct bench *bench, const char *name, bool *ok)
{
    json_t *root = json_object();
    json_t *parameters = json_object();
    json_t *tables = json_object();
    json_t *notes = json_array();
    for (size_t i = 0; i < bench->parameter_count; i++)
        weir_json_set(parameters, bench->parameters[i].key, json_real(bench->parameters[i].value),
                      ok);
    for (size_t i = 0; i < bench->table_count; i++)
        weir_json_set(tables, bench->tables[i].key, table_value(&bench->tables[i], ok), ok);
    for (size_t i = 0; i < bench->note_count; i++)
        weir_json_append(notes, cli_json_string(bench->notes[i]), ok);
    weir_json_set(root, "weir", json_string(weir_version()), ok);
    weir_json_set(root, "benchmark", json_string(name), ok);
    set_device(root, bench, ok);
    weir_json_set(root, "turns", weir_json_count(turns_of(bench)), ok);
    weir_json_set(root, "results_checked", weir_json_count(bench->checked), ok);
    weir_json_set(root, "parameters", parameters, ok);
    weir_json_set(root, "tables", tables, ok);
    weir_json_set(root, "notes", notes, ok);
    return root;
}

static int print_json(const struct bench *bench, const char *name)
{
    bool ok = true;
    json_t *root = report_value(bench, name, &ok);
    return cli_json_print(root, ok, CLI_OK);
}

static int save_json(const struct bench *bench, const char *name)
{
    bool ok = true;
    size_t size = 0;
    json_t *root = report_value(bench, name, &ok);
    char *text = weir_json_text(root, ok, CLI_JSON_TEXT, &size);
    return cli_write_file(bench->save_path, text, size, "the JSON text") ? CLI_OK : CLI_FAILED;
}

// Under the title of the plot: where the figures come from.
static void write_subtitle(struct bench *bench)
{
    struct cli_plot *plot = &bench->plot;
    const struct weir_device_info *info =
        bench->device ? weir_device_get_info(bench->device) : NULL;
    snprintf(plot->subtitle, sizeof plot->subtitle,
             "%s%s%s%smedian of %llu turns, with the smallest and the largest",
             info ? info->name : "", info ? " (" : "",
             info ? weir_runtime_backend(bench->runtime) : "", info ? "), " : "", turns_of(bench));
}

int bench_report(struct bench *bench, const char *name)
{
    int code = CLI_OK;
    if (!check_tables(bench))
        return CLI_FAILED;
    if (bench->json)
        code = print_json(bench, name);
    else
        print_text(bench);
    if (bench->save_path && save_json(bench, name) != CLI_OK)
        code = CLI_FAILED;
    if (bench->plot_path) {
        write_subtitle(bench);
        if (!cli_plot_write(&bench->plot, bench->plot_path))
            code = CLI_FAILED;
    }
    return code;
}
