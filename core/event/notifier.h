// Making eventfds readable when events complete: one thread per device that
// was ever asked for one.
#ifndef WEIR_CORE_EVENT_NOTIFIER_H
#define WEIR_CORE_EVENT_NOTIFIER_H

#include <weir/event.h>
#include <weir/status.h>

// Creates an eventfd for `event`. With `device` NULL the event is complete
// already, and so is the descriptor.
weir_status weir__notifier_add(weir_device *device, struct weir_event event, int *out_fd);

// Makes what is left readable and ends the thread.
void weir__notifier_destroy(weir_device *device);

#endif
