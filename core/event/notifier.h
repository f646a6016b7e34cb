// Makes eventfds readable when events complete, with one thread for each device from which a
// descriptor was requested.
#ifndef WEIR_CORE_EVENT_NOTIFIER_H
#define WEIR_CORE_EVENT_NOTIFIER_H

#include <weir/event.h>
#include <weir/status.h>

// Creates an eventfd for `event`. If `device` is NULL the event is already
// complete, and the descriptor is readable.
weir_status weir__notifier_add(weir_device *device, struct weir_event event, int *out_fd);

// Makes the remaining descriptors readable and ends the thread.
void weir__notifier_destroy(weir_device *device);

#endif
