// One run is told as `weir trace report` does; of several there is a row for each, and how its span
// compares with the first one's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/status.h>

#include "base/json/json.h"
#include "base/table.h"
#include "cli/common/json.h"
#include "cli/common/table.h"
#include "cli/sim/sim.h"

static void add_head(struct weir_table *table)
{
    static const char *const head[] = {"gpu",  "span",  "of the first", "copies hidden",
                                       "idle", "bound", "what if"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        weir_table_add(table, "%s", head[i]);
}

// The share of the copies' time with compute beside it.
static void add_hidden(struct weir_table *table, const weir_report *report)
{
    struct weir_report_overlap overlap;
    if (weir_report_get_overlap(report, "copy", "compute", &overlap) < 0 || !overlap.applies)
        weir_table_add(table, "n/a");
    else
        weir_table_add(table, "%.1f %%", 100 * overlap.least);
}

static void add_row(struct weir_table *table, const struct sim_run *run, double first_ns)
{
    const struct weir_report_summary *summary = weir_report_get_summary(run->report);
    const double span_ns = (double)summary->span_ns;
    char text[WEIR_TEXT_QUANTITY_SIZE];
    weir_table_add(table, "%s", run->gpu);
    weir_table_add(table, "%s", weir_text_duration(text, span_ns));
    weir_table_add(table, first_ns > 0 ? "%.3f" : "n/a", span_ns / first_ns);
    add_hidden(table, run->report);
    weir_table_add(table, "%.1f %%", span_ns > 0 ? 100 * (double)summary->idle_ns / span_ns : 0.0);
    weir_table_add(table, "%s %s", weir_text_duration(text, (double)summary->bound_ns),
                   summary->bound_engine ? summary->bound_engine : "");
    weir_table_add(table, "%s", *run->what_if ? run->what_if : "-");
}

int cli_sim_tell(const struct sim_runs *runs)
{
    if (runs->count == 1) {
        char *text = weir_report_text(runs->items[0].report);
        if (!text)
            return cli_weir_error();
        fputs(text, stdout);
        weir_report_free_text(&text);
        return CLI_OK;
    }
    const double first = (double)weir_report_get_summary(runs->items[0].report)->span_ns;
    struct weir_table table = {.alignment = "lrrrrll"};
    add_head(&table);
    for (size_t i = 0; i < runs->count; i++)
        add_row(&table, &runs->items[i], first);
    cli_table_print(&table, stdout, 0);
    return CLI_OK;
}

static json_t *run_json(const struct sim_run *run, bool *ok)
{
    json_t *object = json_object();
    char *text = weir_report_json(run->report);
    weir_json_set(object, "gpu", cli_json_string(run->gpu), ok);
    weir_json_set(object, "what_if", cli_json_string(run->what_if), ok);
    weir_json_set(object, "trace", cli_json_string(run->trace), ok);
    weir_json_set(object, "report", text ? weir_json_load(text, strlen(text), 0, NULL) : NULL, ok);
    weir_report_free_text(&text);
    return object;
}

int cli_sim_tell_json(const struct sim_runs *runs)
{
    bool ok = true;
    json_t *all = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < runs->count; i++)
        weir_json_append(list, run_json(&runs->items[i], &ok), &ok);
    weir_json_set(all, "runs", list, &ok);
    return cli_json_print(all, ok, CLI_OK);
}
