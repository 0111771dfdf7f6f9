// The client of `strata lsp`: it starts the server, and shows the IR after a pass beside the program.
"use strict";

const { execFile } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

const SCHEME = "strata-ir";
let client;

/** The server's command by the settings. */
function server() {
  const settings = vscode.workspace.getConfiguration("strata");
  const [command, ...words] = settings.get("command");
  const args = [...words, "lsp", "--limit", String(settings.get("limit")), ...plugins()];
  return { command, args, transport: TransportKind.stdio };
}

async function start() {
  const selector = ["file", "untitled", SCHEME].map((scheme) => ({ scheme, language: "mlir" }));
  client = new LanguageClient("strata", "Strata", server(), { documentSelector: selector });
  try {
    await client.start();
  } catch (error) {
    const install = "pip install 'strata-compiler[lsp]', and the setting strata.command if it is not on the PATH";
    vscode.window.showErrorMessage(`The language server of Strata does not start: ${error}. It needs ${install}.`);
  }
}

/** The text of a virtual document: the IR of piece N of a document after so many of its passes. */
const provider = {
  changed: new vscode.EventEmitter(),
  get onDidChange() {
    return this.changed.event;
  },
  async provideTextDocumentContent(uri) {
    const { source, piece, count } = JSON.parse(decodeURIComponent(uri.query));
    const answer = await client.sendRequest("strata/irAfter", { uri: source, piece, count });
    return answer.text ?? `// ${answer.error}\n`;
  },
};

/** Open the IR after a pass beside the program; it is computed anew if it is open already. */
async function irAfter(source, piece, count, title) {
  const name = path.basename(vscode.Uri.parse(source).path, ".mlir");
  const query = encodeURIComponent(JSON.stringify({ source, piece, count }));
  const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name} ${title}.mlir`, query });
  provider.changed.fire(uri);
  const shown = await vscode.workspace.openTextDocument(uri);
  const options = { viewColumn: vscode.ViewColumn.Beside, preview: true, preserveFocus: true };
  await vscode.window.showTextDocument(shown, options);
}

/** The options that load the plugins of the settings. */
function plugins() {
  const settings = vscode.workspace.getConfiguration("strata");
  return settings.get("plugins").flatMap((file) => ["--load", file]);
}

/** Show the page of `strata view` about a file beside it; one of a script that is refused is shown, too. */
function view(source) {
  const file = vscode.Uri.parse(source).fsPath;
  const page = path.join(os.tmpdir(), `strata-view-${process.pid}.html`);
  const [command, ...words] = vscode.workspace.getConfiguration("strata").get("command");
  fs.rmSync(page, { force: true });
  execFile(command, [...words, "view", file, "-o", page, ...plugins()], { cwd: path.dirname(file) }, (error, output, said) => {
    if (!fs.existsSync(page)) {
      vscode.window.showErrorMessage(said || String(error));
      return;
    }
    const options = { enableScripts: true, enableFindWidget: true };
    const panel = vscode.window.createWebviewPanel("strata", path.basename(file), vscode.ViewColumn.Beside, options);
    panel.webview.html = fs.readFileSync(page, "utf8");
  });
}

async function activate(context) {
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, provider),
    vscode.commands.registerCommand("strata.irAfter", irAfter),
    vscode.commands.registerCommand("strata.view", view),
    vscode.commands.registerCommand("strata.restart", async () => {
      await client?.stop();
      await start();
    }),
  );
  await start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
