// weir trace timeline: a drawing in the terminal. A row for each engine and each queue, a
// character for each stretch of time, as high as the share of it that was busy.
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/common/output.h"
#include "cli/trace/trace.h"
#include "report/report.h"

enum {
    LEVELS = 9,
    LABEL_WIDTH = 24,
    LEAST_WIDTH = 20,
    DEFAULT_WIDTH = 80,
    MOST_WIDTH = 1000,
};

static const char *const blocks[LEVELS] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const letters[LEVELS] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

static const char about[] =
    "Draws a trace in the terminal: a row for each engine and each queue of a device, and for\n"
    "each stretch of time a block that is as high as the share of the stretch in which the row\n"
    "was busy. At the end of a row stands its busy share of what is shown.";

struct row {
    const char *label;
    uint64_t *busy; // of each cell, in nanoseconds
    size_t cell;    // of the latest interval
    struct weir__cover covered;
};

struct timeline {
    const weir_report *report;
    struct row *rows;   // of all lanes, then of all queues
    struct row **shown; // of each device the engines, then the queues; the host last
    size_t row_count;   // that are shown
    size_t cells;
    uint64_t begin;
    uint64_t end;
    uint64_t origin; // the zero of the window's times
};

static uint64_t cell_begin(const struct timeline *timeline, size_t cell)
{
    if (cell == timeline->cells)
        return timeline->end;
    const double span = (double)(timeline->end - timeline->begin);
    return timeline->begin + (uint64_t)(span * (double)cell / (double)timeline->cells);
}

// Adds the part of the interval that earlier ones did not cover. Intervals are sorted by
// their ends, the last one first.
static void add_busy(const struct timeline *timeline, struct row *row, uint64_t begin, uint64_t end)
{
    if (row->covered.covered > 0 && end > row->covered.begin)
        end = row->covered.begin;
    if (begin < timeline->begin)
        begin = timeline->begin;
    if (end > timeline->end)
        end = timeline->end;
    weir__cover_add(&row->covered, begin, end);
    while (begin < end) {
        while (cell_begin(timeline, row->cell) >= end)
            row->cell--;
        const uint64_t first = cell_begin(timeline, row->cell);
        const uint64_t start = first > begin ? first : begin;
        row->busy[row->cell] += end - start;
        end = start;
    }
}

// Rows in the order in which they are drawn.

// Of several devices, rows begin with the device's number.
static void add_row(struct timeline *timeline, struct row *row, size_t device, const char *before,
                    const char *name, const char *after)
{
    const struct weir_trace *trace = timeline->report->trace;
    timeline->shown[timeline->row_count++] = row;
    const char *number =
        trace->device_count > 1 ? cli_text("%u: ", (unsigned)trace->devices[device].index) : "";
    row->label = cli_text("%s%s%s%s", number, before, name, after);
    row->busy = cli_allocate(timeline->cells, sizeof *row->busy);
    row->cell = timeline->cells - 1;
}

static void add_lanes(struct timeline *timeline, size_t device)
{
    static const enum weir_trace_engine order[] = {WEIR_ENGINE_TO_DEVICE,     WEIR_ENGINE_TO_HOST,
                                                   WEIR_ENGINE_ON_DEVICE,     WEIR_ENGINE_KERNELS,
                                                   WEIR_ENGINE_COMMUNICATION, WEIR_ENGINE_HOST};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const size_t lane = device * WEIR_ENGINE_COUNT + order[i];
        if (timeline->report->lane_used[lane])
            add_row(timeline, &timeline->rows[lane], device, "", weir_trace_engine_name(order[i]),
                    order[i] == WEIR_ENGINE_HOST ? " calls" : "");
    }
}

static void add_queues(struct timeline *timeline, size_t device)
{
    const struct weir_trace *trace = timeline->report->trace;
    for (size_t i = 0; i < trace->queue_count; i++)
        if (trace->queues[i].device_index == device && trace->queues[i].operation_count > 0)
            add_row(timeline, &timeline->rows[timeline->report->lane_count + i], device, "'",
                    weir_trace_queue_name(&trace->queues[i]).text, "'");
}

static void fill(struct timeline *timeline)
{
    const weir_report *report = timeline->report;
    const struct weir_trace *trace = report->trace;
    const size_t most = report->lane_count + trace->queue_count + 1;
    timeline->rows = cli_allocate(most, sizeof *timeline->rows);
    timeline->shown = cli_allocate(most, sizeof *timeline->shown);
    for (size_t device = 0; device < trace->device_count; device++) {
        add_lanes(timeline, device);
        add_queues(timeline, device);
    }
    for (size_t i = report->run_count; i-- > 0;) {
        const struct weir__run *run = &report->runs[report->by_end[i]];
        const size_t queue = trace->operations[run->operation].queue_index;
        add_busy(timeline, &timeline->rows[run->lane], run->begin, run->end);
        add_busy(timeline, &timeline->rows[report->lane_count + queue], run->begin, run->end);
    }
}

// Drawing.

static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") ||
                   strstr(value, "utf-8");
    }
    return false;
}

