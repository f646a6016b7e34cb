#!/usr/bin/env python3
"""Makes the site: docs/site/site.py [--strict] OUT, in the folder that has README.md.

Doxygen makes the pages of docs/ and of the headers, and mandoc those of the manual; this script gives them the
list of pages (pages.txt) as their navigation. Whatever Doxygen warns of, but for structures and members without
a text, is an error with --strict and with the version that the pages are held against, and printed with another.
"""

import html
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing beside the sources

from filter import MAN, PAGES, header_url, is_public, man_url, page_name

HERE = "docs/site"
KNOWN_DOXYGEN = "1.9.4"  # Debian 12's: others warn of other things, which is no fault of who builds
REFERENCES = {
    "Reference": "api/weir",
    "Reference of the patterns": "patterns",
    "Reference for modules": "api/weir/module",
    "Reference of the kit": "api/weir/kit",
}


def page_url(path):
    if path == "README.md":
        return "index.html"
    if path.endswith(".html"):
        return path
    return page_name(path) + ".html"


def listed():
    """The groups of pages.txt: a title, and for each page its path and name."""
    groups = []
    with open(f"{HERE}/pages.txt", encoding="utf-8") as file:
        for line in file.read().splitlines():
            path, _, name = line.partition(" ")
            if path.endswith((".md", ".html")):
                groups[-1][1].append((path, name))
            else:
                groups.append((line, []))
    return groups


def listing(folder):
    return [f"{folder}/{n}" for n in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def headers(folder):
    return [(header_url(p), os.path.basename(p)) for p in listing(folder) if is_public(p)]


def manual():
    """The manual's pages, that of the command itself first."""
    names = [os.path.basename(p) for p in listing(MAN) if p.endswith(".1")]
    return [(man_url(n), n[:-2]) for n in sorted(names, key=lambda n: n[:-2])]


def navigation(decisions):
    groups = [(title, [(page_url(path), name) for path, name in pages]) for title, pages in listed()]
    groups.append(("Manual pages", manual()))
    groups += [(title, headers(folder)) for title, folder in REFERENCES.items()]
    groups.append(("Decisions", [(page_url(path), name) for path, name in decisions]))
    parts = []
    for title, pages in groups:
        links = "".join(f'<li><a href="{u}">{html.escape(n)}</a></li>' for u, n in pages)
        parts.append(f"<h2>{html.escape(title)}</h2><ul>{links}</ul>")
    return "".join(parts)


def title_of(path):
    with open(path, encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip().replace("`", "")


def check_list(decisions):
    named = {path for _, pages in listed() for path, _ in pages if path.endswith(".md")} | {path for path, _ in decisions}
    found = {os.path.join("docs", n) for n in os.listdir("docs") if n.endswith(".md")}
    found |= {n for n in PAGES if os.path.exists(n)}
    for path in sorted(found - named):
        sys.exit(f"site: {path} is not in {HERE}/pages.txt: add it to a group")
    for path in sorted(named - found - {p for p, _ in decisions}):
        sys.exit(f"site: {HERE}/pages.txt names {path}, which is not there")


def warnings_of(text):
    """What is wrong: whatever Doxygen says, but for structures and members without a text of their own."""
    accepted = re.compile(
        r"Compound \w+ is not documented|Member .*\((variable|typedef|enumeration)\).* is not documented|"
        r"Member .*\(function\) of (class|struct) |Member [A-Z]\w+ \(macro definition\)|Member \w+\(.*\) \(macro definition\)|"
        r"CHANGELOG.md' for")
    return [line for line in text.splitlines() if line.strip() and not accepted.search(line)]


def manual_page(name):
    """What Doxygen reads for a page of the manual: mandoc's HTML, whose links lead to other pages of the site."""
    command = ["mandoc", "-Thtml", "-O", "fragment,man=man-%N.html", f"{MAN}/{name}.1"]
    text = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    title = re.search(r'<span class="Nd">(.*?)</span>', text, re.S)
    text = re.sub(r'<table class="(head|foot)">.*?</table>', "", text, flags=re.S)
    text = re.sub(r"(</?h)1", r"\g<1>2", text)
    text = re.sub(
        r'<a class="Xr" href="man-([\w-]+)\.html">(.*?)</a>',
        lambda m: m.group(0) if os.path.exists(f"{MAN}/{m.group(1)}.1") else m.group(2),
        text,
        flags=re.S,
    ).replace("*/", "*&#47;")
    heading = f"{name}: {' '.join(title.group(1).split())}" if title else name
    return f"/** \\page man-{name} {heading}\n\\htmlonly\n{text}\n\\endhtmlonly */\n"


def write_manual(folder):
    """Files for Doxygen, one for each page of the manual."""
    os.makedirs(folder, exist_ok=True)
    if manual() and not shutil.which("mandoc"):
        sys.exit("site: mandoc is not installed, which makes the manual's pages; tools/setup.sh --tests installs it")
    for _, name in manual():
        with open(f"{folder}/{name}.dox", "w", encoding="utf-8") as file:
            file.write(manual_page(name))


def mend_places(out):
    """Doxygen links to members of unions without a name, and gives them no place: such links lead to their
    structure. In code it shows a character's number as it is written. Scripts that this version does not write are
    not loaded."""
    places = {}
    for path in listing(out):
        if os.path.basename(path).startswith("struct"):
            with open(path, encoding="utf-8") as file:
                places[os.path.basename(path)] = set(re.findall(r'\bid="(\w+)"', file.read()))
    for path in listing(out) + listing(f"{out}/search"):
        if not path.endswith((".html", ".js")):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        mended = re.sub(
            r"(struct\w+\.html)#(a[0-9a-f]{32})",
            lambda m: m.group(0) if m.group(2) in places.get(m.group(1), ()) else m.group(1),
            text,
        ).replace("&amp;#58;", ":")  # filter.py's colon, in code
        mended = re.sub(
            r'<script src="([^":]+)"></script>\n',
            lambda m: m.group(0) if os.path.exists(os.path.join(os.path.dirname(path), m.group(1))) else "",
            mended,
        )
        if mended != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(mended)


def is_strict():
    version = subprocess.run(["doxygen", "--version"], text=True, capture_output=True, check=True).stdout.split()
    return "--strict" in sys.argv or version[:1] == [KNOWN_DOXYGEN]


def main():
    out = os.path.abspath(sys.argv[-1])
    decisions = [(f"docs/decisions/{n}", title_of(f"docs/decisions/{n}")) for n in sorted(os.listdir("docs/decisions"))]
    check_list(decisions)
    os.makedirs(out, exist_ok=True)
    head = os.path.join(out, "header.html")
    with open(f"{HERE}/header.html", encoding="utf-8") as file:
        text = file.read().replace("<!-- navigation -->", navigation(decisions))
    with open(head, "w", encoding="utf-8") as file:
        file.write(text)
    pages = os.path.join(out, "manual")
    write_manual(pages)
    with open(f"{HERE}/Doxyfile", encoding="utf-8") as file:
        settings = file.read() + f'\nOUTPUT_DIRECTORY = "{out}"\nHTML_OUTPUT = .\nHTML_HEADER = "{head}"\n'
        settings += f'INPUT += "{pages}"\nFILE_PATTERNS += *.dox\n'
    ran = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True, check=False)
    os.remove(head)
    shutil.rmtree(pages)
    wrong = warnings_of(ran.stderr)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
    if ran.returncode != 0 or (wrong and is_strict()):
        sys.exit(f"site: doxygen ended with status {ran.returncode}, {len(wrong)} warnings")
    mend_places(out)


main()
