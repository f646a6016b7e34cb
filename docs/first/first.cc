#include <cstdio>
#include <vector>
#include <weir/weir.hpp>

#include "docs/first/scale.h" // made from scale.cl by weir_kernels

int main()
try {
    constexpr std::size_t parts = 4, count = 1 << 16, bytes = count * sizeof(float);
    weir::device device; // as WEIR_CONFIG or the default says
    weir::queue copy(device, "copy"), compute(device, "compute");
    weir::kernel scale(device, scale_kernels, "scale");
    weir::pair<float> in(device, parts * count);
    weir::array<float> out(device, parts * count);

    float next = 0;
    for (float &number : in.host.host(WEIR_ACCESS_WRITE))
        number = next++;

    for (std::size_t at = 0; at < parts * bytes; at += bytes) {
        copy.copy(in.memory, at, in.host, at, bytes);
        compute.after(copy); // the next part is copied meanwhile
        compute.launch_global(scale, weir_dim(count, 1, 1), weir_in(in.memory, at, bytes),
                              weir_out(out, at, bytes), 2.0f);
    }
    std::vector<float> results(parts * count);
    compute.download(results, out); // blocks
    std::printf("1000 * 2 = %g\n", results[1000]);
} catch (const weir::error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