static size_t terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    const long number = columns ? strtol(columns, NULL, 10) : 0;
    if (number > 0)
        return number < MOST_WIDTH ? (size_t)number : MOST_WIDTH;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return DEFAULT_WIDTH;
}

static int level_of(const struct timeline *timeline, const struct row *row, size_t cell)
{
    const uint64_t width = cell_begin(timeline, cell + 1) - cell_begin(timeline, cell);
    if (width == 0 || row->busy[cell] == 0)
        return 0;
    // A share above zero is always visible.
    const int level = (int)((double)row->busy[cell] / (double)width * (LEVELS - 1) + 0.5);
    return level < 1 ? 1 : level > LEVELS - 1 ? LEVELS - 1 : level;
}

// In characters of UTF-8: cut or filled up to the width of the labels.
static void print_label(const char *text)
{
    char shown[4 * LABEL_WIDTH + 4];
    const char *label = shown;
    int width = 0;
    weir_text_escape(shown, sizeof shown, text, "");
    for (; *label && width < LABEL_WIDTH; label++) {
        // A character's later bytes belong to it.
        fputc(*label, stdout);
        while ((label[1] & 0xc0) == 0x80)
            fputc(*++label, stdout);
        width++;
    }
    printf("%*s ", LABEL_WIDTH - width, "");
}

static void print_row(const struct timeline *timeline, const struct row *row, bool ascii)
{
    const double span = (double)(timeline->end - timeline->begin);
    print_label(row->label);
    fputc('|', stdout);
    for (size_t cell = 0; cell < timeline->cells; cell++)
        fputs((ascii ? letters : blocks)[level_of(timeline, row, cell)], stdout);
    printf("| %5.1f %%\n", 100 * (double)row->covered.covered / span);
}

static void print_axis(const struct timeline *timeline)
{
    const struct weir_quantity from =
        weir_text_duration((double)(timeline->begin - timeline->origin));
    const struct weir_quantity to = weir_text_duration((double)(timeline->end - timeline->origin));
    const double cell_ns = (double)(timeline->end - timeline->begin) / (double)timeline->cells;
    const int gap = (int)timeline->cells - (int)strlen(from.text) - (int)strlen(to.text);
    printf("%*s  %s%*s%s\n", LABEL_WIDTH, "", from.text, gap > 1 ? gap : 1, "", to.text);
    printf("%*s  a character is %s\n", LABEL_WIDTH, "", weir_text_duration(cell_ns).text);
}

static int print_json(const struct timeline *timeline)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < timeline->row_count; i++) {
        const struct row *row = timeline->shown[i];
        json_t *busy = json_array();
        for (size_t cell = 0; cell < timeline->cells; cell++)
            cli_json_append(busy, weir_json_count(row->busy[cell]));
        cli_json_append(rows, json_pack("{s:o, s:o}", "label", cli_json_string(row->label),
                                        "busy_ns", busy));
    }
    json_t *root = json_pack("{s:o, s:o, s:o}", "begin_ns",
                             weir_json_count(timeline->begin - timeline->origin), "end_ns",
                             weir_json_count(timeline->end - timeline->origin), "rows", rows);
    return cli_json_print(root, CLI_OK);
}

static int draw(const weir_report *report, size_t width, bool ascii, bool json)
{
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    const size_t edges = LABEL_WIDTH + 12;
    struct timeline timeline = {
        .report = report,
        .cells = width > edges + LEAST_WIDTH ? width - edges : LEAST_WIDTH,
        .begin = summary->begin_ns,
        .end = summary->end_ns,
        .origin = report->origin_ns,
    };
    if (timeline.end == timeline.begin)
        cli_fail(CLI_FAILED, "no operation of a device took any time, so there is nothing to draw");
    fill(&timeline);
    if (json)
        return print_json(&timeline);
    print_axis(&timeline);
    for (size_t i = 0; i < timeline.row_count; i++)
        print_row(&timeline, timeline.shown[i], ascii);
    return CLI_OK;
}

int cli_trace_timeline(int argc, char **argv)
{
    struct cli_trace_window window = {0};
    uint64_t width = 0;
    bool ascii = false;
    bool json = false;
    const struct cli_option options[] = {
        {"from", "TIME", "from TIME after the first start, such as 1.5ms", CLI_TEXT, &window.from,
         0, 0},
        {"to", "TIME", "to TIME after it", CLI_TEXT, &window.to, 0, 0},
        {"width", "N", "characters of a line; without it, the terminal's", CLI_COUNT, &width, 40,
         MOST_WIDTH},
        {"ascii", NULL,
         "draw with characters of ASCII; so it is without\nit where the locale is "
         "not of UTF-8",
         CLI_FLAG, &ascii, 0, 0},
        {"json", NULL, "print the busy time of each row's stretches as\nJSON", CLI_FLAG, &json, 0,
         0},
    };
    const struct cli_usage usage = CLI_TRACE_FORM("weir trace timeline", about, options);
    cli_parse(&usage, argc, argv);
    return draw(cli_trace_open(argv[0], &window, 1, true, CLI_FAILED),
                width ? width : terminal_width(), ascii || !is_utf8(), json);
}
