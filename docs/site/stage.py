"""Copies the pages of the tree to where MkDocs reads them, in the tree's layout, so that their links hold; writes mkdocs.yml.

    python3 docs/site/stage.py FOLDER

FOLDER/pages has the pages, what they link to (pictures, notebooks), and a page for each folder that they link to. FOLDER
is new, empty, or has a site made before: of that, pages and html are deleted, and nothing else.
"""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Sections and their pages in order; a page that is named nowhere comes under "More".
SECTIONS = {
    "Learn": ["docs/0[0-9]-*.md", "docs/complex.md", "course/README.md", "course/[0-9]*.md"],
    "Use": ["docs/own-data.md", "docs/explain.md", "docs/reports.md", "docs/apply.md", "docs/onnx.md", "python/README.md",
            "docs/cells.md", "docs/equations.md", "docs/data.md"],
    "Reproduce": ["docs/reproducing.md", "docs/results/*.md", "docs/sweeps.md", "docs/scaling.md", "docs/cuda.md", "docs/gpu.md"],
    "Extend": ["docs/how-to/cell.md", "docs/how-to/op.md", "docs/how-to/task.md", "docs/how-to/backend.md", "examples/*"],
    "Quality": ["docs/performance.md", "docs/reliability.md", "docs/decisions.md", "docs/array-api.md", "tests/README.md"],
    "Project": ["CONTRIBUTING.md", "CHANGELOG.md"],
}
LEFT_OUT = {"docs/api.md"}  # the first page of the headers, which Doxygen reads
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".txt": "cmake", ".toml": "toml", ".sh": "sh"}
LINK = re.compile(r"\]\(([^)\s#]+)")  # its text may begin on another line


def tracked(pattern="*"):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", pattern], cwd=ROOT, check=True,
                           capture_output=True).stdout
    return sorted(name for name in names.decode().split("\0") if name and (ROOT / name).is_file())


def outside_of_code(text):
    """The lines of a page, each with whether it belongs to text; fences are as Python's Markdown knows them."""
    fence = False
    for line in text.splitlines():
        if line.startswith("```"):
            fence = not fence
            yield re.sub(r"^```(\w+) .*", r"```\1", line), False  # a word for extract.awk
        else:
            yield line, not fence


def for_mkdocs(text):
    """The page as Python's Markdown needs it: a list begins behind a blank line."""
    lines, before = [], ""
    for line, is_text in outside_of_code(text):
        item = re.match(r"([-*]|\d+\.) ", line)
        if is_text and item and before and not re.match(r"([-*]|\d+\.) |\s", before):
            lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines) + "\n"


def links_of(text):
    for line, is_text in outside_of_code(text):
        if is_text:
            yield from LINK.findall(re.sub(r"`[^`]*`", "", line))


def page_of_folder(folder):
    """The files of an example, one after another."""
    parts = [f"# {folder}\n"]
    for name in tracked(folder):
        suffix = Path(name).suffix
        if suffix in LANGUAGES:
            parts.append(f"## {Path(name).relative_to(folder)}\n\n```{LANGUAGES[suffix]}\n{(ROOT / name).read_text()}```\n")
    return "\n".join(parts)


def title_of(text):
    return next((line[2:].replace("`", "") for line, is_text in outside_of_code(text) if is_text and line.startswith("# ")), None)


def stage(pages):
    """Writes the pages; returns their titles by name."""
    titles = {}

    def write(name, text):
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(for_mkdocs(text))
        titles[name] = title_of(text) or name

    for name in tracked("*.md"):
        if name in LEFT_OUT or name.startswith("."):
            continue
        text = (ROOT / name).read_text()
        for link in sorted(set(links_of(text)), key=len, reverse=True):
            if re.match(r"[a-z]+:", link):
                continue
            target = (ROOT / name).parent.joinpath(link).resolve()
            if not target.exists():
                sys.exit(f"docs: {name}: a link leads nowhere: {link}")
            inside = target.relative_to(ROOT).as_posix()
            if target.is_dir() and not (target / "README.md").exists():
                write(f"{inside}/index.md", page_of_folder(inside))
            if target.is_dir():
                page = "README.md" if (target / "README.md").exists() else "index.md"
                text = text.replace(f"]({link})", f"]({link.rstrip('/')}/{page})")
            elif target.suffix != ".md":
                (pages / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(target, pages / inside)
        write(name, text)
    return titles


def navigation(titles):
    left = dict(titles)
    home = {"Reel": "README.md"}
    left.pop("README.md")
    sections = []
    for section, patterns in SECTIONS.items():
        entries = []
        for pattern in patterns:
            for name in sorted(n for n in left if Path(n).match(pattern) or Path(n).parent.match(pattern)):
                entries.append({left.pop(name): name})
        if entries:
            sections.append({section: entries})
    if left:
        sections.append({"More": [{title: name} for name, title in sorted(left.items())]})
    return [home, *sections, {"Headers": "api/index.html"}]


def settings(folder, titles):
    palette = [{"media": f"(prefers-color-scheme: {scheme})", "scheme": name, "primary": "blue grey", "accent": "deep orange",
                "toggle": {"icon": icon, "name": hint}}
               for scheme, name, icon, hint in [("light", "default", "material/weather-night", "Dark"),
                                                ("dark", "slate", "material/weather-sunny", "Light")]]
    return {
        "site_name": "Reel",
        "docs_dir": str(folder / "pages"),
        "site_dir": str(folder / "html"),
        "use_directory_urls": False,  # pages open from a disk, too
        "nav": navigation(titles),
        "theme": {"name": "material", "font": False, "palette": palette, "custom_dir": str(ROOT / "docs/site/theme"),
                  "features": ["navigation.tabs", "navigation.top", "search.highlight", "search.suggest"]},
        "markdown_extensions": ["tables", "pymdownx.superfences", {"pymdownx.highlight": {"use_pygments": True}}, "md_in_html",
                                {"toc": {"permalink": True}}],
        "plugins": ["search"],
    }


def is_site(folder):
    """Whether a former run wrote this folder."""
    try:
        return json.loads((folder / "mkdocs.yml").read_text())["docs_dir"] == str(folder / "pages")
    except (OSError, ValueError, KeyError, TypeError):
        return False


def clear(folder):
    """Deletes what a former run made; refuses a folder with anything else."""
    if folder.exists() and not is_site(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        sys.exit(f"docs: {folder} is not empty, and not a site made before. Hint: name a new folder")
    for made in (folder / "pages", folder / "html"):
        if made.exists():
            shutil.rmtree(made)


def main():
    folder = Path(sys.argv[1]).resolve()
    clear(folder)
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "mkdocs.yml"
    configuration.write_text(json.dumps({"docs_dir": str(folder / "pages")}))  # is_site, also if a link stops this run
    titles = stage(folder / "pages")
    configuration.write_text(json.dumps(settings(folder, titles), indent=1, ensure_ascii=False))


main()
