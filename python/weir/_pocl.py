"""The driver that the extra `pocl` installs: used where the machine has no OpenCL of its own."""

import glob
import importlib.util
import os


def find():
    """Names the driver to the library by $WEIR_OPENCL_DRIVER, unless that is set."""
    if "WEIR_OPENCL_DRIVER" in os.environ:
        return
    spec = importlib.util.find_spec("pocl_binary_distribution")
    if spec is None or not spec.origin:
        return
    folder = os.path.dirname(os.path.dirname(spec.origin))
    drivers = sorted(glob.glob(os.path.join(glob.escape(folder), "pyopencl", ".libs", "libpocl*.so*")))
    if drivers:
        os.environ["WEIR_OPENCL_DRIVER"] = drivers[0]
