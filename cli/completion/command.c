// weir completion SHELL: the commands' own --help is visited, so nothing here names a command or an
// option.
#include "cli/completion/command.h"

#include <stdio.h>
#include <string.h>

#include "cli/completion/completion.h"

static int (*whole)(int argc, char **argv); // of cli_completion()

const struct cli_option completion_common[2] = {
    {.name = "help", .help = "print this text"},
    {.name = "version", .help = "print the version"},
};

enum completion_value completion_of_option(const struct cli_option *option)
{
    switch (option->kind) {
    case CLI_FLAG:
        return COMPLETION_NONE;
    case CLI_FILE:
    case CLI_FILES:
        return COMPLETION_FILE;
    case CLI_FOLDER:
    case CLI_FOLDERS:
        return COMPLETION_FOLDER;
    default:
        return COMPLETION_TEXT;
    }
}

enum completion_value completion_of_operands(const char *operands)
{
    if (operands[0] == '\0')
        return COMPLETION_NONE;
    return strncmp(operands, "COMMAND", 7) == 0 ? COMPLETION_PROGRAM : COMPLETION_FILE;
}

bool completion_repeats(const struct cli_option *option)
{
    return option->kind == CLI_LIST || option->kind == CLI_FILES || option->kind == CLI_FOLDERS;
}

const char *completion_dashes(const char *name)
{
    return name[1] == '\0' ? "-" : "--";
}

void completion_print(const char *text, const char *special, const char *quote)
{
    for (; *text != '\0' && *text != ';'; text++) {
        if (strchr(special, *text))
            putchar('\\');
        if (*text == '\'')
            fputs(quote, stdout);
        else
            putchar(*text == '\n' ? ' ' : *text);
    }
}

void completion_visit(void (*usage)(void *user, const struct cli_usage *usage),
                      void (*members)(void *user, const struct cli_command *group,
                                      const char *path))
{
    const struct cli_visitor visitor = {.usage = usage, .members = members};
    char name[] = "weir";
    char help[] = "--help";
    char *arguments[] = {name, help, NULL};
    cli_help_visit(&visitor);
    whole(2, arguments);
    cli_help_visit(NULL);
}

static int print(const char *command, const char *about, void (*script)(void), int argc,
                 char **argv)
{
    const struct cli_usage usage = {
        .command = command,
        .operands = "",
        .operand = "",
        .about = about,
        .manual = "weir-completion(1)",
    };
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    script();
    return CLI_OK;
}

static int bash_main(int argc, char **argv)
{
    return print("weir completion bash",
                 "Prints what completes weir's command lines in bash, to be read by it:\n"
                 "\n"
                 "  source <(weir completion bash)",
                 completion_bash, argc, argv);
}

static int zsh_main(int argc, char **argv)
{
    return print(
        "weir completion zsh",
        "Prints what completes weir's command lines in zsh: a file `_weir` of a folder in\n"
        "$fpath, or, after compinit:\n"
        "\n"
        "  source <(weir completion zsh)",
        completion_zsh, argc, argv);
}

static int fish_main(int argc, char **argv)
{
    return print("weir completion fish",
                 "Prints what completes weir's command lines in fish, to be read by it:\n"
                 "\n"
                 "  weir completion fish | source",
                 completion_fish, argc, argv);
}

int cli_completion(int (*weir)(int argc, char **argv), int argc, char **argv)
{
    const struct cli_command members[] = {
        {.name = "bash", .summary = "for bash", .main = bash_main},
        {.name = "fish", .summary = "for fish", .main = fish_main},
        {.name = "zsh", .summary = "for zsh", .main = zsh_main},
    };
    const struct cli_command group = {
        .what = "SHELL",
        .summary = "Prints what completes weir's command lines in a shell.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    whole = weir;
    return cli_dispatch(&group, "weir completion", "weir-completion(1)", argc, argv);
}
