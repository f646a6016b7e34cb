#include <cstdio>
#include <vector>
#include <weir/weir.hpp>

#include "docs/first/scale.h" // made from scale.cl by weir_kernels

int main()
try {
    constexpr std::size_t parts = 4, count = 1 << 16, bytes = count * sizeof(float);
    weir::runtime runtime; // the chain that WEIR_CONFIG or the default names
    weir::device device(runtime);
    weir::queue copy(device, "copy"), compute(device, "compute");
    weir::program program(device, scale_kernels);
    weir::kernel scale(program, "scale");
    weir::array<float> host(device, parts * count, WEIR_PLACE_HOST);
    weir::array<float> in(device, parts * count), out(device, parts * count);

    float next = 0;
    for (float &number : host.host(WEIR_ACCESS_WRITE))
        number = next++;

    for (std::size_t at = 0; at < parts * bytes; at += bytes) {
        copy.copy(in, at, host, at, bytes);
        compute.wait(copy.record()); // the next part is copied meanwhile
        compute.launch(scale, weir_dim(count / 64, 1, 1), weir_dim(64, 1, 1),
                       weir_in(in, at, bytes), weir_out(out, at, bytes), 2.0f);
    }
    std::vector<float> results(parts * count);
    compute.download(results, out); // blocks
    std::printf("1000 * 2 = %g\n", results[1000]);
} catch (const weir::error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
