// See the header.
#include "patterns/place.h"

#include <weir/status.h>

static _Thread_local struct weir__place place;

struct weir__place weir__pattern_begin(const char *file, int line)
{
    const struct weir__place before = place;
    place = (struct weir__place){file, line};
    return before;
}

weir_status weir__pattern_end(weir_status status, struct weir__place before)
{
    const struct weir__place own = place;
    place = before;
    if (status >= 0 || !own.file || weir_last_error()->status != status || weir_last_error()->file)
        return status;
    struct weir_error error = *weir_last_error();
    error.file = own.file;
    error.line = own.line;
    return weir_error_set(&error);
}

struct weir__place weir__pattern_place(const char *file, int line)
{
    return place.file ? place : (struct weir__place){file, line};
}
