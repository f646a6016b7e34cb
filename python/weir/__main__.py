"""The command: `python -m weir …`, and `weir …` where pip puts its scripts."""

import os
import subprocess
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "weir")
    if not os.access(command, os.X_OK):
        sys.exit(f"weir: {command} is missing or cannot be run: install the wheel, which has the command")
    arguments = [command, *sys.argv[1:]]
    if sys.argv[1:] != ["doctor"]:
        os.execv(command, arguments)
    status = subprocess.call(arguments)
    if status != 0 and "WEIR_OPENCL_DRIVER" not in os.environ:
        print(
            "\nwithout a GPU: pip install 'weir-gpu[pocl]' brings a driver for this processor (x86-64)",
            file=sys.stderr,
        )
    sys.exit(status)


if __name__ == "__main__":
    main()
