// The model as an INI file, and the figures as a table or as JSON.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/table.h"
#include "cli/calibrate/calibrate.h"
#include "cli/common/json.h"
#include "cli/common/table.h"

enum {
    VALUE_SIZE = 48,
};

static const char *const kinds[CAL_PULL] = {"to the device", "from the device", "within the device",
                                            "to another device"};

static const char *show(const struct cal_figure *figure, enum cal_unit unit, double value,
                        char text[VALUE_SIZE])
{
    if (unit == CAL_WORD)
        snprintf(text, VALUE_SIZE, "%s", figure->value > 0 ? "stream" : "engine");
    else
        snprintf(text, VALUE_SIZE, unit == CAL_GB_PER_S ? "%.3f" : "%.0f",
                 unit == CAL_GB_PER_S ? value : round(value));
    return text;
}

// The model.

static void write_head(const struct calibration *c, struct weir_long_text *ini)
{
    const struct weir_device_info *info = weir_device_get_info(c->device);
    weir_long_text_add(ini, "; %s, driver %s, backend %s: measured by weir calibrate %s; medians\n",
                       info->name, info->driver, weir_runtime_backend(c->runtime), weir_version());
    weir_long_text_add(ini, "; of %llu turns, with the least and the most.\n",
                       (unsigned long long)c->turns);
    if (cli_clock_is_virtual())
        weir_long_text_add(ini, "; The times are those of a modelled GPU.\n");
    else if (c->limits->unified_memory && !c->limits->copy_engines_to_device)
        weir_long_text_add(ini, "; The device is the machine's processors: these are no figures of "
                                "a GPU.\n");
    weir_long_text_add(ini, "\n[gpu]\nname = %s\n", info->name);
}

static void write_key(const struct cal_figure *figure, const struct cal_about *about,
                      struct weir_long_text *ini)
{
    char value[VALUE_SIZE], least[VALUE_SIZE], most[VALUE_SIZE];
    if (!figure->measured) {
        weir_long_text_add(ini, "; %s was not measured: %s\n", about->name, figure->why);
        return;
    }
    weir_long_text_add(ini, "; %s", about->how);
    if (figure->spreads)
        weir_long_text_add(ini, "; %s to %s", show(figure, about->unit, figure->least, least),
                           show(figure, about->unit, figure->most, most));
    weir_long_text_add(ini, "\n%s = %s\n", about->name,
                       show(figure, about->unit, figure->value, value));
}

static void write_sizes(const struct calibration *c, const struct cal_by_size *by_size,
                        struct weir_long_text *ini)
{
    for (size_t i = 0; i < c->size_count; i++) {
        const struct cal_figure *ns = &by_size->ns[i];
        char bytes[WEIR_TEXT_QUANTITY_SIZE];
        weir_long_text_add(ini, ";   %10s  %12.0f ns (%.0f to %.0f), %.2f GB/s\n",
                           weir_text_bytes(bytes, c->sizes[i]), ns->value, ns->least, ns->most,
                           ns->value > 0 ? (double)c->sizes[i] / ns->value : 0.0);
    }
}

static void write_copies(const struct calibration *c, struct weir_long_text *ini)
{
    for (size_t kind = 0; kind < CAL_COPIES; kind++) {
        if (!c->to[kind] || kind == CAL_PULL)
            continue;
        weir_long_text_add(ini, "\n; Copies %s, alone:\n", kinds[kind]);
        write_sizes(c, &c->by_size[kind], ini);
    }
    for (size_t kind = 0; kind <= CAL_DOWN && c->figures[CAL_H2D_BOTH].measured; kind++) {
        weir_long_text_add(ini, "\n; Copies %s, while the other direction is busy:\n", kinds[kind]);
        write_sizes(c, &c->beside[kind], ini);
    }
}

// Why there are so many copy channels, or none.
static void write_order(const struct cal_order *order, struct weir_long_text *ini)
{
    if (order->turns == 0)
        return;
    weir_long_text_add(ini, "\n; Copy channels that the turns are for (- none):");
    for (size_t i = 0; i < order->turns; i++)
        if (order->numbers[i] < 0)
            weir_long_text_add(ini, " -");
        else
            weir_long_text_add(ini, " %d", order->numbers[i]);
    weir_long_text_add(ini, "\n; The order of the uploads of 24 queues in the last one:");
    for (size_t i = 0; i < CAL_ORDER; i++)
        weir_long_text_add(ini, " %zu", order->queues[i]);
    weir_long_text_add(ini, "\n");
}

