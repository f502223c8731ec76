/** Characters that are not seen, or that turn the direction of what follows: what they do to a line is to be seen. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

/** A text with names in place of characters that would deceive whoever reads it. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => `⟨${nameOf(character)}⟩`);
}

function nameOf(character: string): string {
  return character === "\r" ? "CR" : `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
