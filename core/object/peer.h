// Copies between devices. A queue may use a buffer of another device, so whoever
// destroys that buffer has to ask more queues than those of its own device. Which
// devices they are is noted here, in pairs, at the first copy between two devices; a
// program with one device has none and pays one load for the question.
#ifndef WEIR_CORE_OBJECT_PEER_H
#define WEIR_CORE_OBJECT_PEER_H

#include "core/object/device.h"

// Whether queues of `device` may use buffers of `other` in copies. If so, it is noted
// that they do.
bool weir__peer_allow(weir_device *device, weir_device *other);

// The devices whose queues may use buffers of `owner`, one after the other: NULL starts,
// and each call lets go of the one it was given. A device does not close while it is
// given out.
struct weir__peer *weir__peer_next(weir_device *owner, struct weir__peer *peer);
weir_device *weir__peer_user(const struct weir__peer *peer);

// Forgets a device that has neither queues nor buffers left.
void weir__peer_forget(weir_device *device);

#endif
