"""The exceptions, and how the extension makes one of an error of the library."""

_TYPES: "dict[str, type[Error]]" = {}  # by status


class Error(Exception):
    """What Weir refuses or reports, with its first cause.

    status is "WEIR_ERROR_INVALID", say; message, remedy and object (a label) are parts of the text;
    native_call, native_name and native_code are the driver's; file and line are those of the first cause.
    """

    __module__ = "weir"  # where users find it, and those below
    status = "WEIR_OK"
    message = object = native_call = native_name = remedy = file = ""
    native_code = line = 0

    def __init_subclass__(cls, status=None):
        if status:
            cls.status, cls.__module__ = status, "weir"
            _TYPES[status] = cls


class Timeout(Error, TimeoutError, status="WEIR_TIMEOUT"):
    """A wait's time passed."""


class NotReadyError(Error, status="WEIR_NOT_READY"):
    """What was asked for is not complete yet."""


class InvalidError(Error, ValueError, status="WEIR_ERROR_INVALID"):
    """An argument breaks the call's contract."""


class OutOfMemoryError(Error, MemoryError, status="WEIR_ERROR_OUT_OF_MEMORY"):
    """Memory of the host or of the device is exhausted."""


class UnsupportedError(Error, status="WEIR_ERROR_UNSUPPORTED"):
    """The device does not support it."""


class NotFoundError(Error, LookupError, status="WEIR_ERROR_NOT_FOUND"):
    """Nothing has that name."""


class ConfigError(Error, status="WEIR_ERROR_CONFIG"):
    """The configuration is wrong."""


class ModuleError(Error, status="WEIR_ERROR_MODULE"):
    """No listed backend or plugin can be used."""


class NoDeviceError(Error, status="WEIR_ERROR_NO_DEVICE"):
    """No device matches."""


class BuildError(Error, status="WEIR_ERROR_BUILD"):
    """Device code does not build."""


class ExpiredError(Error, status="WEIR_ERROR_EXPIRED"):
    """It is no longer known."""


class DeviceError(Error, status="WEIR_ERROR_DEVICE"):
    """The driver reported an error."""


class DeviceLostError(DeviceError, status="WEIR_ERROR_DEVICE_LOST"):
    """The device is lost."""


class HostCallError(Error, status="WEIR_ERROR_HOST_CALL"):
    """A function of queue.host_call() raised; __cause__ is what it raised."""


class ForkedError(Error, status="WEIR_ERROR_FORKED"):
    """The process was forked after Weir was used."""


class FileError(Error, status="WEIR_ERROR_IO"):
    """A file cannot be read or written."""


class SystemCallError(Error, status="WEIR_ERROR_SYSTEM"):
    """The operating system refused a request."""


class CommError(Error, status="WEIR_ERROR_COMM"):
    """A collective failed between ranks."""


# The library's functions as Python has them. Others are NOUN.VERB: weir_queue_recover() is queue.recover(), and
# weir_pool_create() is device.pool().
_NAMES = {
    "in": "weir.In",
    "out": "weir.Out",
    "inout": "weir.InOut",
    "whole_in": "weir.In",
    "whole_out": "weir.Out",
    "whole_inout": "weir.InOut",
    "local": "weir.Local",
    "upload": "queue.upload",
    "download": "queue.download",
    "open": "weir.open",
    "close": "runtime.close",
    "host_begin": "buffer.host",
    "host_end": "access.end",
    "device_open": "runtime.device",
    "queue_wrap": "device.wrap_queue",
    "queue_launch": "kernel[grid, block]",
    "queue_launch_count": "kernel[count]",
    "queue_graph": "graph.launch",
    "buffer_wrap": "device.wrap",
    "dlpack_import": "device.from_dlpack",
    "dlpack_export": "buffer.__dlpack__",
    "kernel_create": "program.kernel",
    "pool_free": "buffer.free",
    "capture_begin": "queue.capture",
    "capture_end": "queue.capture",
}


def _name(match):
    name = match[1]
    if name not in _NAMES and name.endswith("_create"):
        return "device." + name[:-7]
    return _NAMES.get(name) or name.replace("_destroy", ".close").replace("_", ".", 1)


def _python_text(c_text):
    """The library's text with its C names as those of Python."""
    import re  # which would be a third of the time that importing weir takes

    return re.sub(r"\bweir_([a-z0-9_]+)(?=\()", _name, c_text)
