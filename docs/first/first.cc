#include <cstdio>
#include <vector>
#include <weir/weir.hpp>

#include "docs/first/scale.h" // made from scale.cl by weir_kernels

int main()
try {
    std::vector<float> numbers(1024);
    numbers[1000] = 1000;
    weir::runtime runtime; // the chain that WEIR_CONFIG or the default names
    weir::device device(runtime);
    weir::queue queue(device);
    weir::program program(device, scale_kernels);
    weir::kernel scale(program, "scale");
    weir::array<float> in(device, numbers.size()), out(device, numbers.size());

    queue.upload(in, numbers);
    queue.launch(scale, weir_dim(1024 / 64, 1, 1), weir_dim(64, 1, 1), in.in(), out.out(), 2.0f);
    queue.download(numbers, out);
    std::printf("1000 * 2 = %g\n", numbers[1000]);
} catch (const weir::error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
