"""The exceptions, and how the extension makes one of an error of the library."""


class Error(Exception):
    """What Weir refuses or reports, with its first cause.

    status is "WEIR_ERROR_INVALID", say; message, remedy and object (a label) are parts of the text;
    native_call, native_name and native_code are the driver's; file and line are those of the first cause.
    """

    status = "WEIR_OK"
    message = object = native_call = native_name = remedy = file = ""
    native_code = line = 0


class Timeout(Error, TimeoutError):
    """A wait's time passed."""


class NotReadyError(Error):
    """What was asked for is not complete yet."""


class InvalidError(Error, ValueError):
    """An argument breaks the call's contract."""


class OutOfMemoryError(Error, MemoryError):
    """Memory of the host or of the device is exhausted."""


class UnsupportedError(Error):
    """The device does not support it."""


class NotFoundError(Error, LookupError):
    """Nothing has that name."""


class ConfigError(Error):
    """The configuration is wrong."""


class ModuleError(Error):
    """No listed backend or plugin can be used."""


class NoDeviceError(Error):
    """No device matches."""


class BuildError(Error):
    """Device code does not build."""


class ExpiredError(Error):
    """It is no longer known."""


class DeviceError(Error):
    """The driver reported an error."""


class DeviceLostError(DeviceError):
    """The device is lost."""


class HostCallError(Error):
    """A function of queue.host_call() raised; __cause__ is what it raised."""


class ForkedError(Error):
    """The process was forked after Weir was used."""


class FileError(Error):
    """A file cannot be read or written."""


class SystemCallError(Error):
    """The operating system refused a request."""


class CommError(Error):
    """A collective failed between ranks."""


# By the status's name without WEIR_ and ERROR_.
_TYPES = {
    "TIMEOUT": Timeout,
    "NOT_READY": NotReadyError,
    "INVALID": InvalidError,
    "OUT_OF_MEMORY": OutOfMemoryError,
    "UNSUPPORTED": UnsupportedError,
    "NOT_FOUND": NotFoundError,
    "CONFIG": ConfigError,
    "MODULE": ModuleError,
    "NO_DEVICE": NoDeviceError,
    "BUILD": BuildError,
    "EXPIRED": ExpiredError,
    "DEVICE": DeviceError,
    "DEVICE_LOST": DeviceLostError,
    "HOST_CALL": HostCallError,
    "FORKED": ForkedError,
    "IO": FileError,
    "SYSTEM": SystemCallError,
    "COMM": CommError,
}

__all__ = ["Error"] + [made.__name__ for made in _TYPES.values()]
for _made in (Error, *_TYPES.values()):
    _made.__module__ = "weir"  # where users find them
del _made

# The library's functions as Python has them. Others are NOUN.VERB: weir_queue_recover() is queue.recover().
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
    "queue_create": "device.queue",
    "queue_wrap": "device.wrap_queue",
    "queue_launch": "kernel[grid, block]",
    "queue_launch_count": "kernel[count]",
    "queue_graph": "graph.launch",
    "buffer_create": "device.buffer",
    "buffer_wrap": "device.wrap",
    "dlpack_import": "device.from_dlpack",
    "dlpack_export": "buffer.__dlpack__",
    "program_create": "device.program",
    "kernel_create": "program.kernel",
    "pool_create": "device.pool",
    "pool_free": "buffer.free",
    "capture_begin": "queue.capture",
    "capture_end": "queue.capture",
}


def _name(match):
    name = match[1]
    return _NAMES.get(name) or name.replace("_destroy", ".close").replace("_", ".", 1)


def text(c_text):
    """The library's text with its C names as those of Python."""
    import re  # which would be a third of the time that importing weir takes

    return re.sub(r"\bweir_([a-z0-9_]+)(?=\()", _name, c_text)


def make(status, whole, **parts):
    """The exception of a status, of its whole text, with the parts of the library's detail as attributes."""
    error = _TYPES.get(status[5:].replace("ERROR_", ""), Error)(text(whole))
    error.status = status
    for name, part in parts.items():
        setattr(error, name, text(part) if name in ("message", "remedy") else part)
    return error
