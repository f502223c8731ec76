import { signal } from "@preact/signals";

/** What a browser offers where the page can be installed as an app. */
interface InstallPrompt extends Event {
  prompt(): Promise<unknown>;
}

const offer = signal<InstallPrompt | null>(null);

/** Whether the browser offers to install the page. */
export const isInstallable = () => offer.value !== null;

/** Keeps the browser's offer until somebody wants it, instead of showing it at once. */
export function followInstallOffer(): void {
  window.addEventListener("beforeinstallprompt", (event) => {
    event.preventDefault();
    offer.value = event as InstallPrompt;
  });
  window.addEventListener("appinstalled", () => (offer.value = null));
}

/** Asks the person whether to install the page. The browser takes each offer once. */
export async function install(): Promise<void> {
  const taken = offer.value;
  offer.value = null;
  await taken?.prompt();
}
