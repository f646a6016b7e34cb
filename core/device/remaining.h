// What keeps a device from being closed.
#ifndef WEIR_CORE_DEVICE_REMAINING_H
#define WEIR_CORE_DEVICE_REMAINING_H

#include <weir/device.h>

// WEIR_ERROR_INVALID, with their labels, while objects of the user's exist.
weir_status weir__device_refuse_close(weir_device *device);

#endif
