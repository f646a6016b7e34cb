// The layout of the packed weights, in floats, shared by the kernels and by
// pack.c. Matrices are stored [in][out], so that work-items which compute
// neighbouring outputs read neighbouring floats.

#ifndef WEIR_KERNELS_ARR_COC_LAYOUT_CL_H
#define WEIR_KERNELS_ARR_COC_LAYOUT_CL_H

enum {
    ARR_COC_CHANNELS = 13,
    ARR_COC_HIDDEN = 64,
    ARR_COC_BALANCER = 128,
    ARR_COC_STATISTICS = 9,
    ARR_COC_SIDE_MIN = 8,
    ARR_COC_SIDE_MAX = 20,

    // Participatory, with W and b of its two layers and the query q:
    ARR_COC_PACK_W0 = 0,                                                   // [13][64] W0
    ARR_COC_PACK_B0 = ARR_COC_PACK_W0 + ARR_COC_CHANNELS * ARR_COC_HIDDEN, // [64] b0
    ARR_COC_PACK_GRAM = ARR_COC_PACK_B0 + ARR_COC_HIDDEN,                  // [64][64] W2' W2
    ARR_COC_PACK_WB = ARR_COC_PACK_GRAM + ARR_COC_HIDDEN * ARR_COC_HIDDEN, // [64] 2 W2' b2
    ARR_COC_PACK_WQ = ARR_COC_PACK_WB + ARR_COC_HIDDEN,                    // [64] W2' q
    ARR_COC_PACK_SCALARS = ARR_COC_PACK_WQ + ARR_COC_HIDDEN,               // b2'b2, b2'q, |q|, 0

    // Balancer:
    ARR_COC_PACK_BALANCER_0 = ARR_COC_PACK_SCALARS + 4, // [9][128] columns 0 to 8 of W0
    ARR_COC_PACK_BALANCER_0_BIAS =                      // [128] b0 + the other columns times q
        ARR_COC_PACK_BALANCER_0 + ARR_COC_STATISTICS * ARR_COC_BALANCER,
    ARR_COC_PACK_BALANCER_2 = ARR_COC_PACK_BALANCER_0_BIAS + ARR_COC_BALANCER, // [128][128] W2
    ARR_COC_PACK_BALANCER_2_BIAS =
        ARR_COC_PACK_BALANCER_2 + ARR_COC_BALANCER * ARR_COC_BALANCER,             // [128] b2
    ARR_COC_PACK_BALANCER_4 = ARR_COC_PACK_BALANCER_2_BIAS + ARR_COC_BALANCER,     // [128][3] W4
    ARR_COC_PACK_BALANCER_4_BIAS = ARR_COC_PACK_BALANCER_4 + ARR_COC_BALANCER * 3, // [3] b4

    ARR_COC_PACK_FLOATS = ARR_COC_PACK_BALANCER_4_BIAS + 4
};

#endif
