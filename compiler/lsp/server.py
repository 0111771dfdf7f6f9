"""The language server: the protocol around the features, by pygls."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

import compiler
from compiler.lsp import completion, lenses, navigation, symbols
from compiler.lsp.analysis import Finding
from compiler.lsp.background import SECONDS, Background, Question, findings_call, ir_call
from compiler.lsp.checks import has_deep_checks
from compiler.lsp.hover import hover
from compiler.lsp.snapshot import Snapshot
from compiler.lsp.text import TextRange
from compiler.support.errors import InputError
from compiler.support.gc import paused
from compiler.support.worker import Refused, Reply

DEBOUNCE_SECONDS = 0.15
"""The time without a change after which diagnostics are computed, in seconds."""
VIEW = "compiler.cli.view"
"""The command that shows a page about a file, if it is there."""
TRIGGERS = ["%", "@", "!", "^", ".", '"', "-", ",", "{", "["]
"""The characters that begin a completion."""


class StrataServer(LanguageServer):  # type: ignore[misc]
    """The server, with the newest snapshot of each document and the slow questions. `seconds` limits each of these."""

    def __init__(self, seconds: float = SECONDS) -> None:
        super().__init__("strata", compiler.__version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.background = Background(seconds)
        self.snapshots: dict[str, Snapshot] = {}
        self._deep: dict[str, tuple[str, list[Finding]]] = {}
        self._seconds: dict[str, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def snapshot(self, uri: str) -> Snapshot:
        """The snapshot of a document in its newest version."""
        text = self.workspace.get_text_document(uri).source
        former = self.snapshots.get(uri)
        if former is None or former.text != text:
            encoding = str(self.workspace.position_encoding.value)
            start = perf_counter()
            with paused():
                self.snapshots[uri] = Snapshot.of(_path(uri), text, encoding, former)
            self._seconds[uri] = perf_counter() - start
        return self.snapshots[uri]

    def offset(self, params: Any) -> tuple[Snapshot, int]:
        """The snapshot of the document of a request, and the offset of its position."""
        snapshot = self.snapshot(params.text_document.uri)
        return snapshot, snapshot.lines.offset(params.position.line, params.position.character)

    def schedule(self, uri: str) -> None:
        """Publish the diagnostics of a document, of one that is open after DEBOUNCE_SECONDS, or as long as its last
        analysis took if that is more, unless it changes before."""
        self.cancel(uri)
        delay = max(DEBOUNCE_SECONDS, self._seconds[uri]) if uri in self._seconds else 0.0
        self._timers[uri] = asyncio.get_running_loop().call_later(delay, self._publish, uri)

    def cancel(self, uri: str) -> None:
        """Drop what is planned for a document."""
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()
        self.background.drop(uri)

    def forget(self, uri: str) -> None:
        """Forget a document that was closed, and clear its diagnostics."""
        self.cancel(uri)
        self.snapshots.pop(uri, None)
        self._deep.pop(uri, None)
        self._seconds.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def findings(self, uri: str) -> list[Finding]:
        """The findings of a document: those of its text, and of its passes as far as they are known."""
        snapshot = self.snapshot(uri)
        text, deep = self._deep.get(uri, ("", []))
        return [*snapshot.findings, *(deep if text == snapshot.text else [])]

    def _publish(self, uri: str) -> None:
        self._timers.pop(uri, None)
        snapshot = self.snapshot(uri)
        self._show(uri)
        if has_deep_checks(snapshot):
            loop = asyncio.get_running_loop()
            text = snapshot.text

            def receive(reply: Reply) -> None:
                loop.call_soon_threadsafe(self._complete, uri, text, reply)

            self.background.ask(uri, Question(findings_call(snapshot.path, text), receive))

    def _complete(self, uri: str, text: str, reply: Reply) -> None:
        """Publish the findings of passes, if they are of the newest version, or that there are none, and why."""
        if uri in self.snapshots and self.snapshots[uri].text == text:
            self._deep[uri] = (text, [self.snapshots[uri].unchecked(reply)] if isinstance(reply, Refused) else reply)
            self._show(uri)

    def _show(self, uri: str) -> None:
        snapshot = self.snapshot(uri)
        version = self.workspace.get_text_document(uri).version
        shown = [diagnostic(snapshot, uri, finding) for finding in self.findings(uri)]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown, version))

    async def ir_after(self, uri: str, number: int, count: int) -> dict[str, str]:
        """The IR of a piece of a document after some of its passes: `text`, or `error` with a sentence."""
        snapshot = self.snapshot(uri)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()
        call = ir_call(snapshot.path, snapshot.text, number, count)
        receive = _resolving(loop, answer)
        self.background.ask(f"ir {id(answer)}", Question(call, receive))
        reply = await answer
        return {"error": str(reply)} if isinstance(reply, Refused) else {"text": reply}


def _resolving(loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Reply]) -> Any:
    def resolve(reply: Reply) -> None:
        if not answer.done():
            answer.set_result(reply)

    return lambda reply: loop.call_soon_threadsafe(resolve, reply)


def _path(uri: str) -> Path:
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(path or uri)


def place(snapshot: Snapshot, part: TextRange) -> lsp.Range:
    """A range of a document in the protocol."""
    start, end = snapshot.lines.position(part.start), snapshot.lines.position(part.end)
    return lsp.Range(lsp.Position(*start), lsp.Position(*end))


def diagnostic(snapshot: Snapshot, uri: str, finding: Finding) -> lsp.Diagnostic:
    """A finding in the protocol."""
    related = [
        lsp.DiagnosticRelatedInformation(
            lsp.Location(uri, place(snapshot, related_place.range)), related_place.sentence
        )
        for related_place in finding.related
    ]
    return lsp.Diagnostic(
        place(snapshot, finding.range),
        finding.sentence,
        lsp.DiagnosticSeverity(finding.severity),
        source="strata",
        related_information=related or None,
    )


def make_server(seconds: float = SECONDS) -> StrataServer:
    """A server with all features; `seconds` is the limit of checks that run passes."""
    server = StrataServer(seconds)
    _documents(server)
    _questions(server)
    _lists(server)
    _edits(server)
    return server


def serve(port: int | None = None, seconds: float = SECONDS) -> None:
    """Serve a client on the standard streams, or on a TCP port of this machine, until it ends the connection."""
    server = make_server(seconds)
    completion.load_usual_dialects()
    gc.freeze()  # a full collection would take longer than to parse a program
    try:
        if port is None:
            with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output, redirect_stdout(sys.stderr):
                server.start_io(sys.stdin.buffer, output)
        else:
            server.start_tcp("127.0.0.1", port)
    finally:
        server.background.close()


def _documents(server: StrataServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)  # type: ignore[untyped-decorator]
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.schedule(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)  # type: ignore[untyped-decorator]
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.schedule(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)  # type: ignore[untyped-decorator]
    async def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)


def _questions(server: StrataServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)  # type: ignore[untyped-decorator]
    async def on_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        snapshot, offset = server.offset(params)
        explanation = hover(snapshot, offset)
        if explanation is None:
            return None
        return lsp.Hover(
            lsp.MarkupContent(lsp.MarkupKind.Markdown, explanation.text), place(snapshot, explanation.range)
        )

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)  # type: ignore[untyped-decorator]
    async def on_definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        snapshot, offset = server.offset(params)
        return _locations(snapshot, params, navigation.definitions(snapshot, offset))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)  # type: ignore[untyped-decorator]
    async def on_references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        snapshot, offset = server.offset(params)
        ranges = navigation.references(snapshot, offset, params.context.include_declaration)
        return _locations(snapshot, params, ranges)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)  # type: ignore[untyped-decorator]
    async def on_highlight(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        snapshot, offset = server.offset(params)
        return [lsp.DocumentHighlight(place(snapshot, r)) for r in navigation.references(snapshot, offset)]

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(TRIGGERS, resolve_provider=True))  # type: ignore[untyped-decorator]
    async def on_completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        snapshot, offset = server.offset(params)
        proposals = completion.completions(snapshot, offset)
        return lsp.CompletionList(False, [_item(snapshot, proposal, n) for n, proposal in enumerate(proposals)])

    @server.feature(lsp.COMPLETION_ITEM_RESOLVE)  # type: ignore[untyped-decorator]
    async def on_resolve(shown: lsp.CompletionItem) -> lsp.CompletionItem:
        text = completion.proposal_documentation(str(shown.data or ""))
        shown.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, text) if text else None
        return shown

    @server.feature("strata/irAfter")  # type: ignore[untyped-decorator]
    async def on_ir_after(params: Any) -> dict[str, str]:
        return await server.ir_after(str(params.uri), int(params.piece), int(params.count))


def _locations(snapshot: Snapshot, params: Any, ranges: Sequence[TextRange]) -> list[lsp.Location]:
    return [lsp.Location(params.text_document.uri, place(snapshot, r)) for r in ranges]


def _item(snapshot: Snapshot, proposal: completion.Proposal, number: int) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        proposal.label,
        kind=lsp.CompletionItemKind(proposal.kind),
        detail=proposal.detail or None,
        text_edit=lsp.TextEdit(place(snapshot, proposal.range), proposal.text or proposal.label),
        insert_text_format=lsp.InsertTextFormat.Snippet if proposal.is_snippet else lsp.InsertTextFormat.PlainText,
        sort_text=f"{number:05}",
        data=proposal.about or None,
    )


def _lists(server: StrataServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)  # type: ignore[untyped-decorator]
    async def on_symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        snapshot = server.snapshot(params.text_document.uri)
        return [_symbol(snapshot, symbol) for symbol in symbols.outline(snapshot)]

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)  # type: ignore[untyped-decorator]
    async def on_folds(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        snapshot = server.snapshot(params.text_document.uri)
        rows = [(place(snapshot, part), kind) for part, kind in symbols.folds(snapshot)]
        return [lsp.FoldingRange(r.start.line, r.end.line, kind=kind) for r, kind in rows]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)  # type: ignore[untyped-decorator]
    async def on_lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        uri = params.text_document.uri
        snapshot = server.snapshot(uri)
        return [
            lsp.CodeLens(
                place(snapshot, lens.range), lsp.Command(lens.title, lens.command, arguments=[uri, *lens.arguments])
            )
            for lens in lenses.lenses(snapshot, find_spec(VIEW) is not None)
        ]


def _symbol(snapshot: Snapshot, symbol: symbols.OutlineSymbol) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        symbol.name,
        lsp.SymbolKind(symbol.kind),
        place(snapshot, symbol.range),
        place(snapshot, symbol.name_range),
        detail=symbol.detail,
        children=[_symbol(snapshot, child) for child in symbol.children],
    )


def _edits(server: StrataServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)  # type: ignore[untyped-decorator]
    async def on_prepare(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        snapshot, offset = server.offset(params)
        try:
            return place(snapshot, navigation.rename_range(snapshot, offset))
        except InputError:
            return None

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))  # type: ignore[untyped-decorator]
    async def on_rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        snapshot, offset = server.offset(params)
        try:
            edits = navigation.renamed(snapshot, offset, params.new_name)
        except InputError as error:
            server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, str(error)))
            return None
        return lsp.WorkspaceEdit({params.text_document.uri: [_edit(snapshot, *edit) for edit in edits]})

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)  # type: ignore[untyped-decorator]
    async def on_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        snapshot, lines = server.snapshot(uri), server.snapshot(uri).lines
        start = lines.offset(params.range.start.line, params.range.start.character)
        end = lines.offset(params.range.end.line, params.range.end.character)
        fixes = lenses.expectations(snapshot, server.findings(uri), TextRange(start, end))
        return [
            lsp.CodeAction(
                fix.title,
                kind=lsp.CodeActionKind.QuickFix,
                edit=lsp.WorkspaceEdit({uri: [_edit(snapshot, TextRange(fix.offset, fix.offset), fix.text)]}),
            )
            for fix in fixes
        ]


def _edit(snapshot: Snapshot, part: TextRange, text: str) -> lsp.TextEdit:
    return lsp.TextEdit(place(snapshot, part), text)
