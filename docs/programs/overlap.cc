// Two queues: one brings pieces to the device, the other one works on each as soon as it is there. And
// what a mistake looks like: an exception, and in C++23 a value.
#include <cstdio>
#include <vector>
#if __has_include(<expected>)
#include <expected>
#endif
#include <weir/weir.hpp>

static const char source[] = "__kernel void scale(__global float *data, uint count, float factor)\n"
                             "{\n"
                             "    uint i = (uint)get_global_id(0);\n"
                             "    if (i < count)\n"
                             "        data[i] *= factor;\n"
                             "}\n";

#ifdef __cpp_lib_expected
// What `call` returns, or the error that it throws.
template <typename Call>
static std::expected<std::invoke_result_t<Call>, weir::error> attempt(Call call)
{
    try {
        return call();
    } catch (const weir::error &error) {
        return std::unexpected(error);
    }
}
#endif

// Doubles the numbers of `host` in pieces, and returns the nanoseconds from the first copy to the last.
static std::int64_t run(const weir::device &device, const weir::kernel &scale,
                        const weir::array<float> &host, std::size_t pieces)
{
    weir::queue bring(device, "bring", true), work(device, "work", true);
    const std::size_t count = host.count() / pieces, bytes = count * sizeof(float);
    std::vector<weir::array<float>> parts;
    for (std::size_t i = 0; i < pieces; i++)
        parts.emplace_back(device, count);

    const weir::event begin = bring.record();
    for (std::size_t i = 0; i < pieces; i++) {
        bring.copy(parts[i], 0, host, i * bytes, bytes);
        work.wait(bring.record()); // only for this piece; the next one comes meanwhile
        work.launch(scale, count, parts[i].inout(), static_cast<std::uint32_t>(count), 2.0f);
        work.copy(host, i * bytes, parts[i], 0, bytes);
    }
    const weir::event end = work.record();
    end.sync();
    return weir::elapsed_ns(begin, end);
}

int main()
try {
    weir::runtime runtime;
    weir::device device(runtime);
    weir::program program(device, source);
    weir::kernel scale(program, "scale");
    weir::array<float> host(device, 1 << 20, WEIR_PLACE_HOST);

    for (float &number : host.host(WEIR_ACCESS_WRITE))
        number = 0.5f;
    const std::int64_t ns = run(device, scale, host, 8);
    double sum = 0;
    for (float number : host.host(WEIR_ACCESS_READ))
        sum += number;
    std::printf("8 pieces, the sum is %.0f, %s\n", sum, ns > 0 ? "timed" : "not timed");

    try {
        weir::kernel missing(program, "scael");
    } catch (const weir::error &error) {
        std::printf("thrown: %s\n", error.what());
    }
#ifdef __cpp_lib_expected
    const auto missing = attempt([&] { return weir::kernel(program, "scael"); });
    std::printf("returned: %s\n", missing ? "a kernel" : missing.error().what());
#endif
} catch (const weir::error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
