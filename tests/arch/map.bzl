"""The dependency map: which folder may use which.

USES is the map itself and holds every folder of the house. A folder is reached by
the target of its name, or by those that TARGETS names: what nothing else in the
folder depends on (libraries, modules, programs), from which the rest is found.
`tools/check.sh` fails when a target of a folder in USES is reached from none and is
not tagged manual.
"""

load("@python//:defs.bzl", "HAVE_PYTHON")

# The folders that a module, a backend or a plugin, may use. Never core, never another module.
_MODULE = ["api", "base"]

# A backend that compiles OpenCL C through a driver.
_COMPILER = _MODULE + ["backends/clc", "backends/kit"]

# Code that opens a runtime declares the sections of all pipelines.
_RUNTIME = ["api", "base", "io", "kernels", "patterns", "pipelines"]

# A room of the command that opens a runtime.
_COMMAND = _RUNTIME + ["base/json", "cli/common", "cli/runtime"]

_ROOM = _MODULE + ["core/support"]

_QUEUE = _ROOM + ["core/module", "core/object"]

USES = {
    "api": [],
    "base": [],
    # What ranks say of their calls.
    "base/call": ["api", "base"],
    "base/ini": ["base"],
    "base/json": ["base"],
    "conf/gpus": [],
    # Source with images becomes source without, before any backend gets it.
    "core": ["api", "base", "base/call", "kernels/images"],
    # Rooms of core, from the ground up.
    "core/support": _MODULE,
    "core/config": _ROOM,
    "core/module": _ROOM,
    "core/object": _ROOM + ["core/module"],
    "core/queue": _QUEUE,
    "core/graph": _QUEUE + ["core/queue"],
    "core/event": _QUEUE + ["core/queue", "core/graph"],
    "core/buffer": _QUEUE + ["core/queue", "core/graph", "core/event"],
    "core/pool": _QUEUE + ["core/queue", "core/graph", "core/event", "core/buffer"],
    "core/program": _QUEUE + ["core/queue", "kernels/images"],
    "core/interop": _QUEUE + ["core/queue", "core/graph", "core/event", "core/buffer"],
    "core/runtime": _QUEUE + ["core/config", "core/queue"],
    "core/comm": _QUEUE + ["base/call", "core/buffer", "core/config", "core/event", "core/graph", "core/queue", "core/runtime"],
    "core/device": _QUEUE + ["core/buffer", "core/config", "core/event", "core/graph", "core/queue", "core/runtime"],
    "backends/clc": _MODULE + ["backends/kit"],
    "backends/cuda": _COMPILER + ["kernels/library", "kernels/ptx"],
    "backends/kit": _MODULE,
    "backends/null": _MODULE + ["backends/kit"],
    "backends/opencl": _COMPILER,
    "plugins/check": _MODULE + ["base/json", "plugins/kit", "report"],
    "plugins/fault": _MODULE + ["plugins/kit"],
    "plugins/kit": _MODULE,
    "plugins/perturb": _MODULE + ["plugins/kit"],
    "plugins/sim": _MODULE + ["base/ini", "conf/gpus", "plugins/kit"],
    "plugins/trace": _MODULE + ["plugins/kit", "report"],
    # A bundle is a value of a type of the public headers.
    "kernels": ["api"],
    "kernels/compare": ["api", "base", "base/json"],
    "kernels/compiler": ["api", "base", "kernels/images", "kernels/library", "kernels/ptx"],
    "kernels/images": ["base"],
    "kernels/library": [],
    "kernels/ptx": ["base"],
    "io": ["base", "base/json"],
    "locks": ["base"],
    "patterns": ["api", "base", "kernels"],
    "python": ["api"],
    "report": ["api", "base", "base/json"],
    "transports/kit": _MODULE + ["base/call"],
    "transports/local": _MODULE + ["base/call"] + ["transports/kit"],
    "transports/mpi": _MODULE + ["base/call"] + ["transports/kit"],
    "pipelines": ["api", "base", "io", "kernels", "patterns"],
    # A client of the library, and linked with it, for programs that have none.
    "layers/opencl": ["api", "base", "core", "kernels/images"],
    # The command is where the library is linked; modules are only ever loaded.
    "cli": ["api", "backends/kit", "base", "base/json", "core", "io", "kernels", "patterns", "pipelines", "report"],
    # Its rooms: none uses another but for these three.
    "cli/common": ["api", "base", "base/json"],
    "cli/program": ["api", "base", "cli/common"],
    "cli/runtime": _RUNTIME + ["cli/common"],
    # The product by cuBLAS opens its library as a backend does.
    "cli/bench": _COMMAND + ["backends/kit"],
    "cli/calibrate": _COMMAND + ["backends/kit", "cli/bench"],
    "cli/check": ["api", "base", "base/json", "cli/common", "cli/program", "report"],
    "cli/completion": ["api", "base", "cli/common"],
    "cli/conform": _COMMAND + ["cli/program"],
    "cli/doctor": _COMMAND,
    "cli/fault": ["api", "base", "base/json", "cli/common", "cli/program"],
    "cli/kernels": _COMMAND,
    "cli/launch": ["api", "base", "base/json", "cli/common", "cli/program"],
    "cli/perturb": ["api", "base", "base/json", "cli/common", "cli/program"],
    "cli/run": _COMMAND,
    "cli/sim": ["api", "base", "base/json", "cli/common", "cli/program", "report"],
    "cli/trace": ["api", "base", "base/json", "cli/common", "cli/program", "report"],
    "cli/train": _COMMAND,
}

