/** The tokens of rooms that were made in this tab, by the rooms' ids. The page keeps them nowhere else. */
const tokens = new Map<string, string>();

/** Keeps a host's token until the tab is closed or loaded again. */
export function keepHostToken(roomId: string, token: string): void {
  tokens.set(roomId, token);
}

/** The token that closes a room, if it was made here. */
export function hostTokenOf(roomId: string): string | null {
  return tokens.get(roomId) ?? null;
}
