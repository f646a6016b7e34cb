#include "cli/common/spawn.h"

#include <signal.h>

extern char **environ;

int cli_spawn(const char *program, const char *const *arguments,
              const posix_spawn_file_actions_t *actions, bool own_group, pid_t *out_process)
{
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGMASK |
                                                  (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
    posix_spawnattr_setsigmask(&attributes, &none);
    const int error = posix_spawn(out_process, program, actions, &attributes,
                                  (char **)(void *)arguments, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}
