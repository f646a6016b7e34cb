"""Counts which files of the corpus the backends' compilers take. run.sh calls it; see there."""
import argparse
import collections
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile

import files
import hosts

# Reasons by which a file is refused: the first whose pattern is in the compiler's message.
REASONS = [
    ("images", r"image[123]d|[_ ]image_|read_image|write_image|sampler|texture"),
    ("sub-groups", r"sub_?-?group"),
    ("packed dot products", r"\bdot\w*_4x8packed|dot_acc|integer_dot_product"),
    ("half", r"\bhalf\d*\b|cl_khr_fp16|fp16|\bhalf\w*\("),
    ("pipes, device enqueue", r"\bpipe\b|enqueue_kernel|enqueue|queue_t|\bclk_event_t"),
    ("printf", r"\bprintf\b"),
    ("include", r"file not found"),
    ("double", r"\bdouble\b|cl_khr_fp64"),
    ("64-bit atomics", r"atom_\w+|int64_(base|extended)_atomics"),
    ("pointer types", r"incompatible pointer"),
    ("address spaces", r"address space|__(private|local|global|constant|generic)\b.* \*"),
    ("vendor's extension", r"cl_(intel|qcom|amd|nv|arm)_|intel_|qcom_|'N_(SIMD|SG|DST|SUBGROUP)"),
    ("function", r"is not there for|[Uu]nresolved|undefined (symbol|reference)"),
    ("undeclared name", r"undeclared|unknown type name|implicit declaration"),
]
CRASHED = r"PLEASE submit a bug report|Stack dump|LLVM ERROR|error in backend|Assertion .* failed" \
          r"|Traceback|AddressSanitizer|[Uu]nresolved|undefined symbol"


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


def processor_s():
    """What the children that ended have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_error(text):
    """The line that says most: an error, else what mentions one, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (r"error: |fatal", r"(?<!no )error|cannot"):
        for line in lines:
            if re.search(pattern, line) and not line.endswith("generated."):
                return line
    return lines[0] if lines else ""


def reason(text, line):
    for name, pattern in REASONS:
        if re.search(pattern, line):
            return name
    return next((name for name, pattern in REASONS if re.search(pattern, text)), "other")


def judge(status, text):
    """(outcome, reason, message) of a compiler's run."""
    if status == 0:
        return "accepted", "", ""
    line = first_error(text)
    if status is None or status != 1 or re.search(CRASHED, text):
        return "failed", "time" if status is None else reason(text, line), line
    return "refused", reason(text, line), line


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


def has_images(path, file, folder):
    status, text = clang(["-E", "-P", "-Xclang", "-cl-ext=+all", "-target", "spir64"], file, path, folder)
    return bool(re.search(r"\b(image[123]d\w*_t|sampler_t)\b", text)) if status == 0 else None


def fill(command, path, file, options, folder, work):
    """The words of a command, {NAME} filled in; see run.sh."""
    others = " ".join(o for o in options if not o.startswith("-I"))
    text = files.one_text(file, path, folder, work) if "{text}" in command else ""
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
    path = files.source(file, folder, work)
    entry = {"file": file.name, "standard": file.standard, "options": options,
             "valid": is_valid(path, file, folder), "images": has_images(path, file, folder)}
    for way, command in (("opencl", args.opencl), ("cuda", args.cuda)):
        if command and entry["valid"]:
            begin = processor_s()
            judged = judge(*run(fill(command, path, file, options, folder, work), folder, args.limit))
            entry[way] = dict(zip(("outcome", "reason", "message"), judged),
                              seconds=processor_s() - begin)
            entry["valid"] = "there is no kernel" not in entry[way]["message"]
    return entry


OUTCOMES = ("accepted", "refused", "failed")


def row(name, group, ways):
    valid = [e for e in group if e["valid"]]
    cells = [name, len(group)]
    for way in ways:
        cells += [sum(e[way]["outcome"] == outcome for e in valid) for outcome in OUTCOMES]
    cells += [len(group) - len(valid), sum(bool(e["images"]) for e in valid)]
    for way in ways:
        times = [(e[way]["seconds"], os.path.basename(e["file"])) for e in valid]
        cells += ["%.1f" % sum(t for t, _ in times)] + ["%.1f %s" % max(times, default=(0, ""))]
    return [str(cell) for cell in cells]


def print_table(entries, ways):
    heads = ["", "files"] + ["%s %s" % (way, outcome) for way in ways for outcome in OUTCOMES]
    heads += ["not valid", "images"] + [way + part for way in ways for part in (" s", " worst")]
    groups = collections.OrderedDict()
    for entry in entries:
        groups.setdefault("/".join(entry["file"].split("/")[:2]), []).append(entry)
    groups["all"] = entries
    groups["all without images"] = [e for e in entries if not e["images"]]
    table = [heads] + [row(name, group, ways) for name, group in groups.items()]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    for cells in table:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                        for i, (cell, w) in enumerate(zip(cells, widths))).rstrip())
    entries = [e for e in entries if e["valid"]]
    for way in ways:
        reasons = collections.Counter((e[way]["outcome"], e[way]["reason"]) for e in entries
                                      if e[way]["outcome"] != "accepted")
        print("\n%s, not accepted:" % way)
        for (outcome, why), number in reasons.most_common():
            print("%6d  %s: %s" % (number, outcome, why))


def parse():
    parser = argparse.ArgumentParser(prog="tools/corpus/run.sh")
    parser.add_argument("--list", default=files.LIST)
    parser.add_argument("--from", dest="folder")
    parser.add_argument("--fetch")
    parser.add_argument("--opencl", default="")
    parser.add_argument("--cuda", default="")
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--only", default="")
    parser.add_argument("--hosts", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--messages", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    repositories, listed = files.read_list(args.list)
    if args.hosts:
        repositories = {name: ("https://github.com/" + name, commit)
                        for name, commit in hosts.REPOSITORIES.items()}
    if args.folder is None:
        fetch(repositories, args.fetch)
    args.folder = os.path.abspath(args.folder or args.fetch)
    ways = [way for way in ("opencl", "cuda") if getattr(args, way)]
    entries = []
    with tempfile.TemporaryDirectory() as work:
        for file in hosts.programs(args.folder, work) if args.hosts else listed:
            if re.search(args.only, file.name):
                entries.append(measure(file, args, work))
    print_table(entries, ways)
    for entry in [e for e in entries if e["valid"]] if args.messages else []:
        for way in ways:
            if entry[way]["outcome"] != "accepted":
                print("%s: %s %s: %s: %s" % (entry["file"], way, entry[way]["outcome"],
                                             entry[way]["reason"], entry[way]["message"]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(entries, out, indent=1)


main()
