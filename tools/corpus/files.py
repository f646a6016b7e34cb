"""The corpus: what list.txt says, and where the files are."""
import os
import re
import shlex

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "list.txt")


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
