// Numbers with a decimal point in every locale of the program, so that files and options mean the
// same everywhere.
//
//     const locale_t before = weir_c_locale_enter();
//     snprintf(text, sizeof text, "%.1f", share); // strtod() and jansson too
//     weir_c_locale_leave(before);
//
// Only the calling thread is affected; pairs may nest.
//
// Threads: safe.
#ifndef WEIR_BASE_C_LOCALE_H
#define WEIR_BASE_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/text.h"

// Sets the calling thread's locale to C. Returns the argument for weir_c_locale_leave().
locale_t weir_c_locale_enter(void);
void weir_c_locale_leave(locale_t before);

// vsnprintf(), snprintf() and strtod() in the C locale.
int weir_c_vformat(char *text, size_t size, const char *format, va_list arguments)
    WEIR_TEXT_PRINTF(3, 0);
int weir_c_format(char *text, size_t size, const char *format, ...) WEIR_TEXT_PRINTF(3, 4);
double weir_c_number(const char *text, char **out_end);

#endif
