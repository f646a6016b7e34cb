// The report as text, and what its forms share.
#include "report/findings.h"

#include <inttypes.h>
#include <string.h>

#include "base/table.h"

struct kind {
    weir_check_kind kind;
    const char *name;
};

static const struct kind kinds[] = {
#define KIND(name, value, id) {name, id},
    WEIR_CHECK_KIND_TABLE(KIND)
#undef KIND
};

enum {
    KIND_COUNT = sizeof kinds / sizeof *kinds
};

const char *weir_findings_kind_at(size_t index)
{
    return index < KIND_COUNT ? kinds[index].name : NULL;
}

const char *weir_findings_kind_name(weir_check_kind kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return "unknown";
}

weir_check_kind weir_findings_kind(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return (weir_check_kind)0;
}

struct weir_findings_sum weir_findings_sum(const struct weir_findings *findings)
{
    struct weir_findings_sum sum = {.errors = 0};
    for (size_t i = 0; i < findings->count; i++) {
        const struct weir_check_finding *finding = findings->items[i];
        if (finding->suppression)
            sum.suppressed++;
        else if (finding->kind >= WEIR_CHECK_FIRST_HINT)
            sum.hints++;
        else
            sum.errors++;
    }
    return sum;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void add_sum(struct weir_long_text *text, const struct weir_findings *findings)
{
    const struct weir_findings_sum sum = weir_findings_sum(findings);
    weir_long_text_add_shown(text, findings->program);
    weir_long_text_add(text, ": %zu finding%s, %zu hint%s, %zu suppressed", sum.errors,
                       plural(sum.errors), sum.hints, plural(sum.hints), sum.suppressed);
    if (!findings->complete)
        weir_long_text_add(text, "; the program had not closed its runtime");
    weir_long_text_add(text, "\n");
}

static void add_finding(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    weir_long_text_add(text, "%s, %" PRIu64 " time%s\n  ", weir_findings_kind_name(finding->kind),
                       finding->count, finding->count == 1 ? "" : "s");
    weir_long_text_add_shown(text, finding->message);
    weir_long_text_add(text, "\n  %s: ", finding->suppression ? "suppressed" : "to do");
    weir_long_text_add_shown(text, finding->suppression ? finding->suppression : finding->remedy);
    weir_long_text_add(text, "\n\n");
}

static void add_rules(struct weir_long_text *text, const struct weir_findings *findings)
{
    for (size_t i = 0; i < findings->rule_count; i++) {
        if (findings->rules[i]->used)
            continue;
        weir_long_text_add_shown(text, findings->suppressions);
        weir_long_text_add(text, ": entry %zu suppresses nothing that was found: ", i + 1);
        weir_long_text_add_shown(text, findings->rules[i]->reason);
        weir_long_text_add(text, "\n\n");
    }
}

// Errors, then hints, then what is suppressed.
static int rank(const struct weir_check_finding *finding)
{
    if (finding->suppression)
        return 2;
    return finding->kind >= WEIR_CHECK_FIRST_HINT;
}

char *weir_findings_text(const struct weir_findings *findings)
{
    struct weir_long_text text = {.text = NULL};
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < findings->count; i++)
            if (rank(findings->items[i]) == turn)
                add_finding(&text, findings->items[i]);
    if (findings->dropped)
        weir_long_text_add(&text, "%" PRIu64 " uses in further pairs of lines are not listed\n\n",
                           findings->dropped);
    add_rules(&text, findings);
    add_sum(&text, findings);
    if (!text.failed)
        return text.text;
    free(text.text);
    return NULL;
}
