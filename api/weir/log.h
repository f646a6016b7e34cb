// Log messages of the library. The library prints none by itself, unless its user asks for it: with
// WEIR_LOG or WEIR_DEBUG, or `log` or `debug` of [weir], they go to standard error while no function is
// set here.
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <weir/common.h>

typedef enum weir_log_level {
    WEIR_LOG_ERROR = 1,
    WEIR_LOG_WARNING = 2,
    WEIR_LOG_INFO = 3,
    WEIR_LOG_DEBUG = 4,
} weir_log_level;

// Receives one message, without a newline at its end. `source` is "core" or
// the name of a module. May be called on any thread; must not call Weir.
typedef void (*weir_log_function)(void *user, weir_log_level level, const char *source,
                                  const char *message);

// Sends messages of `level` and of more severe levels to `function`; NULL, which is the default, to
// nothing, or to standard error as described above. Affects the whole process. In debug mode, and
// where WEIR_LOG asks, each call that is refused is a message of level ERROR.
//
// Threads: safe, but a message already under way may still reach the function
// that was set before.
WEIR_API void weir_log_set(weir_log_function function, void *user, weir_log_level level);

#endif
