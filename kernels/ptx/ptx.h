// PTX that compilers of OpenCL C make, for CUDA's loader. The loader refuses a whole module for
// a parameter in shared memory, and a program of the driver's has no way to learn an address there.
//
// So each pointer to local memory among a kernel's parameters becomes an offset, of 64 bits,
// into the dynamic shared memory of the block, to which the kernel adds the address of that
// memory: the launch places these arrays one after another and asks for the sum.
//
// Constant memory becomes global memory, since a pointer to it may be an argument, and that of
// CUDA cannot be reached by one.
//
// The driver's OpenCL compiler reads the launch from %envreg0 to 9, which hold anything under
// CUDA (measured, driver 580). They become what CUDA's launches have: no offset of the groups
// (0 to 2) or of the work-items (3 to 5), the number of groups (6 to 8), and three dimensions (9).
// That compiler declares the driver's function vprintf without ".extern": a launch then ends the process.
// Lines with `weir_grid_`, of kernels/library's barrier of a grid, are left as they are: cooperative
// launches of CUDA set two of these registers.
#ifndef WEIR_KERNELS_PTX_PTX_H
#define WEIR_KERNELS_PTX_PTX_H

#include <stddef.h>

// Local memory that a launch sizes begins at a multiple of this, the largest alignment that an
// instruction needs.
#define WEIR_PTX_LOCAL_ALIGNMENT 16

// Returns the text, which need not end with a zero, as a string that CUDA's loader takes.
//
// Ownership: the caller's, to be freed with free().
// Errors: NULL, with a sentence in `message` of `message_size` bytes: a kernel uses a parameter in
// a way that is not known, or there is no memory.
char *weir_ptx_for_cuda(const char *ptx, size_t size, char *message, size_t message_size);

#endif
