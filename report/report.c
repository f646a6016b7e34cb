// A report: its sets of operations, conditions on its figures, and the public functions.
#include "report/report.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/text.h"

// Sets of operations by name, as weir_report_get_overlap() lists them, and how much two of them overlap.

struct set {
    uint32_t engines;        // bits by engine; 0: any of devices
    const char *name;        // of a row; NULL: by engines
    weir_report_table table; // which has it
};

enum {
    COPIES = 1 << WEIR_ENGINE_TO_DEVICE | 1 << WEIR_ENGINE_TO_HOST | 1 << WEIR_ENGINE_ON_DEVICE
};

static const struct {
    const char *name;
    uint32_t engines;
} engine_sets[] = {
    {"copy", COPIES},
    {"compute", 1 << WEIR_ENGINE_KERNELS},
    {"kernels", 1 << WEIR_ENGINE_KERNELS},
    {"to_device", 1 << WEIR_ENGINE_TO_DEVICE},
    {"h2d", 1 << WEIR_ENGINE_TO_DEVICE},
    {"to_host", 1 << WEIR_ENGINE_TO_HOST},
    {"d2h", 1 << WEIR_ENGINE_TO_HOST},
    {"on_device", 1 << WEIR_ENGINE_ON_DEVICE},
    {"d2d", 1 << WEIR_ENGINE_ON_DEVICE},
    {"host", 1 << WEIR_ENGINE_HOST},
    {"communication", 1 << WEIR_ENGINE_COMMUNICATION},
    {"all", 0},
};

// Before the name of a row.
static const struct {
    const char *prefix;
    weir_report_table table;
} named_sets[] = {
    {"queue:", WEIR_REPORT_QUEUES},
    {"name:", WEIR_REPORT_NAMES},
    {"region:", WEIR_REPORT_REGIONS},
};

enum {
    SET_COUNT = sizeof engine_sets / sizeof *engine_sets,
    NAMED_COUNT = sizeof named_sets / sizeof *named_sets,
};

static const char how[] =
    "a set is copy, compute, to_device, to_host, on_device, communication, host, all, "
    "queue:LABEL, name:NAME or region:PATH";

static weir_status refuse_set(const char *text, const char *nearest)
{
    if (nearest)
        return weir__report_fail(WEIR_ERROR_INVALID, how,
                                 "there is no set of operations '%s'; did you mean '%s'?", text,
                                 nearest);
    return weir__report_fail(WEIR_ERROR_INVALID, how, "there is no set of operations '%s'", text);
}

// The rest of `text` after "PREFIX:", if a row of the table has that name.
static weir_status match(const weir_report *report, weir_report_table table, const char *text,
                         size_t prefix, const char **out_name)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < report->tables[table].count; i++) {
        const char *name = report->tables[table].rows[i].row.name;
        nearest = weir_text_nearer(text + prefix, nearest, name);
        if (strcmp(name, text + prefix) == 0) {
            *out_name = name;
            return WEIR_OK;
        }
    }
    return refuse_set(text, nearest);
}

static weir_status parse_set(const weir_report *report, const char *text, struct set *out_set)
{
    const char *nearest = NULL;
    *out_set = (struct set){0};
    for (size_t i = 0; i < NAMED_COUNT; i++) {
        const size_t length = strlen(named_sets[i].prefix);
        out_set->table = named_sets[i].table;
        if (strncmp(text, named_sets[i].prefix, length) == 0)
            return match(report, out_set->table, text, length, &out_set->name);
    }
    for (size_t i = 0; i < SET_COUNT; i++) {
        nearest = weir_text_nearer(text, nearest, engine_sets[i].name);
        if (strcmp(engine_sets[i].name, text) == 0) {
            out_set->engines = engine_sets[i].engines;
            return WEIR_OK;
        }
    }
    return refuse_set(text, nearest);
}

static bool set_has(const weir_report *report, const struct set *set, const struct weir__run *run)
{
    if (set->name)
        return (run->of_device || set->table != WEIR_REPORT_QUEUES) &&
               strcmp(set->name, weir__run_name(report, set->table, run).text) == 0;
    if (set->engines)
        return (set->engines >> weir__lane_engine(run->lane) & 1) &&
               (run->of_device || set->engines == 1 << WEIR_ENGINE_HOST);
    return run->of_device;
}

// The times in which members of the sets ran, and in which one of the first and another one of the second did.
struct times {
    struct weir__cover first;
    struct weir__cover second;
    struct weir__cover both;
};

