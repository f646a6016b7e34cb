#!/usr/bin/env bash
# Everything that the pages name exists: the files and headings that they link to, paths, packages and the API's names
# in `code`, and the pages that public headers name. The pages are those of the tree that contains README.md.
. tests/support/shell.sh

python3 - "$(dirname "$(readlink -f README.md)")" <<'PYTHON' || fail "pages name what is not there"
import os
import re
import sys

os.chdir(sys.argv[1])
files = set()
folders = set()
for folder, names, entries in os.walk("."):
    names[:] = [n for n in names if not n.startswith((".", "bazel-")) and n != "out"]
    folder = os.path.normpath(folder)
    folders.add(folder)
    files.update(os.path.normpath(os.path.join(folder, entry)) for entry in entries)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", read(page), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def exists(path):
    return path in files or path in folders


def is_target(path):
    build = os.path.join(os.path.dirname(path), "BUILD")
    return build in files and '"%s"' % os.path.basename(path) in read(build)


wrong = []
tops = {f.split("/")[0] for f in files if "/" in f}
source = "\n".join(read(f) for f in sorted(files)
                   if f.endswith((".h", ".c", ".cl", ".bzl", ".py", ".sh", ".txt", "BUILD")) or f.startswith("dist/"))
known = set(re.findall(r"\w+", source))
pages = sorted(f for f in files if f.endswith(".md"))
links = 0
for page in pages:
    here = os.path.dirname(page)
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.S | re.M)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("https://", "http://")):
            continue
        links += 1
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(here, path)) if path else page
        if not exists(target):
            wrong.append("%s links to %s" % (page, link))
        elif anchor and anchor not in anchors(target):
            wrong.append("%s links to %s, which has no such heading" % (page, link))
    for code in re.findall(r"`([^`\n]+)`", text):
        path = code.rstrip("/")
        if re.fullmatch(r"[\w./-]+", path) and path.split("/")[0] in tops and "/" in path:
            if not (exists(path) or exists(os.path.normpath(os.path.join(here, path))) or is_target(path)):
                wrong.append("%s names the path %s" % (page, code))
        for package in re.findall(r"^//([a-z][\w/]*)(?::|$)", code):
            if package not in folders and package != "pictures":  # of an example
                wrong.append("%s names the package %s" % (page, code))
        for name in re.findall(r"\b(?:weir|WEIR)_\w+", code):
            # A name that ends in _ means all names that begin with it.
            if name not in known and not (name.endswith("_") and name in source):
                wrong.append("%s names %s" % (page, name))
for header in sorted(f for f in files if f.endswith(".h") and f.startswith(("api/", "patterns/"))):
    for path in re.findall(r"\bdocs/[\w/-]+\.md", read(header)):
        if path not in files:
            wrong.append("%s names %s" % (header, path))
for sentence in wrong:
    print(sentence)
if len(pages) < 30 or links < 60:
    print("only %d pages with %d links were found" % (len(pages), links))
    wrong.append("")
sys.exit(bool(wrong))
PYTHON
