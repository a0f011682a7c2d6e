// The two tools of the agent: they list and read files of one folder.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const files = {
  "agenda.md": "# Agenda\n\n- The garden needs water.\n- Who brings the ladder?\n",
  "release.md": "# Release\n\nThe new version is almost done.\nWe ship on 2026-12-09.\nAnna writes the notes.\n",
  "server.txt": "The server stands in the cellar.\nThe server listens on 8642.\nDo not forget the backup.\n",
};

export function makeFolder(folder) {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
}

const pathOf = (description) => ({
  type: "object",
  properties: { path: { type: "string", description } },
  required: ["path"],
});
export const tools = [
  ["list_files", "List the files of a folder", "The folder"],
  ["read_file", "Read a file", "Path of the file"],
].map(([name, description, what]) => ({
  type: "function",
  function: { name, description, parameters: pathOf(what) },
}));

// What a call gives, as text; errors are text, too: the model is to read them.
export function callTool(folder, name, args) {
  try {
    const { path: asked } = JSON.parse(args);
    const at = path.resolve(folder, asked);
    if (at !== folder && !at.startsWith(folder + path.sep)) return `Error: not in the folder: ${asked}`;
    if (name === "list_files") return readdirSync(at).sort().join("\n");
    if (name === "read_file") return readFileSync(at, "utf8");
    return `Error: no such tool: ${name}`;
  } catch (error) {
    return `Error: ${error.message}`;
  }
}
