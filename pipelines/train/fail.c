#include "pipelines/train/fail.h"

weir_status train_fail_memory(const char *label)
{
    return weir__pattern_fail(label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                              "no memory of the host is left");
}
