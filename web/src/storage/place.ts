/**
 * Whose things this page keeps in the browser: nothing for the server's own page, `room.ID` for a guest of a room. A
 * friend's machine may be somebody else's server's, too, and rooms have nothing to do with each other.
 */
let place = "";

/** Keeps everything apart from here on. To be called before anything is read. */
export function keepIn(apart: string): void {
  place = apart;
}

/** The name under which a thing is kept. */
export function keptAs(name: string): string {
  return place ? `warren.${place}.${name}` : `warren.${name}`;
}
