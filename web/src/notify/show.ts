import { registration } from "../offline/register";
import { toast } from "../parts/toast";
import { wanted } from "./choices";
import type { Notice } from "./notice";
import { isSeen } from "./sight";
import { chime } from "./sound";
import { unseen } from "./unseen";

/** So many notices wait in the page until it is seen again. */
const MAX_WAITING = 4;

let waiting: Notice[] = [];

/** Gives a notice: in the page while it is seen, else by the system where that is allowed, else once it is seen again. */
export async function show(notice: Notice): Promise<void> {
  if (wanted.value.has("sound")) chime();
  if (isSeen()) return inPage(notice);
  unseen.value += 1;
  if (await bySystem(notice)) return;
  waiting = [...waiting, notice].slice(-MAX_WAITING);
}

/** The page is seen again: nothing is unseen any more. */
export function seen(): void {
  if (!isSeen()) return;
  unseen.value = 0;
  waiting.splice(0).forEach(inPage);
}

function inPage({ title, href }: Notice): void {
  toast(title, "note", href);
}

/** Whether the system shows notices of this page. */
export function isAllowed(): boolean {
  return typeof Notification !== "undefined" && Notification.permission === "granted";
}

/** Phones show notices of a service worker only. */
async function bySystem(notice: Notice): Promise<boolean> {
  if (!isAllowed()) return false;
  const { title, body, href, key } = notice;
  const options = { body, tag: key, icon: new URL("icon-192.png", document.baseURI).href, data: { href } };
  try {
    const worker = await registration();
    if (worker) await worker.showNotification(title, options);
    else new Notification(title, options).addEventListener("click", () => lead(href));
    return true;
  } catch {
    return false;
  }
}

function lead(href: string): void {
  window.focus();
  location.hash = href;
}
