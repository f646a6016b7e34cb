// All messages of io/ are made here, so that they have one form.
#include "io/error.h"

#include <stdarg.h>

#include "base/text.h"

bool weir_io_fail(struct weir_io_error *error, const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(error->message, sizeof error->message, path, format, arguments);
    va_end(arguments);
    return false;
}
