/** What the service worker keeps of one build of the page. */
export interface Shell {
  /** The name of the cache: of this page and this build only. */
  cache: string;
  /** What the page needs before it shows anything. */
  first: readonly string[];
  /** All of the page's own files whose names change with their content. */
  assets: readonly string[];
}

/** Every cache of a page has a name that begins so, and then the scope. Other programs of the same origin keep theirs. */
const CACHE = "warren-page:";

/** What a request is answered by: the page itself, one of its files, or the network alone. */
export type Kind = "page" | "asset" | "other";

/** The name of the cache of a build, below a scope. */
export function cacheName(scope: string, build: string): string {
  return `${CACHE}${scope}:${build}`;
}

/** The caches of earlier builds at the same scope. */
export function outdated(names: readonly string[], scope: string, current: string): string[] {
  return names.filter((name) => name.startsWith(`${CACHE}${scope}:`) && name !== current);
}

/** What a request is. Nothing of the API is ever the page or an asset. */
export function kindOf(request: { method: string; mode: string; url: string }, scope: string, { assets }: Pick<Shell, "assets">): Kind {
  if (request.method !== "GET") return "other";
  const url = new URL(request.url);
  const place = url.origin + url.pathname;
  if (request.mode === "navigate") return place === scope ? "page" : "other";
  const isOwn = place.startsWith(scope) && !url.search && assets.includes(place.slice(scope.length));
  return isOwn ? "asset" : "other";
}

/** Whether an answer is the page of this build, and may be kept: one that names all files that it needs. */
export function isPageOf(text: string, { first }: Pick<Shell, "first">): boolean {
  return first.every((file) => text.includes(file));
}

/** Whether an answer is that of a proxy which does not reach the server. */
export function isOfProxy({ status }: { status: number }): boolean {
  return status >= 502 && status <= 504;
}
