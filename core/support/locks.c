// See the header.
#include "core/support/locks.h"

const struct weir_lock_kind weir__locks[] = {
#define WEIR__LOCK(name, text) {text, WEIR__LOCK_##name},
    WEIR__LOCKS(WEIR__LOCK)
#undef WEIR__LOCK
};
