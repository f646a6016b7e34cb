#!/usr/bin/env python3
"""Makes the site: docs/site/site.py OUT, in the folder that has README.md.

Doxygen makes the pages of docs/ and of the headers; this script gives it the list of pages (pages.txt) as
its navigation, and fails at whatever it warns of but for structures and members without a text.
"""

import html
import os
import re
import subprocess
import sys

HERE = "docs/site"
PATTERNS = "patterns"
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")  # beside those of docs/
INTERNAL = ("fail.h", "chunks_parts.h", "pipeline_parts.h")


def page_url(path):
    """Doxygen's name of a page's file."""
    if path == "README.md":
        return "index.html"
    if path.endswith(".html"):
        return path
    return "md_" + re.sub(r"[/.-]", "_", path[:-3].replace("_", "__")) + ".html"


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


def headers(folder):
    names = sorted(n for n in os.listdir(folder) if n.endswith(".h") and n not in INTERNAL)
    return [(f"{n.replace('_', '__').replace('.', '_8')}.html", n) for n in names]


def navigation(decisions):
    groups = [(title, [(page_url(path), name) for path, name in pages]) for title, pages in listed()]
    groups.append(("Reference", headers("api/weir")))
    groups.append(("Reference of the patterns", headers(PATTERNS)))
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
        r"Member [A-Z]\w+ \(macro definition\)|Member \w+\(.*\) \(macro definition\)|"
        r"CHANGELOG.md' for")
    return [line for line in text.splitlines() if line.strip() and not accepted.search(line)]


def main():
    out = os.path.abspath(sys.argv[1])
    decisions = [(f"docs/decisions/{n}", title_of(f"docs/decisions/{n}")) for n in sorted(os.listdir("docs/decisions"))]
    check_list(decisions)
    os.makedirs(out, exist_ok=True)
    head = os.path.join(out, "header.html")
    with open(f"{HERE}/header.html", encoding="utf-8") as file:
        text = file.read().replace("<!-- navigation -->", navigation(decisions))
    with open(head, "w", encoding="utf-8") as file:
        file.write(text)
    with open(f"{HERE}/Doxyfile", encoding="utf-8") as file:
        settings = file.read() + f'\nOUTPUT_DIRECTORY = "{out}"\nHTML_OUTPUT = .\nHTML_HEADER = "{head}"\n'
    ran = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True, check=False)
    os.remove(head)
    wrong = warnings_of(ran.stderr)
    if wrong or ran.returncode != 0:
        sys.exit("\n".join(wrong + [f"site: doxygen ended with status {ran.returncode}, {len(wrong)} warnings"]))


main()