static void write_model(const struct calibration *c, struct weir_long_text *ini)
{
    write_head(c, ini);
    for (size_t i = 0; i < CAL_KEYS; i++)
        write_key(&c->figures[i], &cal_keys[i], ini);
    write_copies(c, ini);
    write_order(&c->order, ini);
}

// The table.

static void print_table(const struct calibration *c)
{
    struct weir_table table = {.alignment = "lrrrl"};
    char text[VALUE_SIZE];
    for (size_t i = 0; i < CAL_KEYS; i++) {
        const struct cal_figure *figure = &c->figures[i];
        const struct cal_about *about = &cal_keys[i];
        weir_table_add(&table, "%s", about->name);
        weir_table_add(&table, "%s",
                       figure->measured ? show(figure, about->unit, figure->value, text) : "-");
        weir_table_add(&table, "%s",
                       figure->spreads ? show(figure, about->unit, figure->least, text) : "");
        weir_table_add(&table, "%s",
                       figure->spreads ? show(figure, about->unit, figure->most, text) : "");
        weir_table_add(&table, "%s", figure->measured ? about->how : figure->why);
    }
    cli_table_print(&table, stdout, 0);
}

// JSON.

static json_t *spread_json(const struct cal_figure *figure, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "median", json_real(figure->value), ok);
    weir_json_set(object, "least", json_real(figure->least), ok);
    weir_json_set(object, "most", json_real(figure->most), ok);
    return object;
}

static json_t *figure_json(const struct cal_figure *figure, const struct cal_about *about, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "key", json_string(about->name), ok);
    if (!figure->measured)
        weir_json_set(object, "not_measured", json_string(figure->why), ok);
    else if (figure->spreads)
        weir_json_set(object, "value", spread_json(figure, ok), ok);
    else if (about->unit == CAL_WORD)
        weir_json_set(object, "value", json_string(figure->value > 0 ? "stream" : "engine"), ok);
    else
        weir_json_set(object, "value", json_real(figure->value), ok);
    weir_json_set(object, "how", json_string(about->how), ok);
    return object;
}

static json_t *sizes_json(const struct calibration *c, bool *ok)
{
    json_t *list = json_array();
    for (size_t kind = 0; kind < CAL_COPIES; kind++)
        for (size_t i = 0; i < c->size_count && c->to[kind] && kind != CAL_PULL; i++) {
            json_t *object = json_object();
            weir_json_set(object, "copies", json_string(kinds[kind]), ok);
            weir_json_set(object, "bytes", weir_json_count(c->sizes[i]), ok);
            weir_json_set(object, "ns", spread_json(&c->by_size[kind].ns[i], ok), ok);
            weir_json_append(list, object, ok);
        }
    return list;
}

static int print_json(const struct calibration *c)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *figures = json_array();
    const struct weir_device_info *info = weir_device_get_info(c->device);
    for (size_t i = 0; i < CAL_KEYS; i++)
        weir_json_append(figures, figure_json(&c->figures[i], &cal_keys[i], &ok), &ok);
    weir_json_set(root, "weir", json_string(weir_version()), &ok);
    weir_json_set(root, "backend", cli_json_string(weir_runtime_backend(c->runtime)), &ok);
    weir_json_set(root, "device", cli_json_string(info->name), &ok);
    weir_json_set(root, "driver", cli_json_string(info->driver), &ok);
    weir_json_set(root, "virtual", json_boolean(cli_clock_is_virtual()), &ok);
    weir_json_set(root, "turns", weir_json_count(c->turns), &ok);
    weir_json_set(root, "figures", figures, &ok);
    weir_json_set(root, "sizes", sizes_json(c, &ok), &ok);
    return cli_json_print(root, ok, CLI_OK);
}

int cal_report(struct calibration *c)
{
    struct weir_long_text ini = {0};
    char message[512] = "no memory for the model";
    int code = CLI_OK;
    write_model(c, &ini);
    if (ini.failed ||
        (c->out && !weir_file_write(c->out, ini.text, ini.used, message, sizeof message))) {
        cli_error("%s", message);
        code = CLI_FAILED;
    } else if (c->json) {
        code = print_json(c);
    } else if (c->out) {
        print_table(c);
    } else {
        fputs(ini.text, stdout);
    }
    free(ini.text);
    return code;
}
