"""Looks at every link of a site, at what its pages load, and at equations that Markdown changed.

    python3 docs/site/check.py FOLDER

Prints each link whose file or anchor is not there, everything that a page would load from elsewhere, stars and underscores
of an equation that became emphasis, and bars in code of a table that kept their backslash; exits with 1 then. Pages below
api/ are Doxygen's: they may be linked, and are not looked at.
"""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors, self.changed = [], [], set(), []
        self.before, self.open = "", {"td": 0, "code": 0}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag in self.open:
            self.open[tag] += 1
        if tag in ("em", "strong") and re.search(r"[\w)\]]\Z", self.before):  # of words, it begins at one
            self.changed.append(f"a star or underscore behind '{self.before[-30:]}' became emphasis, put it in backticks")
        self.anchors |= {named[key] for key in ("id", "name") if named.get(key)}
        if tag == "a" and named.get("href"):
            self.links.append(named["href"])
        elif tag in ("script", "img", "iframe") and named.get("src"):
            self.loads.append(named["src"])
        elif tag == "link" and named.get("rel") != "canonical" and named.get("href"):
            self.loads.append(named["href"])

    def handle_endtag(self, tag):
        if tag in self.open:
            self.open[tag] -= 1

    def handle_data(self, data):
        self.before = data
        if all(self.open.values()) and "\\|" in data:
            self.changed.append(f"a bar in code of a table has a backslash: {data}")


def main():
    site = Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if not path.is_relative_to(site / "api")}
    bad = count = 0
    for path, page in pages.items():
        if path.name == "404.html":  # its links start at the root of a server
            continue
        for change in page.changed:
            print(f"{path.relative_to(site)}: {change}")
            bad += 1
        for kind, references in (("link", page.links), ("loads", page.loads)):
            for reference in references:
                if reference.startswith(("http:", "https:", "//")):
                    if kind == "loads":
                        print(f"{path.relative_to(site)}: loads from elsewhere: {reference}")
                        bad += 1
                    continue
                if reference.startswith(("mailto:", "data:", "javascript:")):
                    continue
                count += 1
                file, anchor = urldefrag(reference)
                target = (path.parent / unquote(file)).resolve() if file else path
                target = target / "index.html" if target.is_dir() else target
                known = pages.get(target)
                if not target.is_file() or (anchor and known and unquote(anchor) not in known.anchors):
                    print(f"{path.relative_to(site)}: leads nowhere: {reference}")
                    bad += 1
    print(f"{len(pages)} pages, {count} references, {bad} bad")
    sys.exit(1 if bad else 0)


main()
