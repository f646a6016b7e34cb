// What the files of `weir sim` share.
#ifndef WEIR_CLI_SIM_H
#define WEIR_CLI_SIM_H

// Each is in its <name>.c. Returns an exit code.
int cli_sim_learn(int argc, char **argv);

#endif
