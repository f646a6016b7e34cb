"""What MODULE.bazel takes from the machine; WORKSPACE takes the same from the two files below."""

load(":cuda.bzl", "cuda_toolkit")
load(":libraries.bzl", "weir_libraries")

def _machine_impl(_module_ctx):
    weir_libraries()
    cuda_toolkit(name = "cuda")

machine = module_extension(implementation = _machine_impl)
