// Names of the source files of callers, kept. `__FILE__` lies in the library that made the call, which may be
// unloaded long before a plugin writes the operation's line, or a thread reads its last error.
//
// Threads: safe, without a lock.
#ifndef WEIR_CORE_SUPPORT_FILE_NAME_H
#define WEIR_CORE_SUPPORT_FILE_NAME_H

#include <weir/common.h>

// A name of the same text that is valid until the process ends; equal texts get the same name. NULL for NULL.
// The names of a process share 1 MiB of static memory: what does not fit is named "(file not kept)".
const char *weir__file_name(const char *file);

#endif
