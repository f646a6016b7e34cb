// Conditions: WHAT [SETS] OPERATOR NUMBER. Every quantity has a least and a most, which are mostly
// equal, and the condition must hold for both.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/text.h"
#include "report/report.h"

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
    struct weir__set set;
    char *slash = strchr(sets, '/');
    for (char *at = slash; at; at = strchr(at + 1, '/')) {
        *at = '\0';
        const bool both = weir__set_parse(report, sets, &set) == WEIR_OK &&
                          weir__set_parse(report, at + 1, &set) == WEIR_OK;
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
    struct weir__set set;
    const weir_status status = weir__set_parse(report, sets, &set);
    if (status != WEIR_OK)
        return status;
    const struct weir_report_time busy = weir__set_busy(report, &set);
    const double span = (double)report->summary.span_ns;
    out->least = span > 0 ? (double)busy.least_ns / span : 0;
    out->most = span > 0 ? (double)busy.most_ns / span : 0;
    out->applies = true;
    return WEIR_OK;
}

static weir_status measure_speedup(const weir_report *report, const char *sets,
                                   struct quantity *out)
{
    (void)sets;
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

static bool find_quantity(const char *text, size_t length, size_t *out_index)
{
    for (size_t i = 0; i < QUANTITY_COUNT; i++)
        if (strlen(quantities[i].name) == length && memcmp(quantities[i].name, text, length) == 0) {
            *out_index = i;
            return true;
        }
    return false;
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

// "1ms", "60%", "0.6".
static bool read_limit(const char *text, enum unit unit, double *out)
{
    static const struct {
        const char *text;
        double factor;
    } times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end = NULL;
    const double number = weir_c_number(text, &end);
    if (end == text || !isfinite(number) || number < 0 || !isdigit((unsigned char)text[0]))
        return false;
    *out = number;
    if (unit == SHARE && strcmp(end, "%") == 0)
        *out = number / 100;
    for (size_t i = 0; unit == TIME && i < sizeof times / sizeof *times; i++)
        if (strcmp(end, times[i].text) == 0) {
            *out = number * times[i].factor;
            return true;
        }
    // A time needs a unit.
    return unit == TIME ? number == 0 && *end == '\0'
                        : *end == '\0' || (unit == SHARE && strcmp(end, "%") == 0);
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
    if (!find_quantity(text, name, &out->quantity))
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

static const char *show(char text[WEIR_TEXT_QUANTITY_SIZE], double value, enum unit unit)
{
    if (unit == TIME)
        return weir_text_duration(text, value);
    if (unit == SHARE)
        weir_c_format(text, WEIR_TEXT_QUANTITY_SIZE, "%.1f %%", 100 * value);
    else
        weir_c_format(text, WEIR_TEXT_QUANTITY_SIZE, "%.6g", value);
    return text;
}

static void say(const struct condition *condition, const struct quantity *quantity,
                struct weir_report_finding *check)
{
    const enum unit unit = quantities[condition->quantity].unit;
    char least[WEIR_TEXT_QUANTITY_SIZE];
    char most[WEIR_TEXT_QUANTITY_SIZE];
    char limit[WEIR_TEXT_QUANTITY_SIZE];
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
                         show(least, quantity->least, unit), show(most, quantity->most, unit));
    else
        weir_text_append(check->sentence, sizeof check->sentence, &used, "%s",
                         show(least, quantity->least, unit));
    weir_text_append(check->sentence, sizeof check->sentence, &used, "%s %s %s",
                     check->holds ? "," : ", and not", condition->operator,
                     show(limit, condition->limit, unit));
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
