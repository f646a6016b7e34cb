#!/usr/bin/env python3
"""Counts which files of list.txt, public OpenCL C of other projects, the compilers of the OpenCL and
the CUDA backend accept, refuse or fail at.

A COMMAND is run for each file, in its repository's folder. It exits with 0 if the file is accepted
and with 1, a reason on stderr, if it is refused; anything else is a failure. An empty one leaves its
column out. In it are replaced: {file}, {std} (CL1.2), {work} (a folder for its output), {text} (the
file with the text of what it includes), {others} (all options but -I in one word), and as words
{options}, {defines} (those that begin with -D or -I) and {fast} (--fast, or nothing).

Needs git, python3 with its headers, and clang-22.
"""
import argparse
import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "list.txt")
CRASHED = r"PLEASE submit a bug report|Stack dump|LLVM ERROR|error in backend|Assertion .* failed" \
          r"|Traceback|AddressSanitizer|[Uu]nresolved|undefined symbol"


class File:
    def __init__(self, repository, path, standard, options):
        self.repository, self.standard, self.options = repository, standard, options
        self.paths = path.split(" + ")
        self.name = repository + "/" + self.paths[-1]


def read_list(path):
    repositories, files, common = {}, [], []
    for line in open(path, encoding="utf-8"):
        line = line.rstrip("\n")
        word, _, rest = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if word == "repository":
            address, commit = rest.split()
            name, common = "/".join(address.split("/")[-2:]), []
            repositories[name] = (address, commit)
        elif word == "options":
            common = shlex.split(rest)
        else:
            path, standard, *options = line.split("\t")
            files.append(File(name, path, standard, common + shlex.split(" ".join(options))))
    return repositories, files


def source(file, folder, work):
    """Path of what is compiled: the file, or the sources that make one program, joined."""
    path = os.path.join(folder, file.paths[-1])
    if len(file.paths) == 1:
        return path
    joined = os.path.join(work, os.path.basename(path))
    with open(joined, "wb") as out:
        for part in file.paths:
            out.write(open(os.path.join(folder, part), "rb").read() + b"\n")
    return joined


def with_includes(path, folders, outer=()):
    """The bytes of a source, with the text of the files that it includes in place, if they are
    found beside it or in the folders: drivers are given one text."""
    text, places = [], [os.path.dirname(path)] + folders
    for line in open(path, "rb").read().splitlines(True):
        match = re.match(rb'\s*#\s*include\s*["<]([^">]+)[">]', line)
        found = [os.path.join(place, os.fsdecode(match.group(1))) for place in places] \
            if match else []
        found = [os.path.realpath(name) for name in found if os.path.isfile(name)][:1]
        if not found:
            text.append(line)
        elif found[0] not in outer:
            text += [with_includes(found[0], folders, outer + (found[0],)), b"\n"]
    return b"".join(text)


def one_text(file, path, folder, work):
    """Path of the source with all that it includes."""
    own = os.path.dirname(os.path.join(folder, file.paths[-1]))
    folders = [own] + [os.path.join(folder, o[2:]) for o in file.options if o.startswith("-I")]
    whole = os.path.join(work, "one_" + os.path.basename(path))
    with open(whole, "wb") as out:
        out.write(with_includes(path, folders))
    return whole


def fetch(repositories, folder):
    """Brings the listed commits into FOLDER/OWNER/NAME, where they are not there wholly."""
    for name, (address, commit) in repositories.items():
        target = os.path.join(folder, name)
        head = subprocess.run(["git", "-C", target, "rev-parse", "HEAD"], capture_output=True, text=True)
        if head.stdout.strip() == commit:
            continue
        print("corpus: fetching %s" % name, file=sys.stderr)
        os.makedirs(target, exist_ok=True)
        for command in (["init", "-q"], ["fetch", "-q", "--depth=1", address, commit],
                        ["checkout", "-q", "FETCH_HEAD"]):
            subprocess.run(["git", "-C", target] + command, check=True)


def run(command, folder, limit):
    """Returns the exit status (negative for a signal, None past the limit) and the messages."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, "more than %d s" % limit
    return done.returncode, (done.stderr + done.stdout).decode("utf-8", "replace")


def first_error(text):
    """The line that says most: an error, else what mentions one, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (r"error: |fatal", r"(?<!no )error|cannot"):
        for line in lines:
            if re.search(pattern, line) and not line.endswith("generated."):
                return line
    return lines[0] if lines else ""


def judge(status, text):
    """(outcome, message) of a compiler's run."""
    if status == 0:
        return "accepted", ""
    fails = status is None or status != 1 or re.search(CRASHED, text)
    return "failed" if fails else "refused", first_error(text)


def clang(options, file, path, folder):
    """With the device's version, which drivers define, and C that only later clangs make errors of."""
    return run(["clang-22", "-x", "cl", "-w", "-cl-std=" + file.standard, "-D__OPENCL_VERSION__=300",
                "-Wno-error=incompatible-pointer-types", "-Wno-error=parentheses"]
               + options + file.options + ["-I" + (os.path.dirname(file.paths[-1]) or "."), path],
               folder, 120)


