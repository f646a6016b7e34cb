"""Makes a .tar.gz of the files that a manifest lists.

The archive depends on the files' contents and places alone: entries are sorted,
have one date and one owner, and folders are entries too.

usage: archive.py OUT FOLDER MANIFEST

Each line of the manifest is "file SOURCE PLACE" or "link TARGET PLACE"; places are
below FOLDER, which may be empty.
"""

import gzip
import io
import os
import sys
import tarfile

# 2000-01-01: tar warns of files from 1970.
DATE = 946684800
X86_64 = 62


def fail(text):
    sys.exit("archive: " + text)


def is_program(data):
    return data.startswith((b"\x7fELF", b"#!"))


def check_machine(source, data):
    if data.startswith(b"\x7fELF") and int.from_bytes(data[18:20], "little") != X86_64:
        fail("%s is not for x86-64, which the archive's name promises" % source)


def entry(name, kind, mode):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = mode
    info.mtime = DATE
    info.uname = info.gname = "root"
    return info


def folders_of(places):
    folders = set()
    for place in places:
        while "/" in place:
            place = place.rsplit("/", 1)[0]
            folders.add(place)
    return folders


def read_manifest(path, folder):
    entries = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            kind, source, place = line.split()
            place = folder + "/" + place if folder else place
            if place in entries:
                fail("%s and %s both go to %s" % (entries[place][1], source, place))
            entries[place] = (kind, source)
    return entries


def add_file(tar, place, source):
    # Resolved here, because Bazel's inputs are symbolic links.
    with open(source, "rb") as file:
        data = file.read()
    check_machine(source, data)
    library = ".so" in os.path.basename(place)
    info = entry(place, tarfile.REGTYPE, 0o755 if is_program(data) and not library else 0o644)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def write(out, folder, entries):
    names = sorted(set(entries) | folders_of(entries))
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, tarfile.open(
        fileobj=packed, mode="w", format=tarfile.GNU_FORMAT
    ) as tar:
        for name in names:
            kind, source = entries.get(name, ("folder", ""))
            if kind == "folder":
                tar.addfile(entry(name, tarfile.DIRTYPE, 0o755))
            elif kind == "link":
                info = entry(name, tarfile.SYMTYPE, 0o777)
                info.linkname = source
                tar.addfile(info)
            else:
                add_file(tar, name, source)


def main():
    if len(sys.argv) != 4:
        fail(__doc__.split("\n\n")[2])
    out, folder, manifest = sys.argv[1:]
    write(out, folder, read_manifest(manifest, folder))


main()
