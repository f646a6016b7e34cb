#!/usr/bin/env python3
"""Measures how long it takes until a failure of a rank is told on the other ranks.

Runs `failing` (failing.c) as some ranks, of which rank 1 fails, for each way to fail and each
transport, and prints a table: the median and the longest time from the failure to the first cause on
the slower of the other ranks, in milliseconds. Rows marked "after the timeout" are told at the timeout,
and have the time beyond it. What a transport cannot do here is "-"; mpirun ends all ranks when one dies, and then
the time is until they have ended. Exit status 1 if a rank was told
nothing, or a sentence that does not name the rank or the collective.
"""

import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# The way, what the table says, whether it is told at the timeout, what the sentence contains: a text, or one
# of several. A rank that has stopped is told by its silence on an engine whose ranks send beats.
WAYS = (
    ("kill", "killed while the others wait in a collective", False, "rank 1 "),
    ("shrink", "killed, and the others go on without it", False, "goes on without one"),
    ("stop", "stopped (SIGSTOP)", True, ("rank 1 has submitted nothing after ", " has not answered in ")),
    ("missing", "leaves out its last call", True, "rank 1 has submitted nothing after "),
    ("skip", "leaves out a call, and makes the next", False, "broadcast"),
    ("kind", "calls another collective", False, "barrier"),
    ("count", "another count", False, "131072"),
    ("abort", "calls weir_comm_abort", False, "rank 1"),
    ("absent", "never creates its communicator", True, ""),
)
TRANSPORTS = {
    "local": "`local`",
    "openmpi": "Open MPI",
    "mpich": "MPICH",
    "nccl": "NCCL, the tests' one",
    "cuda": "NCCL",
}
OF_MPI = ("openmpi", "mpich")
NOT_BEGUN = "rank 1 did not come to its failure"
# What a launcher that this runs under has set for ranks of its own.
OF_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_", "WEIR_COMM_", "PMI", "OMPI_COMM")
# mpirun ends all ranks of one that dies.
DEATHS = ("kill", "shrink")
NOT_OF_MPI = ("absent", "shrink")


