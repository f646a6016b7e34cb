// Operations are found by their lines: a finding is about two lines, whichever of their operations
// it was first seen with.
#include "report/page_findings.h"

#include <stdio.h>

static void write_place(struct weir__out *out, const char *key, const struct weir_check_use *use)
{
    char text[1024];
    snprintf(text, sizeof text, "%s:%d", use->file, use->line);
    weir__out_string_field(out, key, text);
}

static void write_finding(struct weir__out *out, const struct weir_check_finding *finding)
{
    weir__out_string_field(out, "kind", weir_findings_kind_name(finding->kind));
    weir__out_uint_field(out, "count", finding->count);
    weir__out_string_field(out, "message", finding->message);
    weir__out_string_field(out, "remedy", finding->remedy);
    weir__out_string_field(out, "suppression", finding->suppression ? finding->suppression : "");
    write_place(out, "first", &finding->first);
    write_place(out, "second", &finding->second);
}

void weir__page_findings(struct weir__out *out, const struct weir_findings *findings)
{
    weir__out_raw(out, "[");
    for (size_t i = 0; i < findings->count; i++) {
        weir__out_raw(out, i ? ",\n{" : "{");
        write_finding(out, findings->items[i]);
        weir__out_raw(out, "}");
    }
    weir__out_raw(out, "]");
}
