import { keptAs } from "../storage/place";

/** The most paths of each kind that are remembered, and of how many projects. */
const MAX_PATHS = 300;
const MAX_PROJECTS = 50;

/** What of a project's page this browser remembers. */
export type Kept = "expanded" | "open";

/** The paths that are remembered of a project, in their order. */
export function keptPaths(kept: Kept, project: string): string[] {
  const paths = all(kept)[project];
  return Array.isArray(paths) ? paths.filter((path) => typeof path === "string").slice(0, MAX_PATHS) : [];
}

/** Remembers paths of a project; of the projects that were used longest ago they are forgotten. */
export function keepPaths(kept: Kept, project: string, paths: Iterable<string>): void {
  const { [project]: _, ...others } = all(kept);
  const entries = [...Object.entries(others), [project, [...paths].slice(0, MAX_PATHS)]].slice(-MAX_PROJECTS);
  try {
    storeOf(kept).setItem(nameOf(kept), JSON.stringify(Object.fromEntries(entries)));
  } catch {
    // Storage is full or forbidden: it holds for this visit.
  }
}

function all(kept: Kept): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(storeOf(kept).getItem(nameOf(kept)) ?? "{}");
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Which files are open is each tab's own. */
const storeOf = (kept: Kept) => (kept === "open" ? sessionStorage : localStorage);

const nameOf = (kept: Kept) => keptAs(`files.${kept}`);
