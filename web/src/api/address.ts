/** The address of a path of the API, below wherever this page is served (`/`, `/warren/`). */
export function address(path: string): string {
  return new URL(path, document.baseURI.split("#")[0]).href;
}

/** The base URL that clients of OpenAI's API take for this server, for the examples. */
export function openaiBase(): string {
  return address("v1");
}

/** One part of a path, with everything escaped that would end it. */
export function part(text: string): string {
  return encodeURIComponent(text);
}
