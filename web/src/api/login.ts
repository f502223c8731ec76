/** Takes the one-time code out of the address (`#login=CODE`), so that it stays in no history and no screenshot. */
export function takeLoginCode(): string | null {
  const found = /^#login=([\w-]{4,256})$/.exec(location.hash);
  if (!location.hash.startsWith("#login=")) return null;
  history.replaceState(null, "", location.pathname + location.search + "#/");
  return found?.[1] ?? null;
}
