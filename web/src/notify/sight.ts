import { route, routeOf } from "../route";

/** Whether somebody looks at the page now, as far as a browser can tell. */
export function isSeen(): boolean {
  return document.visibilityState === "visible" && document.hasFocus();
}

/** Whether somebody looks at what an address within the page shows. The list of sessions shows how each of them is. */
export function isLookedAt(href: string): boolean {
  if (!isSeen()) return false;
  const [shown, meant] = [route.value, routeOf(href)];
  if (shown.page !== meant.page) return false;
  if (shown.page !== "workspace" || meant.page !== "workspace") return true;
  return (shown.ids.length === 0 && !shown.tab) || meant.ids.some((id) => shown.ids.includes(id));
}
