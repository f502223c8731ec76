import { part } from "./address";
import { call, callJson } from "./call";

/** A code that signs in once: the answer of `POST web/code`. */
export interface LoginCode {
  code: string;
  /** RFC 3339. */
  expires: string;
}

/** A session of the page, as an administrator sees it. */
export interface PageSession {
  id: string;
  /** Whose it is: a key's id, or the owner. */
  holder: string;
  /** The holder's name, where it has one. */
  name?: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  /** What the browser calls itself, cut. */
  browser?: string;
  /** Whether it is the one of this page. */
  current?: boolean;
}

/** Makes a code for one who may do as much as this page. Needs a session or a token. */
export const newLoginCode = () => callJson<LoginCode>("web/code", { method: "POST" });

/** All sessions of the page. Needs the scope `admin`. */
export async function pageSessions(signal?: AbortSignal): Promise<PageSession[]> {
  return (await callJson<{ sessions: PageSession[] }>("admin/web/sessions", { signal })).sessions;
}

/** Ends a session of the page, wherever it is open. */
export const endPageSession = (id: string) => call(`admin/web/sessions/${part(id)}`, { method: "DELETE" });
