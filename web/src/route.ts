import { signal } from "@preact/signals";

/** Which page is shown. */
export type Route =
  | { page: "overview" }
  | { page: "play"; id: string | null }
  | { page: "rooms" }
  | { page: "workspace"; ids: string[]; tab?: WorkspaceTab; team?: string }
  | { page: "files"; project: string | null; tab?: FilesTab }
  | { page: "mesh" }
  | { page: "admin"; tab?: AdminTab };

/** The parts of pages that have several; the first is shown where the address names none. */
export const WORKSPACE_TABS = ["sessions", "teams", "ports"] as const;
export const FILES_TABS = ["files", "changes"] as const;
export const ADMIN_TABS = ["access", "configuration", "audit", "health"] as const;
export type WorkspaceTab = (typeof WORKSPACE_TABS)[number];
export type FilesTab = (typeof FILES_TABS)[number];
export type AdminTab = (typeof ADMIN_TABS)[number];

/** The pages by their names. */
export type PageName = Route["page"];

/** The page that the address names. It stands behind `#`, so that the server may serve the page below any path. */
export const route = signal<Route>({ page: "overview" });

/** The route that the part of an address behind `#` names; the overview for one that names nothing. */
export function routeOf(hash: string): Route {
  const play = /^#\/play(?:\/([0-9a-f]{1,64}))?$/.exec(hash);
  if (play) return { page: "play", id: play[1] ?? null };
  const workspace = /^#\/workspace((?:\/[0-9a-f-]{36}){0,2})$/.exec(hash);
  if (workspace) return { page: "workspace", ids: workspace[1]!.split("/").filter(Boolean) };
  const team = /^#\/workspace\/teams\/([0-9a-f-]{36})$/.exec(hash);
  if (team) return { page: "workspace", ids: [], tab: "teams", team: team[1]! };
  const files = /^#\/files(?:\/([0-9a-f-]{36})(?:\/(\w+))?)?$/.exec(hash);
  if (files) return { page: "files", project: files[1] ?? null, ...tabOf(FILES_TABS, files[2]) };
  const [, page, tab] = /^#\/(\w+)(?:\/(\w+))?$/.exec(hash) ?? [];
  if (page === "workspace") return { page, ids: [], ...tabOf(WORKSPACE_TABS, tab) };
  if (page === "admin") return { page, ...tabOf(ADMIN_TABS, tab) };
  return page === "rooms" || page === "mesh" ? { page } : { page: "overview" };
}

function tabOf<T extends string>(tabs: readonly T[], name: string | undefined): { tab?: T } {
  const tab = tabs.find((each) => each === name);
  return tab ? { tab } : {};
}

/** The address of a route, for links. */
export function hrefOf(to: Route): string {
  if (to.page === "overview") return "#/";
  return ["#", to.page, ...partsOf(to)].join("/");
}

function partsOf(to: Route): string[] {
  if (to.page === "play") return to.id ? [to.id] : [];
  if (to.page === "workspace") return to.ids.length ? to.ids : [...optional(to.tab), ...optional(to.team)];
  if (to.page === "files") return to.project ? [to.project, ...optional(to.tab)] : [];
  return to.page === "admin" ? optional(to.tab) : [];
}

const optional = (part: string | undefined) => (part ? [part] : []);

export function go(to: Route): void {
  location.hash = hrefOf(to);
}

/** Shows what the address already is, without a step in the history. */
export function readAsRoute(to: Route): void {
  history.replaceState(null, "", hrefOf(to));
  route.value = to;
}

export function followAddress(): void {
  const read = () => (route.value = routeOf(location.hash));
  window.addEventListener("hashchange", read);
  read();
}
