// Native handles.
#ifndef WEIR_CORE_INTEROP_NATIVE_H
#define WEIR_CORE_INTEROP_NATIVE_H

#include <weir/module/module.h>

// The API of the device's native handles; WEIR_ERROR_UNSUPPORTED if it has none. `what`
// begins the message.
weir_status weir__native_api(weir_device *device, const char *what, const char *label,
                             weir_native_api *out_api);

#endif
