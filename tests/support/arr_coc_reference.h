// The ARR-COC pipeline in plain float64, one function per stage, for tests
// only.
//
// Every backend is compared with it, so it follows the formulas and shares no
// code with any kernel. Nothing is fused or reordered for speed: clarity comes
// first.
//
// Arrays are row-major. Sizes come in a `struct arr_coc_reference_dims`; every
// output is the caller's memory, with the size in its comment.
//
// The entropy histogram holds integers; whether a pixel's weight rounds up or down at
// a tie depends on the last bits of L*, so a float32 backend may put 1/256 of a pixel
// into the neighbouring bin. Which patches stage 3 takes must be exact, and is that of
// pipelines/arr_coc/weights.h.
//
// Threads: safe; no state. Memory: a few of them allocate scratch space and end
// the test program if there is none.

#ifndef WEIR_TESTS_SUPPORT_ARR_COC_REFERENCE_H
#define WEIR_TESTS_SUPPORT_ARR_COC_REFERENCE_H

#include <stdint.h>

#include "pipelines/arr_coc/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ARR_COC_REFERENCE_CHANNELS = 13,
    ARR_COC_REFERENCE_HIDDEN = 64,    // width of the participatory layer
    ARR_COC_REFERENCE_BALANCER = 128, // width of the balancer's layers
    ARR_COC_REFERENCE_STATISTICS = 9, // inputs of the balancer besides the
                                      // query
};

struct arr_coc_reference_dims {
    int size;   // S: working size in pixels, a multiple of `grid`
    int grid;   // G: patches per side
    int budget; // B: tokens of an image
    int query;  // D: numbers in a query
};

// Stage 1. Resizes `rgb8` (height x width pixels of 3 bytes, both at least 1)
// to S x S and writes the 13 channels to `out_texture` [13, S, S].
void arr_coc_reference_texture(const struct arr_coc_reference_dims *dims, const unsigned char *rgb8,
                               int height, int width, double *out_texture);

// The colour part of stage 1 for one pixel: `rgb` in [0, 1] to L*/100,
// (a* + 128)/255, (b* + 128)/255, clamped to [0, 1].
void arr_coc_reference_lab(const double rgb[3], double out_lab[3]);

// Stage 2. `texture` is [13, S, S]; a test that checks stage 2 separately
// passes the backend's own texture, promoted. Writes
//   out_scores    [3, G, G]  propositional, perspectival, participatory
//   out_balance   [3]        the softmax weights
//   out_relevance [G, G]
// With a single patch (G = 1) the standard deviations are 0.
void arr_coc_reference_relevance(const struct arr_coc_reference_dims *dims,
                                 const struct arr_coc_tensors *weights, const double *texture,
                                 const float *query, double *out_scores, double out_balance[3],
                                 double *out_relevance);

// The part of stage 2 that is tested separately. `out` is [G, G].
void arr_coc_reference_entropy(const struct arr_coc_reference_dims *dims, const double *lightness,
                               double *out);

// Stage 3. Area-averages every patch of `patches` [patch_count, 3] and writes
// `out_tokens` [token_count, 13], at the first token that the patch names.
void arr_coc_reference_compress(const struct arr_coc_reference_dims *dims, const double *texture,
                                const int32_t *patches, int patch_count, double *out_tokens);

#ifdef __cplusplus
}
#endif

#endif
