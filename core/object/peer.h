// Copies between devices, and launches that use memory of another one. A queue may use a
// buffer of another device, so the destruction of that buffer has to check more queues than
// those of its own device. These devices are noted here, in pairs, at the first such operation
// of two devices; a program with one device has none and pays one load for the check.
#ifndef WEIR_CORE_OBJECT_PEER_H
#define WEIR_CORE_OBJECT_PEER_H

#include "core/object/device.h"

// Whether queues of `device` may use buffers of `other` in copies; an error is no.
bool weir__peer_can(weir_device *device, weir_device *other);

// Stores whether queues of `device`, which is another one, may use buffers of `other` in
// copies. If so, the pair is noted. An error is that of the driver, or of no memory.
weir_status weir__peer_allow(weir_device *device, weir_device *other, bool *out_allowed);

// The same for `buffer` of another device in launches.
weir_status weir__peer_reach(weir_device *device, weir_buffer *buffer, bool *out_reaches);

// The devices whose queues may use buffers of `owner`, one after the other: NULL starts,
// and each call releases the device that it was given. A device does not close while it
// is in use here.
struct weir__peer *weir__peer_next(weir_device *owner, struct weir__peer *peer);
weir_device *weir__peer_user(const struct weir__peer *peer);

// Removes a device that has neither queues nor buffers left.
void weir__peer_forget(weir_device *device);

#endif
