#!/usr/bin/env python3
"""Checks a site's files: site_test.py FOLDER. Every link leads to a file and a place in it, and no page loads
anything from the network."""

import os
import sys
from html.parser import HTMLParser


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.names, self.links, self.loads = set(), [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
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
        for url in page.links + page.loads:
            if outside(url) or url.startswith(("javascript:", "data:")):
                continue
            path, _, anchor = url.partition("#")
            target = path or name
            if not os.path.exists(os.path.join(root, target)):
                wrong.append(f"{name} links to {url}, which is not there")
            elif anchor and target in pages and anchor not in pages[target].names:
                wrong.append(f"{name} links to {url}, a place that is not there")
    print("\n".join(wrong) or f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links")
    sys.exit(1 if wrong or len(pages) < 50 else 0)


main()
