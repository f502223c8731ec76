/** The longest name of a file, in bytes. */
const MAX_NAME_BYTES = 255;

/** Characters that would not be seen, or that turn the direction of what stands beside them. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The last part of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The folder that a path is in; empty for the project's own. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** The path of a name in a folder. */
export function joined(folder: string, name: string): string {
  return folder ? `${folder}/${name}` : name;
}

/** Whether a path is this folder, or within it. */
export function isWithin(path: string, folder: string): boolean {
  return folder === "" || path === folder || path.startsWith(`${folder}/`);
}

/** The path that another one has after its folder, or itself, was moved. */
export function movedPath(path: string, from: string, to: string): string {
  return isWithin(path, from) ? to + path.slice(from.length) : path;
}

/** A name as it is shown: what could not be seen in it is spelled out. */
export function shownName(name: string): string {
  return name.replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

/** Whether the server finds a path by what it told: it shows bytes that are no text as U+FFFD. */
export function canBeNamed(path: string): boolean {
  return !path.includes("\ufffd");
}

/** Why this is no name for a file; empty if it is one. */
export function problemOfName(name: string): string {
  if (!name) return "It needs a name.";
  if (name.includes("/")) return "A name has no slash in it.";
  if (name === "." || name === "..") return "This name means a folder already.";
  if (name.includes("\0")) return "A name has no NUL in it.";
  return new TextEncoder().encode(name).length > MAX_NAME_BYTES ? "The name is too long: 255 bytes at most." : "";
}

/** Why this is no path within a project; empty if it is one. */
export function problemOfPath(path: string): string {
  if (path.startsWith("/")) return "The path begins in the project's folder, without a slash.";
  return path.split("/").map(problemOfName).find(Boolean) ?? "";
}

/** A name like another one, for a second file: `a.txt`, `a (2).txt`. */
export function otherName(name: string, number: number): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)} (${number})${name.slice(dot)}` : `${name} (${number})`;
}

/** A name for the disk of whoever downloads it. */
export function savedName(name: string): string {
  return name.replace(UNSEEN, "_").slice(0, 200) || "file";
}

const IMAGES: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml" };

/** The type of a picture that browsers show; `null` for any other file. */
export function imageTypeOf(name: string): string | null {
  return IMAGES[/\.(\w+)$/.exec(name.toLowerCase())?.[1] ?? ""] ?? null;
}
