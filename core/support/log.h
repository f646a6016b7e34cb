// Sending messages to the user's log callback.
#ifndef WEIR_CORE_SUPPORT_LOG_H
#define WEIR_CORE_SUPPORT_LOG_H

#include <weir/log.h>

// `source` is "core" or a module's name. Costs one load when logging is off.
void weir__log(weir_log_level level, const char *source, const char *message);

#endif
