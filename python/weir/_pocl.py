"""The driver that the extra `pocl` installs: used where the machine has no OpenCL of its own."""

import importlib.util
import os


def find():
    """Names the driver to the library by $WEIR_OPENCL_DRIVER, unless that is set."""
    if "WEIR_OPENCL_DRIVER" in os.environ:
        return
    spec = importlib.util.find_spec("pocl_binary_distribution")
    if spec is None or not spec.origin:
        return
    folder = os.path.join(os.path.dirname(os.path.dirname(spec.origin)), "pyopencl", ".libs")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    drivers = [name for name in names if name.startswith("libpocl") and ".so" in name]
    if drivers:
        os.environ["WEIR_OPENCL_DRIVER"] = os.path.join(folder, drivers[0])
