// The end of a call that fails, as its caller's end.
#ifndef WEIR_BASE_TRY_H
#define WEIR_BASE_TRY_H

// Returns from the function that calls it unless `call`, a weir_status, is WEIR_OK.
#define TRY(call)                         \
    do {                                  \
        const weir_status tried = (call); \
        if (tried != WEIR_OK)             \
            return tried;                 \
    } while (0)

#endif
