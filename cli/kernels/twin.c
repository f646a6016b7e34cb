#include "cli/kernels/kernels.h"

bool kernels_twin_take(const struct kernels_twin *twin, bool architectures_are_named,
                       struct kernels_source *source)
{
    if (twin->cuda && twin->images.count > 0)
        cli_error("--cuda and --cuda-image both name what CUDA runs; leave one out");
    else if (architectures_are_named && twin->images.count > 0)
        cli_error("--cuda-image names images that are there; leave --cubin and --ptx out");
    else if (twin->nvcc_options.count > 0 && !twin->cuda)
        cli_error("--nvcc-option is for the file of --cuda, and there is none");
    else {
        source->build.twin = (struct kc_twin){
            .source = twin->cuda,
            .options = {twin->nvcc_options.items, twin->nvcc_options.count},
            .images = {twin->images.items, twin->images.count},
        };
        return true;
    }
    return false;
}
