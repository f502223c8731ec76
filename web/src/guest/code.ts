/**
 * The code of the room that the address invites to (`#room=CODE`), and `null` for every other address. It stays in the
 * address: it is sent to nobody, and a guest may reload and keep the page.
 */
export function roomCodeIn(hash: string): string | null {
  return /^#room=([A-Za-z0-9-]{4,64})$/.exec(hash)?.[1] ?? null;
}

/** The address at which a guest opens a room. */
export function guestAddress(base: string, code: string): string {
  return `${base}#room=${code}`;
}

const passwordName = (code: string) => `warren.password.${code.toLowerCase()}`;

/** The password that was right in this tab, so that a reload does not ask again. */
export function passwordOf(code: string): string | null {
  try {
    return sessionStorage.getItem(passwordName(code));
  } catch {
    return null; // A browser may forbid storage.
  }
}

/** Keeps a password until the tab is closed; `null` forgets it. */
export function keepPassword(code: string, password: string | null): void {
  try {
    if (password === null) sessionStorage.removeItem(passwordName(code));
    else sessionStorage.setItem(passwordName(code), password);
  } catch {
    // Then it is asked for again after a reload.
  }
}
