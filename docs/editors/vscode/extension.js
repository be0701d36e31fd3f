// Starts the language server for queries; without `npm install` in this folder there are colours only.

const vscode = require("vscode");
let client;

async function activate() {
  let library;
  try { library = require("vscode-languageclient/node"); } catch { return; }
  const [command, ...args] = vscode.workspace.getConfiguration("spaseq").get("command");
  const selector = [{ language: "ceql" }, { language: "spaseq" }];
  client = new library.LanguageClient("spaseq", "CEQL and SPAseq", { command, args }, { documentSelector: selector });
  try { await client.start(); } catch (error) {
    vscode.window.showWarningMessage(`${command} ${args.join(" ")} does not start (${error.message}): pip install 'spaseq[lsp]', or name it in the setting spaseq.command`);
  }
}

async function deactivate() { if (client) await client.stop(); }

module.exports = { activate, deactivate };
