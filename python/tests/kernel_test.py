"""Programs, launches and their arguments, graphs."""

import os

import numpy
import pytest

import weir


def content(queue, buffer):
    array = numpy.empty(buffer.shape, buffer.dtype)
    queue.download(array, buffer)
    return array


@pytest.fixture
def pair(device, queue):
    src, dst = device.buffer(1024, "float32", label="src"), device.buffer(1024, "float32", label="dst")
    queue.upload(src, numpy.arange(1024, dtype="float32"))
    queue.fill(dst, 0)
    return src, dst


@pytest.mark.parametrize("shape", [(4, 256), ((4,), (256,)), ((4, 1, 1), (256, 1)), 1024])
def test_a_kernel_runs_with_a_grid_and_a_block_or_a_count(queue, program, pair, runs_kernels, shape):
    src, dst = pair
    program.kernel("scale")[shape](queue, weir.In(src), weir.Out(dst), 2.0)
    result = content(queue, dst)
    if runs_kernels:
        assert (result == numpy.arange(1024) * 2).all()


def test_parts_are_arguments(queue, program, pair, runs_kernels):
    src, dst = pair
    program.kernel("scale")[1, 256](queue, weir.In(src[512:768]), weir.Out(dst[256:512]), 2)
    result = content(queue, dst)
    if runs_kernels:
        assert (result[256:512] == numpy.arange(512, 768) * 2).all() and (result[512:] == 0).all()


def test_arguments_of_every_kind(device, queue, program, runs_kernels):
    dst = device.buffer(64, "int32")
    queue.fill(dst, 0)
    program.kernel("every")[1, 64](queue, weir.InOut(dst), -3, numpy.uint16(7), 1 << 10, (1, 2.0, 3, 4), 60, weir.Local(256))
    result = content(queue, dst)
    if runs_kernels:
        assert (result[:60] == -3 + 7 + 1024 + 10).all() and (result[60:] == 0).all()


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (lambda src, dst: (src, weir.Out(dst), 2.0), "'src' is const float \\*, .* weir.In\\(buffer\\)"),
        (lambda src, dst: (numpy.zeros(4), weir.Out(dst), 2.0), "weir.In\\(buffer\\)"),
        (lambda src, dst: (weir.In(src), weir.Out(dst)), "got 2 arguments, and has the parameters"),
        (lambda src, dst: (weir.In(src), weir.Out(dst), "two"), "factor is 'two'; it is a number"),
        (lambda src, dst: (weir.Out(src), weir.Out(dst), 2.0), "src"),
        (lambda src, dst: (weir.In(src), weir.Local(64), 2.0), "dst"),
        (lambda src, dst: (weir.In(src), weir.Out(dst), weir.In(src)), "factor"),
    ],
)
def test_wrong_arguments_name_the_parameter(queue, program, pair, arguments, sentence):
    with pytest.raises(weir.InvalidError, match=sentence) as raised:
        program.kernel("scale")[4, 256](queue, *arguments(*pair))
    assert raised.value.file == __file__
    queue.sync()


def test_a_buffer_of_another_type_is_refused(device, queue, program):
    with pytest.raises(weir.InvalidError, match="'src' is const float \\*, and its argument .* float64 elements"):
        program.kernel("scale")[1, 16](queue, weir.In(device.buffer(16, "f8")), weir.Out(device.buffer(16, "f4")), 1)
    with pytest.raises(weir.InvalidError, match="elements are not contiguous"):
        weir.In(device.buffer((4, 4))[:, 1])
    with pytest.raises(TypeError, match="it is a weir.Buffer"):
        weir.In(5)


@pytest.mark.parametrize("key", ["x", (1,), (1, 2, 3), (1, (1, 2, 3, 4)), (-1, 4), (1.5, 4)])
def test_a_wrong_grid_is_refused(program, key):
    with pytest.raises(weir.InvalidError):
        program.kernel("scale")[key]


def test_code_that_does_not_build_has_the_compilers_log(device, runs_kernels):
    if not runs_kernels:
        pytest.skip("null compiles nothing")
    with pytest.raises(weir.BuildError, match="nonsense"):
        device.program("kernel void f(global int *a) { a[0] = nonsense; }")


def test_a_program_comes_from_a_file(device, tmp_path):
    file = tmp_path / "code.cl"
    file.write_text("kernel void one(global int *a) { a[0] = 1; }")
    kernel = device.program(file=file).kernel("one")
    assert kernel.parameters == ("int * a",)
    with pytest.raises(FileNotFoundError):
        device.program(file=tmp_path / "none.cl")
    with pytest.raises(weir.InvalidError, match="FILE:SYMBOL"):
        device.program(bundle="none")
    with pytest.raises(weir.InvalidError, match="none.so"):
        device.program(bundle="none.so:kernels")


def test_a_program_comes_from_a_bundle(device, queue, runs_kernels):
    file = os.path.abspath("python/tests/bundle.so")
    if not os.path.exists(file):
        pytest.skip(f"bazel makes {file}")
    kernel = device.program(bundle=f"{file}:bundle").kernel("add_words")
    assert kernel.parameters[3] == "uint n"
    a, total = device.buffer(64, "uint32"), device.buffer(64, "uint32")
    queue.fill(a, 21)
    queue.fill(total, 0)
    kernel[64](queue, weir.In(a), weir.In(a), weir.Out(total), 64)
    if runs_kernels:
        assert (content(queue, total) == 42).all()


def test_kernels_outlive_their_program(device, queue, pair):
    src, dst = pair
    program = device.program("kernel void f(global float *a) { a[0] = 1; }")
    kernel = program.kernel("f")
    program.close()
    kernel[1, 1](queue, weir.InOut(dst))
    queue.sync()
    assert kernel.max_block_items >= 1 and kernel.suggest_block() >= 1


def test_a_graph_is_captured_and_launched(device, queue, program, pair, runs_kernels):
    src, dst = pair
    seen = []
    with queue.capture("twice") as capture:
        program.kernel("scale")[4, 256](queue, weir.In(src), weir.Out(dst), 2)
        queue.host_call(seen.append, 1)
    assert capture.graph.node_count == 2 and seen == []
    for _ in range(3):
        capture.graph.launch(queue)
    queue.sync()
    assert seen == [1, 1, 1]
    if runs_kernels:
        assert content(queue, dst)[3] == 6


def test_an_exception_cancels_the_capture(device, queue, pair):
    src, dst = pair
    with pytest.raises(KeyError):
        with queue.capture() as capture:
            queue.copy(dst, src)
            raise KeyError
    assert capture.graph is None
    queue.sync()
    assert (content(queue, dst) == 0).all()


def test_a_failing_host_call_of_a_graph_has_its_cause(device, queue):
    def wrong():
        raise OverflowError("too many")

    with queue.capture() as capture:
        queue.host_call(wrong)
    capture.graph.launch(queue)
    with pytest.raises(weir.HostCallError, match="OverflowError: too many") as raised:
        queue.sync()
    assert isinstance(raised.value.__cause__, OverflowError)
    queue.recover()
