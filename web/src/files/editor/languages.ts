import { StreamLanguage, type LanguageSupport, type StreamParser } from "@codemirror/language";
import type { Extension } from "@codemirror/state";

/** The language of a file by its whole name, in lower case, or by its ending. */
const BY_NAME: Record<string, string> = {
  dockerfile: "dockerfile", containerfile: "dockerfile", makefile: "shell", "cmakelists.txt": "cmake", gemfile: "ruby", rakefile: "ruby",
  ".bashrc": "shell", ".profile": "shell", ".zshrc": "shell", "nginx.conf": "nginx", "cargo.lock": "toml", ".gitconfig": "ini", ".editorconfig": "ini",
};

const BY_ENDING: Record<string, string> = {
  js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "jsx", ts: "typescript", mts: "typescript", cts: "typescript", tsx: "tsx",
  py: "python", pyi: "python", rs: "rust", html: "html", htm: "html", svg: "xml", xml: "xml", css: "css", scss: "css", less: "css",
  json: "json", jsonc: "json", webmanifest: "json", md: "markdown", markdown: "markdown", yaml: "yaml", yml: "yaml",
  sh: "shell", bash: "shell", zsh: "shell", toml: "toml", go: "go", c: "c", h: "c", cc: "cpp", cpp: "cpp", cxx: "cpp", hpp: "cpp",
  java: "java", kt: "kotlin", kts: "kotlin", cs: "csharp", scala: "scala", dart: "dart", rb: "ruby", lua: "lua", sql: "sql", diff: "diff", patch: "diff",
  ini: "ini", conf: "ini", cfg: "ini", properties: "ini", env: "ini", service: "ini", pl: "perl", swift: "swift", hs: "haskell", r: "r", ps1: "powershell", proto: "protobuf", cmake: "cmake",
};

type Load = () => Promise<Extension>;

const legacy = (load: () => Promise<StreamParser<unknown>>): Load => async () => StreamLanguage.define(await load());
const script = (config: { jsx?: boolean; typescript?: boolean }): Load => () => import("@codemirror/lang-javascript").then(({ javascript }) => javascript(config));
const clike = (name: "c" | "cpp" | "java" | "kotlin" | "csharp" | "scala" | "dart"): Load => legacy(() => import("@codemirror/legacy-modes/mode/clike").then((modes) => modes[name]));
const only = (load: Promise<LanguageSupport>): Promise<Extension> => load;

/** Each language is loaded with the first file of it. */
const LOADS: Record<string, Load> = {
  javascript: script({}),
  jsx: script({ jsx: true }),
  typescript: script({ typescript: true }),
  tsx: script({ jsx: true, typescript: true }),
  python: () => only(import("@codemirror/lang-python").then(({ python }) => python())),
  rust: () => only(import("@codemirror/lang-rust").then(({ rust }) => rust())),
  html: () => only(import("@codemirror/lang-html").then(({ html }) => html())),
  css: () => only(import("@codemirror/lang-css").then(({ css }) => css())),
  json: () => only(import("@codemirror/lang-json").then(({ json }) => json())),
  markdown: () => only(import("@codemirror/lang-markdown").then(({ markdown }) => markdown())),
  yaml: () => only(import("@codemirror/lang-yaml").then(({ yaml }) => yaml())),
  c: clike("c"), cpp: clike("cpp"), java: clike("java"), kotlin: clike("kotlin"), csharp: clike("csharp"), scala: clike("scala"), dart: clike("dart"),
  xml: legacy(() => import("@codemirror/legacy-modes/mode/xml").then(({ xml }) => xml)),
  shell: legacy(() => import("@codemirror/legacy-modes/mode/shell").then(({ shell }) => shell)),
  toml: legacy(() => import("@codemirror/legacy-modes/mode/toml").then(({ toml }) => toml)),
  go: legacy(() => import("@codemirror/legacy-modes/mode/go").then(({ go }) => go)),
  ruby: legacy(() => import("@codemirror/legacy-modes/mode/ruby").then(({ ruby }) => ruby)),
  lua: legacy(() => import("@codemirror/legacy-modes/mode/lua").then(({ lua }) => lua)),
  sql: legacy(() => import("@codemirror/legacy-modes/mode/sql").then(({ standardSQL }) => standardSQL)),
  dockerfile: legacy(() => import("@codemirror/legacy-modes/mode/dockerfile").then(({ dockerFile }) => dockerFile)),
  nginx: legacy(() => import("@codemirror/legacy-modes/mode/nginx").then(({ nginx }) => nginx)),
  diff: legacy(() => import("@codemirror/legacy-modes/mode/diff").then(({ diff }) => diff)),
  ini: legacy(() => import("@codemirror/legacy-modes/mode/properties").then(({ properties }) => properties)),
  perl: legacy(() => import("@codemirror/legacy-modes/mode/perl").then(({ perl }) => perl)),
  swift: legacy(() => import("@codemirror/legacy-modes/mode/swift").then(({ swift }) => swift)),
  haskell: legacy(() => import("@codemirror/legacy-modes/mode/haskell").then(({ haskell }) => haskell)),
  r: legacy(() => import("@codemirror/legacy-modes/mode/r").then(({ r }) => r)),
  powershell: legacy(() => import("@codemirror/legacy-modes/mode/powershell").then(({ powerShell }) => powerShell)),
  protobuf: legacy(() => import("@codemirror/legacy-modes/mode/protobuf").then(({ protobuf }) => protobuf)),
  cmake: legacy(() => import("@codemirror/legacy-modes/mode/cmake").then(({ cmake }) => cmake)),
};

/** The language that a file's name means; `null` for plain text. */
export function languageOf(name: string): string | null {
  const lower = name.toLowerCase();
  const byName = own(BY_NAME, lower) ?? (/^(dockerfile|containerfile)\b/.test(lower) ? "dockerfile" : undefined);
  return byName ?? own(BY_ENDING, lower.slice(lower.lastIndexOf(".") + 1)) ?? null;
}

function own(table: Record<string, string>, key: string): string | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** Loads what colours a file. Without it, or if it cannot be loaded, text is plain. */
export async function loadLanguage(name: string): Promise<Extension> {
  const language = languageOf(name);
  try {
    return language ? await LOADS[language]!() : [];
  } catch {
    return [];
  }
}
