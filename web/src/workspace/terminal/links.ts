/** The longest address that is opened. */
const MAX_ADDRESS = 4096;

/** The address that a text of a terminal may lead to; `null` for all that is no http or https. */
export function safeAddress(text: string): string | null {
  if (text.length > MAX_ADDRESS) return null;
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

/** Opens a link of a terminal after a click with Ctrl, or Cmd: what a program prints must not lead anybody away by chance. */
export function openLink(event: MouseEvent, text: string): void {
  const address = safeAddress(text);
  if (address && (event.ctrlKey || event.metaKey)) window.open(address, "_blank", "noopener,noreferrer");
}
