import { part } from "./address";
import { call, callJson } from "./call";
import type { LoginCode, PageSessionJson } from "./generated";
import type { Lenient } from "./types";

/** A session of the page, as an administrator sees it. */
export type PageSession = Lenient<PageSessionJson, "id" | "holder" | "created_at" | "expires_at" | "last_used_at">;

/** Makes a code for one who may do as much as this page. Needs a session or a token. */
export const newLoginCode = () => callJson<LoginCode>("web/code", { method: "POST" });

/** All sessions of the page. Needs the scope `admin`. */
export async function pageSessions(signal?: AbortSignal): Promise<PageSession[]> {
  return (await callJson<{ sessions: PageSession[] }>("admin/web/sessions", { signal })).sessions;
}

/** Ends a session of the page, wherever it is open. */
export const endPageSession = (id: string) => call(`admin/web/sessions/${part(id)}`, { method: "DELETE" });
