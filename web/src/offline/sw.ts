import { cacheName, isOfProxy, isPageOf, kindOf, outdated, type Shell } from "./shell";

/** The parts of a service worker's surroundings that are used here; the types of pages have none of them. */
interface Lasting extends Event {
  waitUntil(promise: Promise<unknown>): void;
}
interface FetchEvent extends Lasting {
  request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface NotificationEvent extends Lasting {
  notification: Notification;
}
interface WindowClient {
  url: string;
  focus(): Promise<WindowClient>;
  postMessage(message: unknown): void;
}
interface Surroundings {
  registration: { scope: string };
  clients: { matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<WindowClient[]>; openWindow(url: string): Promise<unknown> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: Lasting) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationEvent) => void): void;
}
const worker = globalThis as unknown as Surroundings;

/** The build writes these in. */
declare const __BUILD__: string;
declare const __FIRST__: string[];
declare const __ASSETS__: string[];

/** How long the server has to answer with the page, before the kept one is shown, in milliseconds. */
const DEADLINE_MS = 4000;

const SCOPE = worker.registration.scope;
const SHELL: Shell = { cache: cacheName(SCOPE, __BUILD__), first: __FIRST__, assets: __ASSETS__ };

worker.addEventListener("install", (event) => event.waitUntil(keep().then(() => worker.skipWaiting())));
worker.addEventListener("activate", (event) => event.waitUntil(clean()));
worker.addEventListener("notificationclick", (event) => event.waitUntil(open(event.notification)));
worker.addEventListener("fetch", (event) => {
  const kind = kindOf(event.request, SCOPE, SHELL);
  if (kind === "page") event.respondWith(page(event.request));
  if (kind === "asset") event.respondWith(asset(event.request));
});

/** Keeps what the page needs before it shows anything. It fails, to be tried again later, if the server has another build by now. */
async function keep(): Promise<void> {
  const cache = await caches.open(SHELL.cache);
  const answer = await fetch(SCOPE, { headers: { accept: "text/html" }, cache: "no-cache", redirect: "error" });
  if (!answer.ok || !isPageOf(await answer.clone().text(), SHELL)) throw new Error("The server has another build of the page.");
  await cache.addAll(SHELL.first.map((file) => new Request(SCOPE + file)));
  await cache.put(SCOPE, answer);
}

async function clean(): Promise<void> {
  const old = outdated(await caches.keys(), SCOPE, SHELL.cache);
  await Promise.all(old.map((name) => caches.delete(name)));
}

/** The page as the server has it now; the kept one while the server cannot be reached. */
async function page(request: Request): Promise<Response> {
  const answer = fetch(request);
  const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), DEADLINE_MS));
  const first = await Promise.race([answer.catch(() => null), late]);
  return first && !isOfProxy(first) ? first : ((await kept(SCOPE)) ?? answer);
}

/** A file of this build, which is the same for ever; it is kept once it was asked for. */
async function asset(request: Request): Promise<Response> {
  const known = await kept(request.url);
  if (known) return known;
  const answer = await fetch(request);
  if (answer.ok) {
    const cache = await caches.open(SHELL.cache);
    await cache.put(request.url, answer.clone());
  }
  return answer;
}

async function kept(url: string): Promise<Response | undefined> {
  const cache = await caches.open(SHELL.cache);
  return cache.match(url, { ignoreVary: true });
}

/** Leads to what a notification is about: in a window that there is, else in a new one. */
async function open(notification: Notification): Promise<void> {
  notification.close();
  const { data } = notification as { data?: { href?: unknown } | null };
  const href = typeof data?.href === "string" && data.href.startsWith("#/") ? data.href : "#/";
  const all = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const mine = all.find(({ url }) => url.split("#")[0] === SCOPE);
  if (!mine) return void (await worker.clients.openWindow(SCOPE + href));
  mine.postMessage({ type: "go", href });
  await mine.focus();
}
