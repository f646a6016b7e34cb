// The C library has the C locale built in, so making it needs no memory and cannot fail there;
// elsewhere a failure leaves the thread as it is.
#include "tests/abi/frozen/trace/base/c_locale.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t weir_c_locale_enter(void)
{
    pthread_once(&once, make);
    return uselocale(c_locale);
}

void weir_c_locale_leave(locale_t before)
{
    uselocale(before);
}

int weir_c_vformat(char *text, size_t size, const char *format, va_list arguments)
{
    const locale_t before = weir_c_locale_enter();
    const int length = vsnprintf(text, size, format, arguments);
    weir_c_locale_leave(before);
    return length;
}

int weir_c_format(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = weir_c_vformat(text, size, format, arguments);
    va_end(arguments);
    return length;
}

double weir_c_number(const char *text, char **out_end)
{
    const locale_t before = weir_c_locale_enter();
    const double number = strtod(text, out_end);
    weir_c_locale_leave(before);
    return number;
}
