#include "cli/common/table.h"

#include <stdlib.h>

#include "cli/common/cli.h"

void cli_table_print(struct weir_table *table, FILE *to, size_t indent)
{
    struct weir_long_text text = {0};
    weir_table_end(table, indent, &text);
    if (text.failed)
        cli_error("no memory for a table");
    else if (text.text)
        fputs(text.text, to);
    free(text.text);
}
