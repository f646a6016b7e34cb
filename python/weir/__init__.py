"""Weir: queues, events and buffers over CUDA and OpenCL, and what finds a missing wait."""

import atexit as _atexit
import sysconfig as _sysconfig

if _sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError(
        "weir does not support free-threaded builds of Python yet; use the usual build, python3.13 in place of "
        "python3.13t"
    )
from ._types import *  # noqa: E402,F401,F403
from ._weir import *  # noqa: E402,F401,F403
from ._weir import __version__, open  # noqa: E402,F401
from ._help import Capture, close_all as _close_all, find_pocl as _find_pocl  # noqa: E402,F401
from ._patterns import buckets, chunks, loader, pipeline, queue_pool  # noqa: E402,F401

_find_pocl()
_atexit.register(_close_all)