// A member of both sets does not overlap itself. Runs that end later were added before, so up to `end` all of what a set
// has covers is since its begin.
static void add_times(struct times *times, bool is_first, bool is_second, uint64_t begin,
                      uint64_t end)
{
    const struct weir__cover first = times->first;
    const struct weir__cover second = times->second;
    if (is_first && second.covered > 0)
        weir__cover_add(&times->both, begin > second.begin ? begin : second.begin, end);
    if (is_second && first.covered > 0)
        weir__cover_add(&times->both, begin > first.begin ? begin : first.begin, end);
    if (is_first)
        weir__cover_add(&times->first, begin, end);
    if (is_second)
        weir__cover_add(&times->second, begin, end);
}

static void explain(struct weir_report_overlap *overlap, const weir_report *report,
                    const char *first, const char *second)
{
    size_t used = 0;
    const char *empty = overlap->first.most_ns == 0    ? first
                        : overlap->second.most_ns == 0 ? second
                                                       : NULL;
    if (empty)
        weir_text_append(overlap->reason, sizeof overlap->reason, &used,
                         "no operation of '%s' took any time", empty);
    else if (*report->summary.serial_reason)
        weir_text_append(overlap->reason, sizeof overlap->reason, &used, "%s",
                         report->summary.serial_reason);
    overlap->applies = *overlap->reason == '\0';
}

static weir_status measure_pair(const weir_report *report, const char *first, const char *second,
                                struct weir_report_overlap *overlap)
{
    struct set sets[2];
    if (!report || !first || !second)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "an overlap needs a report and two sets");
    weir_status status = parse_set(report, first, &sets[0]);
    if (status == WEIR_OK)
        status = parse_set(report, second, &sets[1]);
    if (status != WEIR_OK)
        return status;

    struct times least = {.both = {0}};
    struct times most = least;
    for (size_t i = report->run_count; i-- > 0;) {
        const struct weir__run *run = &report->runs[report->by_end[i]];
        const bool is_first = set_has(report, &sets[0], run);
        const bool is_second = set_has(report, &sets[1], run);
        add_times(&least, is_first, is_second, run->certain, run->end);
        add_times(&most, is_first, is_second, run->begin, run->end);
    }
    overlap->first = (struct weir_report_time){least.first.covered, most.first.covered};
    overlap->second = (struct weir_report_time){least.second.covered, most.second.covered};
    overlap->both = (struct weir_report_time){least.both.covered, most.both.covered};
    explain(overlap, report, first, second);
    if (overlap->first.most_ns > 0)
        overlap->least = (double)overlap->both.least_ns / (double)overlap->first.most_ns;
    overlap->most = overlap->both.most_ns == 0 ? 0
                    : overlap->both.most_ns >= overlap->first.least_ns
                        ? 1
                        : (double)overlap->both.most_ns / (double)overlap->first.least_ns;
    return WEIR_OK;
}

weir_status weir_report_get_overlap_sized(const weir_report *report, const char *first,
                                          const char *second,
                                          struct weir_report_overlap *out_overlap, size_t size)
{
    struct weir_report_overlap overlap = {.applies = false};
    const weir_status status = measure_pair(report, first, second, &overlap);
    weir_sized_write(out_overlap, size, &overlap, sizeof overlap);
    return status;
}

// Conditions: WHAT [SETS] OPERATOR NUMBER. Every quantity has a least and a most, which are mostly
// equal, and the condition must hold for both.

enum unit {
    SHARE,  // a number, or a percentage
    TIME,   // ns, us, ms, s
    NUMBER, // a number
};

struct quantity {
    double least;
    double most;
    bool applies;
    char reason[256];
};

// Stores the quantity; `sets` is the text between its name and the operator, or the name of one without sets.
typedef weir_status (*measure_function)(const weir_report *report, const char *sets,
                                        struct quantity *out);

// The '/' between two sets. Names and regions may contain '/' too: then the first one with a set on
// each side.
static char *find_slash(const weir_report *report, char *sets)
{
    struct set set;
    char *slash = strchr(sets, '/');
    for (char *at = slash; at; at = strchr(at + 1, '/')) {
        *at = '\0';
        const bool both =
            parse_set(report, sets, &set) == WEIR_OK && parse_set(report, at + 1, &set) == WEIR_OK;
        *at = '/';
        if (both)
            return at;
    }
    return slash;
}

