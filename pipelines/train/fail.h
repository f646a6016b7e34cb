// How the files of this folder report what they refuse: as the patterns do.
#ifndef WEIR_PIPELINES_TRAIN_FAIL_H
#define WEIR_PIPELINES_TRAIN_FAIL_H

#include "patterns/fail.h"

weir_status train_fail_memory(const char *label);

#endif
