// A bundle as a shared library has it for device.program(bundle="FILE:SYMBOL").
#include "kernels/conformance/conformance.h"

WEIR_API struct weir_bundle bundle;

__attribute__((constructor)) static void copy(void)
{
    bundle = conformance_kernels;
}