static weir_status measure_overlap(const weir_report *report, const char *sets,
                                   struct quantity *out)
{
    struct weir_report_overlap overlap;
    char text[256];
    snprintf(text, sizeof text, "%s", sets);
    char *slash = find_slash(report, text);
    if (!slash)
        return weir__report_fail(WEIR_ERROR_INVALID, "write overlap copy/compute>=0.6",
                                 "an overlap is one of two sets, A/B, not '%s'", sets);
    *slash = '\0';
    const weir_status status = weir_report_get_overlap(report, text, slash + 1, &overlap);
    out->least = overlap.least;
    out->most = overlap.most;
    out->applies = overlap.applies;
    snprintf(out->reason, sizeof out->reason, "%s", overlap.reason);
    return status;
}

static weir_status measure_busy(const weir_report *report, const char *sets, struct quantity *out)
{
    struct weir_report_overlap overlap;
    const weir_status status = weir_report_get_overlap(report, sets, sets, &overlap);
    if (status != WEIR_OK)
        return status;
    const double span = (double)report->summary.span_ns;
    out->least = span > 0 ? (double)overlap.first.least_ns / span : 0;
    out->most = span > 0 ? (double)overlap.first.most_ns / span : 0;
    out->applies = true;
    return WEIR_OK;
}

static weir_status measure_speedup(const weir_report *report, const char *sets,
                                   struct quantity *out)
{
    out->least = report->summary.speedup_least;
    out->most = report->summary.speedup_most;
    out->applies = *report->summary.serial_reason == '\0';
    snprintf(out->reason, sizeof out->reason, "%s", report->summary.serial_reason);
    return WEIR_OK;
}

// Figures of the summary.
static weir_status measure_figure(const weir_report *report, const char *name, struct quantity *out)
{
    const struct weir_report_summary *it = &report->summary;
    const double span = (double)it->span_ns;
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"bubbles", (double)it->longest_bubble_ns},
        {"span", span},
        {"idle", span > 0 ? (double)it->idle_ns / span : 0},
        {"bound", it->bound_distance},
        {"host", it->host_share},
        {"dropped", (double)it->dropped},
    };
    size_t i = 0;
    while (strcmp(figures[i].name, name) != 0)
        i++;
    out->least = out->most = figures[i].value;
    out->applies = true;
    return WEIR_OK;
}

static const struct {
    const char *name;
    const char *what; // for messages; the sets follow it
    enum unit unit;
    bool sets;
    measure_function measure;
    const char *example;
} quantities[] = {
    {"overlap", "the overlap of ", SHARE, true, measure_overlap, "overlap copy/compute>=0.6"},
    {"bubbles", "the longest bubble", TIME, false, measure_figure, "bubbles<=1ms"},
    {"span", "the span", TIME, false, measure_figure, "span<=20ms"},
    {"idle", "the idle share of the span", SHARE, false, measure_figure, "idle<=10%"},
    {"speedup", "the effective speed-up", NUMBER, false, measure_speedup, "speedup>=1.5"},
    {"bound", "the distance from the bound", NUMBER, false, measure_figure, "bound<=1.2"},
    {"busy", "the share of the span with ", SHARE, true, measure_busy, "busy to_device>=0.9"},
    {"host", "the share of the path on the host", SHARE, false, measure_figure, "host<=10%"},
    {"dropped", "the number of dropped operations", NUMBER, false, measure_figure, "dropped<=0"},
};

enum {
    QUANTITY_COUNT = sizeof quantities / sizeof *quantities
};

// A parsed condition.
struct condition {
    size_t quantity;
    char sets[256];
    char operator[3];
    char limit_text[64];
    double limit;
};

static weir_status refuse(const char *condition, const char *why, const char *remedy)
{
    return weir__report_fail(WEIR_ERROR_INVALID, remedy, "the condition '%.100s' %s", condition,
                             why);
}

static weir_status refuse_name(const char *condition, const char *name)
{
    const char *nearest = NULL;
    char remedy[256] = "there are";
    size_t used = strlen(remedy);
    for (size_t i = 0; i < QUANTITY_COUNT; i++) {
        nearest = weir_text_nearer(name, nearest, quantities[i].name);
        weir_text_append(remedy, sizeof remedy, &used, "%s %s", i > 0 ? "," : "",
                         quantities[i].name);
    }
    if (nearest)
        snprintf(remedy, sizeof remedy, "did you mean '%s'?", nearest);
    return refuse(condition, "names nothing that a report has", remedy);
}

