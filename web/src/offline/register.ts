import { address } from "../api/address";

const isPossible = () => window.isSecureContext && "serviceWorker" in navigator;

/**
 * Has the browser keep what the page needs to open while the server is away. Browsers allow that in a secure context
 * only; elsewhere, and where it fails, the page is as it was.
 */
export function keepOffline(): void {
  if (!isPossible()) return;
  navigator.serviceWorker.addEventListener("message", ({ data }) => lead(data));
  navigator.serviceWorker.register(address("sw.js"), { scope: address(".") }).catch(() => undefined);
}

/** Somebody chose a notification, which is about an address within the page. */
function lead(data: unknown): void {
  const { type, href } = (data ?? {}) as Record<string, unknown>;
  if (type === "go" && typeof href === "string" && href.startsWith("#/")) location.hash = href;
}

/** The registration, where there is one that works. */
export async function registration(): Promise<ServiceWorkerRegistration | null> {
  if (!isPossible()) return null;
  const found = await navigator.serviceWorker.getRegistration(address(".")).catch(() => undefined);
  return found?.active ? found : null;
}
