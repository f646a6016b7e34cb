"""What MODULE.bazel takes from the machine; WORKSPACE takes the same from the files below."""

load(":cuda.bzl", "cuda_toolkit")
load(":libraries.bzl", "weir_libraries")
load(":python.bzl", "python_headers")

def _machine_impl(_module_ctx):
    weir_libraries()
    cuda_toolkit(name = "cuda")
    python_headers(name = "python")

machine = module_extension(implementation = _machine_impl)
