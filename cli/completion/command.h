// `weir completion`: prints a script with which a shell completes weir's command lines.
#ifndef WEIR_CLI_COMPLETION_COMMAND_H
#define WEIR_CLI_COMPLETION_COMMAND_H

// `weir` is the whole command, as main() runs it: the scripts are made from what its --help and
// that of each of its commands tell, so that an option in a table is an option in the scripts.
//
// Returns an exit code.
int cli_completion(int (*weir)(int argc, char **argv), int argc, char **argv);

#endif
