// See the header.
#include "tests/bench/peers/raw_peer.h"

#include "kernels/conformance/conformance.h"

bool raw_peer_cuda_fine(struct raw_cuda *cu, const char *call, CUresult result)
{
    char message[512];
    return raw_cuda_fine(cu, result, call, message, sizeof message) || peer_fail("%s", message);
}

bool raw_peer_opencl_fine(cl_int code, const char *call)
{
    return code == CL_SUCCESS || peer_fail("%s failed with %d", call, (int)code);
}

bool raw_peer_init(struct raw_cuda *cu)
{
    char message[1024];
    if (!raw_cuda_init(cu, message, sizeof message))
        return peer_skip("%s", message);
    return (cu->cuMemcpyHtoD && cu->cuMemcpyDtoH) ||
           peer_skip("the CUDA driver lacks copies that block");
}

bool raw_peer_open_device(struct raw_cuda *cu)
{
    char message[512];
    if (!raw_cuda_open_device(cu, message, sizeof message))
        return peer_fail("%s", message);
    peer_device(cu->name);
    return true;
}

bool raw_peer_load_kernels(struct raw_cuda *cu)
{
    char message[512];
    return raw_cuda_load_kernels(cu, &conformance_kernels, message, sizeof message) ||
           peer_skip("%s", message);
}

bool raw_peer_cuda(struct raw_cuda *cu)
{
    return raw_peer_init(cu) && raw_peer_open_device(cu) && raw_peer_load_kernels(cu);
}

bool raw_peer_opencl(struct raw_opencl *cl)
{
    char message[1024];
    if (!raw_opencl_open(cl, NULL, &conformance_kernels, message, sizeof message))
        return peer_skip("%s", message);
    peer_device(cl->name);
    return true;
}
