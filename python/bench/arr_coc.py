"""arr_coc.py WEIR BUNDLE: frames a second of ARR-COC on OpenCL, by `weir bench arr-coc` and by weir.loader, in turns.

The kernels, grids and sizes are those of kernels/arr_coc/README.md. The loader gets noise of 1024 x 1024 pixels as numpy
arrays, and copies each into pinned memory; the command's frames lie there. The weights are random numbers.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

import numpy
import weir

SIDE, GRID, BUDGET, SLOTS, FRAMES, TURNS = 1024, 32, 4096, 3, 10, 9
PATCHES, LIMIT, PLANE = GRID * GRID, BUDGET // 64, SIDE * SIDE + 1056


class Slot:
    def __init__(self, device, number):
        def made(name, count, dtype="float32", placement="host"):
            return device.buffer(count, dtype, placement, label=f"{name}{number}")

        self.texture = made("texture", 13 * PLANE, placement="device")
        self.scores, self.balance, self.relevance = made("scores", 3 * PATCHES), made("balance", 3), made("relevance", PATCHES)
        self.patches, self.counts = made("patches", 3 * LIMIT, "int32"), made("counts", 2, "int32")
        self.tokens = made("tokens", 13 * BUDGET)
        self.done = None


class Pipeline:
    """Three stages on three queues; frames are delivered in order."""

    def __init__(self, device, bundle):
        program = device.program(bundle=f"{bundle}:bundle", label="arr-coc")
        names = ("texture_position", "position_means", "texture_image", "patch_scores", "relevance", "allocate_tokens",
                 "compress_tokens")
        kernels = {name: program.kernel(name) for name in names}
        grids = {
            "texture_position": ((SIDE // 64, SIDE), 64),
            "position_means": (PATCHES, 64),
            "texture_image": ((SIDE // 32, SIDE // 32), (32, 8)),
            "patch_scores": (PATCHES, (32, 4)),
            "relevance": (1, 256),
            "allocate_tokens": (PATCHES // 64, 256),
            "compress_tokens": ((LIMIT, 13), 256),
        }
        self.launch = {name: kernels[name][grids[name]] for name in names}
        self.queues = [device.queue(name) for name in ("texture", "relevance", "allocation")]
        self.weights = device.buffer(ctypes.c_int.in_dll(ctypes.CDLL(bundle), "pack_floats").value, "float32", label="weights")
        self.position = device.buffer(4 * PATCHES, "float32", label="position")
        self.slots = [Slot(device, number) for number in range(SLOTS)]
        setup = self.queues[0]
        numbers = numpy.random.default_rng(1).normal(0, 0.1, self.weights.shape)
        setup.upload(self.weights, numbers.astype("float32"))
        for slot in self.slots:
            self.launch["texture_position"](setup, weir.InOut(slot.texture), SIDE, PLANE)
        self.launch["position_means"](setup, weir.In(self.slots[0].texture), weir.Out(self.position), SIDE, GRID, PLANE)
        setup.sync()

    def submit(self, slot, rgb):
        first, second, third = self.queues
        launch, In, Out, InOut = self.launch, weir.In, weir.Out, weir.InOut
        launch["texture_image"](first, In(rgb), InOut(slot.texture), SIDE, SIDE, SIDE, PLANE)
        second.wait(first.record())
        launch["patch_scores"](second, In(slot.texture), In(self.weights), In(self.position), Out(slot.scores), SIDE, GRID, PLANE)
        launch["relevance"](second, In(self.weights), InOut(slot.scores), Out(slot.balance), Out(slot.relevance), PATCHES)
        third.wait(second.record())
        launch["allocate_tokens"](third, In(slot.relevance), Out(slot.patches), Out(slot.counts), PATCHES, BUDGET)
        launch["compress_tokens"](third, In(slot.texture), In(slot.patches), In(slot.counts), Out(slot.tokens), SIDE, GRID, PLANE)
        slot.done = third.record()

    def deliver(self, slot):
        """The tokens of a frame, once they are there."""
        slot.done.sync()
        with slot.counts.host() as counts, slot.tokens.host() as tokens:
            return float(tokens[:13 * counts[1]].sum()), int(counts[1])

    def run(self, frames):
        """Frames a second, and what was delivered."""
        delivered, begin = [], time.perf_counter()
        for number, rgb in enumerate(weir.loader(self.queues[0], frames, slots=SLOTS)):
            slot = self.slots[number % SLOTS]
            if number >= SLOTS:
                delivered.append(self.deliver(slot))
            self.submit(slot, rgb)
        for number in range(len(delivered), len(frames)):
            delivered.append(self.deliver(self.slots[number % SLOTS]))
        return len(frames) / (time.perf_counter() - begin), delivered


def by_command(command):
    text = subprocess.run([command, "bench", "arr-coc", "--slots", str(SLOTS), "--frames", str(FRAMES), "--turns", "1", "--json"],
                          capture_output=True, text=True, check=True, env={**os.environ, "WEIR_BACKEND": "opencl"}).stdout
    return json.loads(text)["tables"]["frames"][0]["frames_per_second"]["median"]


def main():
    command, bundle = (os.path.abspath(path) for path in sys.argv[1:])
    frames = list(numpy.random.default_rng(2).integers(0, 256, (FRAMES, SIDE, SIDE, 3), "uint8"))
    with weir.open(backend="opencl") as runtime, runtime.device() as device:
        pipeline = Pipeline(device, bundle)
        _, first = pipeline.run(frames)
        rows = []
        for _ in range(TURNS):
            of_python, delivered = pipeline.run(frames)
            assert delivered == first and all(count > BUDGET // 2 for _, count in delivered), delivered
            rows.append((by_command(command), of_python))
    print(f"frames a second, median and range of {TURNS} turns of {FRAMES} frames; load {os.getloadavg()[0]:.1f}")
    for name, figures in (("weir bench arr-coc", [row[0] for row in rows]), ("weir.loader", [row[1] for row in rows]),
                          ("ratio", [row[1] / row[0] for row in rows])):
        print(f"{name:20}{statistics.median(figures):8.3f}{min(figures):8.3f} to {max(figures):.3f}")


main()