def starts(options, folder, way, transport):
    """The command and the environment of each process."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(OF_LAUNCHERS)}
    if os.path.isdir("lib/weir"):
        env["WEIR_MODULE_PATH"] = os.path.abspath("lib/weir")
    env.update(FAILING_LOG=os.path.join(folder, "log"), FAILING_TIMEOUT=str(options.timeout),
               WEIR_BACKEND="cuda" if transport in ("nccl", "cuda") else "null")
    if transport in OF_MPI:
        env.update(WEIR_COMM_TRANSPORT="mpi", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
                   PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")  # Open MPI 5
        return [(["mpirun." + transport, "-n", str(options.ranks), options.program, way], env)]
    env.update(WEIR_COMM_COUNT=str(options.ranks), WEIR_COMM_RENDEZVOUS=f"file:{folder}/meeting")
    if transport == "nccl":
        env.update(WEIR_TEST_NCCL_FOLDER=folder, WEIR_TEST_CUDA_DEVICES=str(options.ranks),
                   WEIR_CUDA_LIBRARY=os.path.abspath("tests/support/libcuda/libcuda.so.1"),
                   WEIR_CUDA_NCCL=os.path.abspath("tests/support/libnccl/libnccl.so.2"))
    ranks = [{"WEIR_COMM_RANK": str(rank)} for rank in range(options.ranks)]
    if transport == "cuda":
        ranks = [dict(rank, LOCAL_RANK=rank["WEIR_COMM_RANK"]) for rank in ranks]
    return [([options.program, way], dict(env, **rank)) for rank in ranks]


def told(folder):
    """The lines that the ranks have written, and {rank: (time, sentence)} of the causes of the others."""
    try:
        with open(os.path.join(folder, "log"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(" ", 3) for line in file]
    except FileNotFoundError:
        lines = []
    return lines, {int(line[1]): (int(line[2]), line[3]) for line in lines if line[0] == "cause" and line[1] != "1"}


def run(options, folder, way, transport):
    """Returns when the ranks ended."""
    # Sessions of their own, so that a rank that has stopped ends with the others.
    processes = [subprocess.Popen(words, env=env, start_new_session=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for words, env in starts(options, folder, way, transport)]
    end = time.monotonic() + options.timeout + 60
    while time.monotonic() < end and any(process.poll() is None for process in processes):
        if way == "stop" and len(told(folder)[1]) == options.ranks - 1:
            break
        time.sleep(0.001)
    ended = time.monotonic_ns()
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return ended


def measure(options, way, transport, late, words):
    """The time in ms, and what is wrong. Ranks that could not start within the timeout start again."""
    for _ in range(3):
        took, fault = measure_once(options, way, transport, late, words)
        if not fault or not fault.startswith(NOT_BEGUN):
            break
    return took, fault


def measure_once(options, way, transport, late, words):
    with tempfile.TemporaryDirectory() as folder:
        ended = run(options, folder, way, transport)
        lines, causes = told(folder)
        begun = [int(line[1]) for line in lines if line[0] == "at"]
        if not begun:
            return None, f"{NOT_BEGUN}: {lines}"
        if transport in OF_MPI and way in DEATHS:
            return (ended - begun[0]) / 1e6, None
        if len(causes) != options.ranks - 1:
            return None, f"told on {len(causes)} of {options.ranks - 1} ranks: {lines}"
        either = words if isinstance(words, tuple) else (words,)
        for _, text in causes.values():
            if not any(each in text for each in either) or "'grads'" not in text:
                return None, f"the sentence lacks \"{either[0]}\": {text}"
        last = max(time_ns for time_ns, _ in causes.values())
        return (last - begun[0]) / 1e6 - (options.timeout * 1e3 if late else 0), None


def cell(options, row, transport, faults):
    way, _, late, words = row
    if transport in OF_MPI and (way in NOT_OF_MPI or not shutil.which("mpirun." + transport)):
        return "-"
    times = []
    for _ in range(options.repetitions):
        if options.seconds and time.monotonic() > options.end:
            break
        took, fault = measure(options, way, transport, late, words)
        if fault:
            faults.append(f"{way}, {transport}: {fault}")
        else:
            times.append(took)
    if not times:
        return "no time" if options.seconds and time.monotonic() > options.end else "FAILED"
    text = f"{statistics.median(times):.1f} / {max(times):.1f}"
    print(f"{way:10} {transport:8} {text}  ({len(times)} of {options.repetitions})", flush=True)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="tests/bench/failures/failing")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--timeout", type=int, default=2, help="of the communicators, in seconds")
    parser.add_argument("--ways", help="of: soon, late (all that are told at the timeout), "
                        + ", ".join(row[0] for row in WAYS))
    parser.add_argument("--transports", default="local,openmpi,mpich,nccl",
                        help="which, of: " + ", ".join(TRANSPORTS) + "; cuda takes a GPU for each rank")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=0, help="when to end; what is left has no time")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options.end = time.monotonic() + options.seconds
    options.program = os.path.abspath(options.program)
    transports = options.transports.split(",")
    ways = (options.ways or "soon,late").split(",")
    rows = [row for row in WAYS if row[0] in ways or ("late" if row[2] else "soon") in ways]
    faults = []
    cells = {(row[0], name): cell(options, row, name, faults) for row in rows for name in transports}
    print("\n| rank 1 | " + " | ".join(TRANSPORTS[name] for name in transports) + " |")
    print("| --- |" + " --- |" * len(transports))
    for row in rows:
        late = ", after the timeout" if row[2] else ""
        print(f"| {row[1]}{late} | " + " | ".join(cells[row[0], name] for name in transports) + " |")
    for fault in faults:
        print("FAILED " + fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
