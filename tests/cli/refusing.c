// Loaded before the C library: pipes of packets that cannot be made or have room for one packet only,
// and a command that cannot be started again, as REFUSE says.
#define _GNU_SOURCE // O_DIRECT, RTLD_NEXT
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool refuses(const char *what)
{
    const char *refuse = getenv("REFUSE");
    return refuse && strcmp(refuse, what) == 0;
}

__attribute__((visibility("default"))) int pipe2(int ends[2], int flags)
{
    if ((flags & O_DIRECT) && refuses("pipe")) {
        errno = EMFILE;
        return -1;
    }
    const int result = (int)syscall(SYS_pipe2, ends, flags);
    if (result == 0 && (flags & O_DIRECT) && refuses("room"))
        fcntl(ends[1], F_SETPIPE_SZ, 4096);
    return result;
}

__attribute__((visibility("default"))) int posix_spawn(pid_t *process, const char *path,
                                                       const posix_spawn_file_actions_t *actions,
                                                       const posix_spawnattr_t *attributes,
                                                       char *const arguments[],
                                                       char *const environment[])
{
    int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                const posix_spawnattr_t *, char *const[], char *const[]);
    if (strcmp(path, "/proc/self/exe") == 0 && refuses("start"))
        return EAGAIN;
    *(void **)(void *)&real = dlsym(RTLD_NEXT, "posix_spawn");
    return real(process, path, actions, attributes, arguments, environment);
}
