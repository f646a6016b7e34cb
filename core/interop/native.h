// Native handles.
#ifndef WEIR_CORE_INTEROP_NATIVE_H
#define WEIR_CORE_INTEROP_NATIVE_H

#include <weir/module/module.h>

// The device's native handles; WEIR_ERROR_UNSUPPORTED where it has none. `what` begins the
// message.
weir_status weir__native_device(weir_device *device, const char *what, const char *label,
                                struct weir_native_device *out_native);

#endif
