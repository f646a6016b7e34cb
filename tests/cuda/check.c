#include "tests/cuda/check.h"

#include <stdarg.h>

int check_failures;
bool check_quiet;

bool check(bool good, const char *format, ...)
{
    va_list arguments;
    check_failures += !good;
    if (check_quiet && good)
        return good;
    va_start(arguments, format);
    printf("%s  ", good ? "ok  " : "FAIL");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    if (!good)
        printf("      last error: %s\n", weir_last_error_text());
    fflush(stdout);
    return good;
}
