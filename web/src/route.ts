import { signal } from "@preact/signals";

/** Which page is shown. */
export type Route = { page: "overview" } | { page: "play"; id: string | null } | { page: "rooms" } | { page: "workspace"; ids: string[] } | { page: "admin" };

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
  const other = /^#\/(rooms|admin)$/.exec(hash)?.[1] as "rooms" | "admin" | undefined;
  return { page: other ?? "overview" };
}

/** The address of a route, for links. */
export function hrefOf(to: Route): string {
  if (to.page === "play") return to.id ? `#/play/${to.id}` : "#/play";
  if (to.page === "workspace") return ["#/workspace", ...to.ids].join("/");
  return to.page === "overview" ? "#/" : `#/${to.page}`;
}

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
