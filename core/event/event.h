// Queries and waits of the library on behalf of a call of the user, which plugins see.
#ifndef WEIR_CORE_EVENT_EVENT_H
#define WEIR_CORE_EVENT_EVENT_H

#include <weir/event.h>
#include <weir/status.h>

#include "core/queue/delivery.h"

weir_status weir__event_sync(struct weir_event event, uint64_t timeout_ns,
                             const struct weir__host_caller *caller);

#endif