bool weir__report_time(const char *text, double *out_ns)
{
    static const struct {
        const char *text;
        double factor;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end = NULL;
    const double number = weir_c_number(text, &end);
    *out_ns = number;
    if (!isdigit((unsigned char)text[0]) || !isfinite(number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].text) == 0) {
            *out_ns = number * units[i].factor;
            return true;
        }
    return number == 0 && *end == '\0';
}

// "1ms", "60%", "0.6".
static bool read_limit(const char *text, enum unit unit, double *out)
{
    char *end = NULL;
    if (unit == TIME)
        return weir__report_time(text, out);
    const double number = weir_c_number(text, &end);
    const bool percent = unit == SHARE && strcmp(end, "%") == 0;
    *out = percent ? number / 100 : number;
    return isdigit((unsigned char)text[0]) && isfinite(number) && (percent || *end == '\0');
}

static void copy_trimmed(char *out, size_t size, const char *from, size_t length)
{
    while (length > 0 && *from == ' ')
        from++, length--;
    while (length > 0 && from[length - 1] == ' ')
        length--;
    if (length >= size)
        length = size - 1;
    memcpy(out, from, length);
    out[length] = '\0';
}

// The last one: names may contain arrows.
static const char *find_sign(const char *text)
{
    const char *sign = NULL;
    for (const char *at = text; *at; at++)
        if (*at == '<' || *at == '>')
            sign = at;
    return sign;
}

static weir_status parse(const char *text, struct condition *out)
{
    const char *sign = find_sign(text);
    const size_t name = strcspn(text, " <>=");
    char name_text[64];
    *out = (struct condition){0};
    copy_trimmed(name_text, sizeof name_text, text, name);
    while (out->quantity < QUANTITY_COUNT && strcmp(quantities[out->quantity].name, name_text) != 0)
        out->quantity++;
    if (out->quantity == QUANTITY_COUNT)
        return refuse_name(text, name_text);
    if (!sign)
        return refuse(text, "has none of <=, >=, < and >",
                      "write it like bubbles<=1ms, in quotes, since < and > mean something to "
                      "the shell");
    copy_trimmed(out->sets, sizeof out->sets, text + name, (size_t)(sign - text) - name);
    snprintf(out->operator, sizeof out->operator, "%c%s", *sign, sign[1] == '=' ? "=" : "");
    copy_trimmed(out->limit_text, sizeof out->limit_text, sign + strlen(out->operator),
                 strlen(sign + strlen(out->operator)));
    if ((*out->sets != '\0') != quantities[out->quantity].sets ||
        !read_limit(out->limit_text, quantities[out->quantity].unit, &out->limit)) {
        char remedy[64];
        snprintf(remedy, sizeof remedy, "write it like %s", quantities[out->quantity].example);
        return refuse(text, "cannot be read", remedy);
    }
    return WEIR_OK;
}

static bool compare(double value, const char *operator, double limit)
{
    if (operator[0] == '<')
        return operator[1] ? value <= limit : value<limit;
    return operator[1] ? value >= limit : value> limit;
}

static struct weir_quantity show(double value, enum unit unit)
{
    struct weir_quantity shown;
    if (unit == TIME)
        return weir_text_duration(value);
    if (unit == SHARE)
        weir_c_format(shown.text, sizeof shown.text, "%.1f %%", 100 * value);
    else
        weir_c_format(shown.text, sizeof shown.text, "%.6g", value);
    return shown;
}

static void say(const struct condition *condition, const struct quantity *quantity,
                struct weir_report_finding *check)
{
    const enum unit unit = quantities[condition->quantity].unit;
    size_t used = 0;
    weir_text_append(check->sentence, sizeof check->sentence, &used, "%s%.120s is ",
                     quantities[condition->quantity].what, condition->sets);
    if (!quantity->applies) {
        weir_text_append(check->sentence, sizeof check->sentence, &used, "n/a: %s",
                         quantity->reason);
        return;
    }
    if (quantity->least < quantity->most)
        weir_text_append(check->sentence, sizeof check->sentence, &used, "between %s and %s",
                         show(quantity->least, unit).text, show(quantity->most, unit).text);
    else
        weir_text_append(check->sentence, sizeof check->sentence, &used, "%s",
                         show(quantity->least, unit).text);
    weir_text_append(check->sentence, sizeof check->sentence, &used, "%s %s %s",
                     check->holds ? "," : ", and not", condition->operator,
                     show(condition->limit, unit).text);
}