# Libraries of other packages.
LINKS = {
    "backends/cuda": ["cuda"],
    "base/ini": ["inih"],
    "base/json": ["jansson"],
    "cli": ["jansson"],
    "cli/common": ["jansson"],
    "core": ["dlpack", "inih"],
    "core/config": ["inih"],
    "core/interop": ["dlpack"],
    "io": ["jansson", "libjpeg", "libpng", "zlib"],
    "kernels/compare": ["jansson"],
    "plugins/check": ["jansson", "zlib"],
    "plugins/trace": ["jansson", "zlib"],
    "python": ["dlpack", "python"],
    "report": ["jansson", "zlib"],
    "transports/local": ["sodium"],
}

TARGETS = {
    "api": ["//api", "//api:cpp", "//api:kit", "//api:module"],
    "backends/cuda": ["//backends/cuda:weir_cuda.so"],
    "backends/null": ["//backends/null:weir_null.so"],
    "backends/opencl": ["//backends/opencl:weir_opencl.so"],
    "base": ["//base", "//base:lock_listener"],
    "cli": ["//cli:command"],
    "cli/bench": ["//cli/bench", "//cli/bench:comparable"],
    "conf/gpus": ["//conf/gpus:texts"],
    "kernels": [
        "//kernels/bench",
        "//kernels/conformance",
        "//kernels/conformance:print",
        "//kernels/cooperative",
    ],
    "kernels/compiler": ["//kernels/compiler:weir_kernels"],
    "kernels/library": ["//kernels/library", "//kernels/library:grid_barrier"],
    "locks": ["//locks:libweir_locks.so"],
    "pipelines": [
        "//pipelines/arr_coc",
        "//pipelines/arr_coc/weights",
        "//pipelines/arr_coc/weights:generate",
        "//pipelines/train",
    ],
    "plugins/check": ["//plugins/check:weir_check.so"],
    "plugins/fault": ["//plugins/fault:weir_fault.so"],
    "plugins/perturb": ["//plugins/perturb:weir_perturb.so"],
    "plugins/sim": ["//plugins/sim:weir_sim.so"],
    "plugins/trace": ["//plugins/trace:weir_trace.so"],
    "python": ["//python:extension"] if HAVE_PYTHON else [],
    "report": [
        "//report",
        "//report:findings",
        "//report:output_path",
        "//report:trace",
    ],
    "layers/opencl": [
        "//layers/opencl:libweir_opencl_layer.so",
        "//layers/opencl:weir-opencl-trial",
    ],
    "transports/local": ["//transports/local:module", "//transports/local:weir_local.so"],
    "transports/mpi": ["//transports/mpi:module", "//transports/mpi:weir_mpi.so"],
}
