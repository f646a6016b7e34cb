"""Builds OpenCL C at run time on the first device of a backend, as a program with a source of its own does.

accept.py BACKEND SOURCE OPTIONS

Exits with 0 if the driver's compiler takes it, with 1 and the reason if not. Needs the package weir.
"""
import sys

import weir


def main():
    if len(sys.argv) != 4:
        print("usage: accept.py BACKEND SOURCE OPTIONS", file=sys.stderr)
        return 2
    backend, source, options = sys.argv[1:]
    try:
        with open(source, "rb"), weir.open(text="[opencl]\ncache = 0\n", backend=backend, plugins="") as runtime:
            try:
                runtime.device().program(file=source, options=options)
            except weir.Error as error:
                print(error, file=sys.stderr)
                return 1
    except (weir.Error, OSError) as error:
        print("accept:", error, file=sys.stderr)
        return 2
    return 0


sys.exit(main())
