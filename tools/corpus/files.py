"""The corpus: what list.txt says, and where the files are."""
import os
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
