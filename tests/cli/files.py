# For the tests of `weir run`: writes a PNG of 8 bits, and an array of numpy's.
import math
import struct
import zlib


# `rows` has the bytes of all rows, gray, or with 3 `channels` RGB.
def png(path, width, height, rows, channels=1):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = channels * width
    lines = b"".join(b"\0" + rows[y * size:(y + 1) * size] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


# An array of float32; `values` are all of its elements, or one for all.
def npy(path, shape, values):
    numbers = values if isinstance(values, list) else [values] * math.prod(shape)
    head = str({"descr": "<f4", "fortran_order": False, "shape": shape}).ljust(117).encode() + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % len(numbers), *numbers))
