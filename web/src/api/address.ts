/** The address of a path of the API, below wherever this page is served (`/`, `/warren/`). */
export function address(path: string): string {
  return new URL(path, document.baseURI.split("#")[0]).href;
}

/** The path of the page's folder as the browser sees it; it begins and ends with `/`. */
export function basePath(): string {
  return new URL(address(".")).pathname;
}

/** The server's address as commands take it, without a slash at its end. */
export function serverAddress(): string {
  return address(".").replace(/\/$/, "");
}

/** Whether only this machine reaches the page at the address that it was opened with. */
export function isOnlyHere(): boolean {
  return /^(localhost|.*\.localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);
}

/** The base URL that clients of OpenAI's API take for this server, for the examples. */
export function openaiBase(): string {
  return address("v1");
}

/** One part of a path, with everything escaped that would end it. */
export function part(text: string): string {
  return encodeURIComponent(text);
}
