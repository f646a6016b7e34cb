// The kernels of ARR-COC as a shared library has them for device.program(bundle="FILE:SYMBOL").
#include "kernels/arr_coc/arr_coc.h"
#include "kernels/arr_coc/layout.cl.h"

WEIR_API struct weir_bundle bundle;
WEIR_API const int pack_floats = ARR_COC_PACK_FLOATS;

__attribute__((constructor)) static void copy(void)
{
    bundle = arr_coc_kernels;
}
