// What matmul.cu asks of the GPU beyond C++: tensor cores, and copies that do not wait, of sm_80 and
// later. tests/kernels/matmul_twin_test.cc has the same for the host.
//
// Fragments are as PTX has them for mma.m16n8k8 with tf32: of lane l, g = l / 4 and t = l % 4,
//
//   a, 16 x 8:    (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   b, 8 x 8:     (t, g), (t + 4, g)
//   sum, 16 x 8:  (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
#ifndef WEIR_KERNELS_MATMUL_TENSOR_CUH
#define WEIR_KERNELS_MATMUL_TENSOR_CUH

// sum += a b, for a warp. Of the factors the upper 19 bits count.
static __device__ __forceinline__ void tensor_multiply(float sum[4], const unsigned a[4],
                                                       const unsigned b[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The fragment of `a` from shared memory. Lane l names four floats, at a multiple of 16 bytes: those of
// row l % 16 that begin in column l / 16 * 4.
static __device__ __forceinline__ void tensor_load(unsigned out[4], const float *part)
{
    const unsigned from = (unsigned)__cvta_generic_to_shared(part);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
}

// Begins to copy 4 or 16 bytes to shared memory; zeros if they are not there, and then nothing
// is read. 16 bytes are at multiples of that.
static __device__ __forceinline__ void copy_4(float *to, const float *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0)
                 : "memory");
}
static __device__ __forceinline__ void copy_16(float *to, const float *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
                 : "memory");
}

// Ends a group of the calling thread's copies; waits until all its groups but the last MOST are
// there.
static __device__ __forceinline__ void copies_end()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int MOST> static __device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(MOST) : "memory");
}

#endif
