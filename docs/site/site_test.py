#!/usr/bin/env python3
"""Checks a site's files: site_test.py FOLDER. Every link leads to a file and a place in it, no page loads
anything from the network, and a reader sees no tag, no Markdown link and none of Doxygen's own marks."""

import os
import re
import sys
from html.parser import HTMLParser

APART = ("code", "pre", "script", "style")
MARKS = r"</?(?:code|a|b|em|strong|p|br)\b[^<>]*>|\]\([\w/.-]*(?:\.md|\.html|#)|```|\*\*[A-Z]\w*\*\*"


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.names, self.links, self.loads, self.marks = set(), [], [], []
        self.apart = 0  # inside of elements whose text is code, or is not shown
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_data(self, data):
        if not self.apart:
            self.marks += re.findall(MARKS, data)
        self.marks += re.findall(r"\\ilinebr|class=\"markdown", data)

    def handle_endtag(self, tag):
        self.apart -= tag in APART

    def handle_starttag(self, tag, attrs):
        self.apart += tag in APART
        values = dict(attrs)
        self.names |= {values[k] for k in ("id", "name") if values.get(k)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if values.get("src"):
            self.loads.append(values["src"])
        if tag == "link" and values.get("href"):
            self.loads.append(values["href"])


def outside(url):
    return url.startswith(("http:", "https:", "mailto:", "//"))


def main():
    root = sys.argv[1]
    pages = {n: Page(os.path.join(root, n)) for n in sorted(os.listdir(root)) if n.endswith(".html")}
    wrong = []
    for name, page in pages.items():
        wrong += [f"{name} loads {u}" for u in page.loads if outside(u)]
        wrong += [f"{name} shows {mark}" for mark in page.marks]
        for url in page.links + page.loads:
            if outside(url) or url.startswith(("javascript:", "data:")):
                continue
            path, _, anchor = url.partition("#")
            target = path or name
            if not os.path.exists(os.path.join(root, target)):
                wrong.append(f"{name} links to {url}, which is not there")
            elif anchor.startswith("index_"):
                continue  # of Doxygen's own lists: 1.17 writes links without their places
            elif anchor and target in pages and anchor not in pages[target].names:
                wrong.append(f"{name} links to {url}, a place that is not there")
    print("\n".join(wrong) or f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links")
    sys.exit(1 if wrong or len(pages) < 50 else 0)


main()
