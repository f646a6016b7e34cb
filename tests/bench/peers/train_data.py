"""The images on which both training programs are measured: random bytes and labels in MNIST's format."""

import os
import struct

CLASSES = 10
COUNT = 20480  # 60 MiB of 32 x 32 x 3: as a data set that does not fit into a processor's caches


def paths(folder):
    return [os.path.join(folder, "train-%s-ubyte" % name) for name in ("images-idx3", "labels-idx1")]


def write(folder, side, count=COUNT):
    """Writes `count` images of side x side x 3, and gives the folder."""
    images, labels = paths(folder)
    with open(images, "wb") as file:
        file.write(struct.pack(">4B4I", 0, 0, 8, 4, count, side, side, 3))
        for _ in range(count):
            file.write(os.urandom(side * side * 3))
    with open(labels, "wb") as file:
        file.write(struct.pack(">4BI", 0, 0, 8, 1, count))
        file.write(bytes(byte % CLASSES for byte in os.urandom(count)))
    return folder


def read(folder):
    """The bytes of the images, those of the labels, and the images' sides."""
    images, labels = (open(path, "rb").read() for path in paths(folder))
    count, height, width, channels = struct.unpack(">4I", images[4:20])
    if channels != 3 or height != width or len(labels) != 8 + count:
        raise ValueError("%s has no square images of 3 channels" % folder)
    return images[20:], labels[8:], height
