// Command lines that end with another command and its arguments.
#include <string.h>

#include "cli/program/program.h"

// Whether the argument is an option whose value is the next argument.
static bool takes_next(const struct cli_usage *usage, const char *argument)
{
    const char *name = argument + 1 + (argument[1] == '-');
    for (size_t i = 0; i < usage->option_count; i++)
        if (usage->options[i].kind != CLI_FLAG && strcmp(name, usage->options[i].name) == 0)
            return true;
    return false;
}

// How many arguments come before COMMAND, argv[0] included.
static int leading(const struct cli_usage *usage, int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
        if (strcmp(argv[i], "--") == 0)
            return i;
        i += takes_next(usage, argv[i]) ? 2 : 1;
    }
    return i < argc ? i : argc;
}

bool cli_program_parse(const struct cli_usage *usage, int argc, char **argv, char ***out_command,
                       int *out_exit)
{
    const int before = leading(usage, argc, argv);
    size_t operands;
    if (!cli_parse(usage, before, argv, &operands, out_exit))
        return false;
    *out_command = argv + before + (before < argc && strcmp(argv[before], "--") == 0);
    if (**out_command)
        return true;
    cli_error("%s needs a command: %s %s", usage->command, usage->command, usage->operands);
    *out_exit = CLI_USAGE;
    return false;
}