def is_valid(path, file, folder):
    """Whether clang alone takes it: for a neutral target, with and without the vendors' extensions, and PTX in asm
    for CUDA."""
    every = ["-Xclang", "-cl-ext=+all"]
    return any(clang(["-fsyntax-only"] + options, file, path, folder)[0] == 0 for options in (
        every + ["-target", "spir64"],
        ["-Xclang", "-cl-ext=+all,-cl_intel_subgroups,-cl_amd_media_ops", "-target", "spir64"],
        every + ["-target", "nvptx64-unknown-nvidiacl", "-march=sm_90", "--cuda-path=/nonexistent", "-Xclang",
                 "-fgnu-keywords"]))


def fill(command, path, file, options, folder, work):
    """The words of a command, {NAME} filled in."""
    others = " ".join(o for o in options if not o.startswith("-I"))
    text = one_text(file, path, folder, work) if "{text}" in command else ""
    lists = {"{options}": options, "{defines}": [o for o in options if o[:2] in ("-D", "-I")],
             "{fast}": ["--fast"] if "-cl-fast-relaxed-math" in options else []}
    words = []
    for word in shlex.split(command):
        for name, value in (("{file}", path), ("{std}", file.standard), ("{work}", work),
                            ("{others}", others), ("{text}", text)):
            word = word.replace(name, value)
        words += lists.get(word, [word])
    return words


def measure(file, args, work):
    folder = os.path.join(args.folder, file.repository)
    own = os.path.dirname(file.paths[-1]) or "."
    options = ["-I" + own] + file.options
    path = source(file, folder, work)
    entry = {"file": file.name, "standard": file.standard, "options": options,
             "valid": is_valid(path, file, folder)}
    for way, command in (("opencl", args.opencl), ("cuda", args.cuda)):
        if command and entry["valid"]:
            judged = judge(*run(fill(command, path, file, options, folder, work), folder, args.limit))
            entry[way] = dict(zip(("outcome", "message"), judged))
            entry["valid"] = "there is no kernel" not in entry[way]["message"]
    return entry


OUTCOMES = ("accepted", "refused", "failed")


def row(name, group, ways):
    valid = [e for e in group if e["valid"]]
    cells = [name, len(group)]
    for way in ways:
        cells += [sum(e[way]["outcome"] == outcome for e in valid) for outcome in OUTCOMES]
    return [str(cell) for cell in cells + [len(group) - len(valid)]]


def print_table(entries, ways):
    heads = ["", "files"] + ["%s %s" % (way, outcome) for way in ways for outcome in OUTCOMES] + ["not valid"]
    groups = collections.OrderedDict()
    for entry in entries:
        groups.setdefault("/".join(entry["file"].split("/")[:2]), []).append(entry)
    groups["all"] = entries
    table = [heads] + [row(name, group, ways) for name, group in groups.items()]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    for cells in table:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                        for i, (cell, w) in enumerate(zip(cells, widths))).rstrip())


ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weir/corpus")
OPENCL = "python3 " + ROOT + "/tests/corpus/accept.py opencl {text} '-cl-std={std} {others}'"
CUDA = ROOT + "/bazel-bin/kernels/compiler/weir_kernels --symbol s --label l --out {work}/s --cubin 90 --std {std} " \
    "{fast} {defines} {file}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def option(name, text, **more):
        parser.add_argument("--" + name, help=text, **more)

    option("from", "the checkouts, DIR/OWNER/NAME, at the commits of the list", dest="folder", metavar="DIR")
    option("fetch", "where each is fetched to with git, at its one commit, without --from, and stays "
           "(WEIR_CORPUS, or ~/.cache/weir/corpus)", default=os.environ.get("WEIR_CORPUS") or CACHE, metavar="DIR")
    option("cuda", "by default the compiler of //kernels/compiler, for sm_90", metavar="COMMAND")
    option("opencl", "by default the program is built by the OpenCL backend on its first device: POCL_DEVICES and the "
           "OpenCL loader's variables choose it", metavar="COMMAND")
    option("only", "files whose OWNER/NAME/PATH matches", default="", metavar="PATTERN")
    option("limit", "seconds for a file (120)", type=int, default=120)
    option("list", "in place of list.txt", default=LIST)
    option("json", "also write all results into this file")
    option("messages", "after the table, the message of every file that is not accepted", action="store_true")
    args = parser.parse_args()
    if None in (args.cuda, args.opencl):
        subprocess.run(["bazel", "build", "--noshow_progress", "//python:package", "//kernels/compiler:weir_kernels"],
                       cwd=ROOT, check=True)
        os.environ["PYTHONPATH"] = ROOT + "/bazel-bin/python/package"
    args.cuda, args.opencl = [given if given is not None else usual
                              for given, usual in ((args.cuda, CUDA), (args.opencl, OPENCL))]
    return args


def main():
    args = parse()
    repositories, listed = read_list(args.list)
    if args.folder is None:
        fetch(repositories, args.fetch)
    args.folder = os.path.abspath(args.folder or args.fetch)
    ways = [way for way in ("opencl", "cuda") if getattr(args, way)]
    entries = []
    with tempfile.TemporaryDirectory() as work:
        for file in listed:
            if re.search(args.only, file.name):
                entries.append(measure(file, args, work))
    print_table(entries, ways)
    for entry in [e for e in entries if e["valid"]] if args.messages else []:
        for way in ways:
            if entry[way]["outcome"] != "accepted":
                print("%s: %s %s: %s" % (entry["file"], way, entry[way]["outcome"], entry[way]["message"]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(entries, out, indent=1)


main()