static weir_status check(const weir_report *report, const char *condition,
                         struct weir_report_finding *out_check)
{
    struct condition it;
    struct quantity quantity = {0};
    if (!report || !condition)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "a check needs a report and a condition");
    weir_status status = parse(condition, &it);
    if (status != WEIR_OK)
        return status;
    status = quantities[it.quantity].measure(
        report, quantities[it.quantity].sets ? it.sets : quantities[it.quantity].name, &quantity);
    if (status != WEIR_OK)
        return status;
    out_check->holds = quantity.applies && compare(quantity.least, it.operator, it.limit) &&
                       compare(quantity.most, it.operator, it.limit);
    say(&it, &quantity, out_check);
    return WEIR_OK;
}

weir_status weir_report_check_sized(const weir_report *report, const char *condition,
                                    struct weir_report_finding *out_check, size_t size)
{
    struct weir_report_finding finding = {.holds = false};
    const weir_status status = check(report, condition, &finding);
    weir_sized_write(out_check, size, &finding, sizeof finding);
    return status;
}

// The public functions: reading a trace, measuring it once, and handing out the
// figures.

weir_status weir__report_fail(weir_status status, const char *remedy, const char *format, ...)
{
    struct weir_error error = {.status = status};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    snprintf(error.remedy, sizeof error.remedy, "%s", remedy);
    return weir_error_set(&error);
}

weir_status weir_report_read(const char *path, const struct weir_report_params *params,
                             weir_report **out_report)
{
    struct weir_trace *trace = NULL;
    struct weir_report_params known;
    struct weir_sized_refusal refusal;
    char message[512];
    if (!out_report)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "there is no place for the report");
    *out_report = NULL;
    if (!path)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "a report needs the path of a trace");
    if (params &&
        !weir_sized_read(__func__, "weir_report_params", params, &known, sizeof known, &refusal))
        return weir__report_fail(WEIR_ERROR_INVALID, refusal.remedy, "%s", refusal.message);
    params = params ? &known : NULL;
    if (params && params->to_ns > 0 && params->to_ns < params->from_ns)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "the window ends before it begins");
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        return weir__report_fail(WEIR_ERROR_IO, "", "%s", message);
    return weir__report_make(trace, params, out_report);
}

void weir_report_destroy(weir_report **report)
{
    weir_report *it = report ? *report : NULL;
    if (!it)
        return;
    for (size_t i = 0; i < WEIR__TABLE_COUNT; i++)
        free(it->tables[i].rows);
    free(it->lane_used);
    free(it->bubbles[0].items);
    free(it->bubbles[1].items);
    free(it->runs);
    free(it->run_of);
    free(it->by_end);
    weir_names_destroy(it->names);
    weir_trace_destroy(&it->trace);
    free(it);
    *report = NULL;
}

const struct weir_report_summary *weir_report_get_summary(const weir_report *report)
{
    static const WEIR_SIZED_CELL(struct weir_report_summary, summary, WEIR_SIZED_ROOM)
        nothing = {.summary = {.bound_engine = "", .serial_reason = ""}};
    return report ? &report->summary : &nothing.summary;
}

static bool has_table(const weir_report *report, weir_report_table table)
{
    return report && table >= WEIR_REPORT_DEVICES && table <= WEIR_REPORT_PATH;
}

size_t weir_report_row_count(const weir_report *report, weir_report_table table)
{
    return has_table(report, table) ? report->tables[table].count : 0;
}

const struct weir_report_row *weir_report_get_row(const weir_report *report,
                                                  weir_report_table table, size_t index)
{
    return index < weir_report_row_count(report, table) ? &report->tables[table].rows[index].row
                                                        : NULL;
}

const struct weir_report_row *weir_report_find_row(const weir_report *report,
                                                   weir_report_table table, const char *name)
{
    for (size_t i = 0; name && i < weir_report_row_count(report, table); i++)
        if (strcmp(report->tables[table].rows[i].row.name, name) == 0)
            return &report->tables[table].rows[i].row;
    return NULL;
}

size_t weir_report_bubble_count(const weir_report *report, bool of_bound)
{
    return report ? report->bubbles[of_bound].count : 0;
}

const struct weir_report_bubble *weir_report_get_bubble(const weir_report *report, bool of_bound,
                                                        size_t index)
{
    return index < weir_report_bubble_count(report, of_bound)
               ? &report->bubbles[of_bound].items[index].bubble
               : NULL;
}

void weir_report_free_text(char **text)
{
    if (!text)
        return;
    free(*text);
    *text = NULL;
}
