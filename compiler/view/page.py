"""`page`: a `ProgramPage` as the lines of one HTML file, which needs no network; each part's data is compressed."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict
from importlib.resources import files

from compiler.report.html import document, escaped, paragraph
from compiler.view.records import PagePart, ProgramPage

MAX_BYTES = 8 << 20
"""The size in bytes that a page does not exceed: parts behind it are left out."""


def page(shown: ProgramPage) -> Iterator[str]:
    """Yield the lines of a page, each with its end. Parts that would make it larger than MAX_BYTES are named, without
    their data."""
    yield from (f"{line}\n" for line in _lines(shown))


def _lines(shown: ProgramPage) -> Iterator[str]:
    package = files("compiler.view")
    style, script = ((package / name).read_text("utf-8") for name in ("view.css", "view.js"))
    yield from document(f"{shown.name}: view", style)
    yield f"<header><h1>{escaped(shown.name)}</h1>"
    yield from map(paragraph, shown.sentences)
    if shown.fault is not None:
        yield f'<p class="refused">{escaped(shown.fault)}</p>'
    yield "</header>"
    yield '<div id="app"><noscript><p>The page needs JavaScript.</p></noscript></div>'
    used = len(style) + len(script)
    rows = list[object]()
    for number, part in enumerate(shown.parts):
        data = packed(part)
        used += len(data)
        fits = used <= MAX_BYTES or number == 0
        rows.append({"name": part.name, "facts": list(part.facts), "refused": part.refusal is not None, "fits": fits})
        if fits:
            yield f'<script type="text/plain" id="part-{number}">{data}</script>'
    index = json.dumps({"parts": rows, "caches": dict(shown.caches)}).replace("<", "\\u003c")
    yield f'<script type="application/json" id="index">{index}</script>'
    yield f"<script>{script}</script></body></html>"


def packed(part: PagePart) -> str:
    """The data of a part: JSON, compressed by gzip, in base64."""
    text = json.dumps(asdict(part), separators=(",", ":"))
    return b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()
