// Products of matrices against float64, for whatever computes them.
#ifndef WEIR_TESTS_PIPELINES_TRAIN_PRODUCT_CASES_H
#define WEIR_TESTS_PIPELINES_TRAIN_PRODUCT_CASES_H

#include "pipelines/train/product.h"
#include "tests/pipelines/train/rig.h"

// Runs products of many sizes, of both orders of both factors, alone and added to what is there.
// Results lie inside a buffer; what is around them must stay.
void check_products(const struct rig *rig, const struct train_engine *engine);

#endif
