"""Hooks of MkDocs for the site: the README is its home, the API reference is written, links stay inside the site."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import reference

ROOT = Path(__file__).resolve().parent.parent

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+)([^)#\s]*)(#[^)]*)?\)")
"""A link to something above the folder of its page."""


def home(readme: str) -> str:
    """Return the README as the page at the root of docs/; its links to other files are links out of docs/."""
    text = re.sub(r"\]\((?=\w+\.md\b)", "](../", readme).replace("](docs/", "](")
    return f"---\nhide: [navigation]\n---\n\n{text}"


def inside(text: str, folder: Path) -> str:
    """Return a page of a folder of docs/ in which each link out of docs/ becomes its words, or the path if that ends in
    the words; a link to the README goes to the home page."""

    def kept(link: re.Match[str]) -> str:
        words, up, path, anchor = link.groups()
        target = (folder / up / path).resolve()
        if target == ROOT / "README.md":
            return f"[{words}]({up.removeprefix('../')}index.md{anchor or ''})"
        if target.is_relative_to(ROOT / "docs"):
            return link[0]
        file = str(target.relative_to(ROOT)).removesuffix("/__init__.py")
        return f"`{file}`" if file.endswith(words) else words

    return LINK.sub(kept, text)


def on_files(files: Any, config: Any) -> Any:
    """Add the home page and the pages of the API reference to mkdocs' files, and return these."""
    from mkdocs.structure.files import File

    texts = {f"api/{name}.md": page.text() for name, page in reference.PAGES.items()}
    texts["index.md"] = home((ROOT / "README.md").read_text("utf-8"))
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return the text of a page as `inside` changes its links; mkdocs calls this for each page."""
    return inside(markdown, (ROOT / "docs" / page.file.src_uri).parent)
