import { basePath } from "./address";
import { call, callJson, holdToken } from "./call";
import { ApiError, asApiError } from "./errors";
import type { Session } from "./types";

/** Where a token is kept between visits, if the person wants that. */
const STORED_TOKEN = "warren.token";

/** What the page may do here. */
export interface Access {
  /** `cookie`: a session of the page's own; `token`: one in memory; `open`: nothing is needed for models. */
  by: "cookie" | "token" | "open";
  /** Whose session it is, where the server says so. */
  name: string | null;
  /** May ask models. */
  models: boolean;
  /** May use `/admin`. */
  admin: boolean;
  /** May read `/metrics`. */
  metrics: boolean;
  /** May use the workspace, as far as that is known: a token's scopes are not. */
  workspace: "work" | "look" | "perhaps" | "no";
}

/** What came of trying to get in. */
export type Entry = { access: Access } | { signIn: true; error: ApiError | null };

let sessions = false;

/** Whether the server has sessions, as far as it was asked; a token need not be kept where it has. */
export const hasSessions = () => sessions;

/** Gets in with what there is: a session, a stored token, or nothing where the server wants nothing. */
export async function enter(): Promise<Entry> {
  try {
    const session = await sessionHere();
    if (session) return { access: await accessBy("cookie", session) };
    const stored = storedToken();
    if (stored) return await enterStored(stored);
    const access = await accessBy("open", null);
    return access.models || access.admin ? { access } : { signIn: true, error: null };
  } catch (thrown) {
    return { signIn: true, error: asApiError(thrown) };
  }
}

async function enterStored(token: string): Promise<Entry> {
  try {
    return { access: await signInWithToken(token, true) };
  } catch (thrown) {
    const error = asApiError(thrown);
    if (error.refused) forgetToken();
    return { signIn: true, error };
  }
}

/** Signs in with a token: as a session where the server has them, else by holding it in memory. */
export async function signInWithToken(token: string, stay: boolean): Promise<Access> {
  const clean = token.trim();
  if (!/^[\x21-\x7e]+$/.test(clean)) throw new ApiError("A token has no spaces and no special characters.", 400);
  const session = await newSession({ token: clean });
  if (session) return accessBy("cookie", session);
  holdToken(clean);
  const access = await accessBy("token", null);
  if (!access.models && !access.admin && !access.metrics) {
    holdToken(null);
    throw new ApiError("The server does not know this token.", 401, "invalid_api_key");
  }
  if (stay) storeToken(clean);
  return access;
}

/** Signs in with the one-time code of a login address. */
export async function signInWithCode(code: string): Promise<Access> {
  const session = await newSession({ code });
  if (!session) throw new ApiError("This server takes no login codes. Sign in with a token.", 404);
  return accessBy("cookie", session);
}

/** Ends the session and forgets the token. */
export async function signOut(): Promise<void> {
  holdToken(null);
  forgetToken();
  await call("web/session", { method: "DELETE" }).catch((thrown) => {
    const error = asApiError(thrown);
    if (error.status !== 404 && error.status !== 401) throw error;
  });
}

/** The session of the page's cookie; `null` when there is none, or the server has no sessions. */
async function sessionHere(): Promise<Session | null> {
  try {
    const session = await callJson<Session>("web/session");
    sessions = true;
    return session;
  } catch (thrown) {
    sessions = asApiError(thrown).refused;
    return nullFor(401, 404)(thrown);
  }
}

async function newSession(by: { token: string } | { code: string }): Promise<Session | null> {
  return callJson<Session>("web/session", { method: "POST", body: { ...by, path: basePath() }, token: null }).catch(nullFor(404));
}

function nullFor(...statuses: number[]) {
  return (thrown: unknown): null => {
    if (thrown instanceof ApiError && statuses.includes(thrown.status)) return null;
    throw thrown;
  };
}

/** Asks what is allowed, by trying each kind of path once. */
async function accessBy(by: Access["by"], session: Session | null): Promise<Access> {
  const [models, admin, metrics] = await Promise.all([may("v1/models"), may("admin/stats"), may("metrics")]);
  return { by, name: session?.name ?? null, models, admin, metrics, workspace: workspaceBy(by, session) };
}

/** Nobody gets into the workspace without a key or token, not even where models are free. */
function workspaceBy(by: Access["by"], session: Session | null): Access["workspace"] {
  if (by !== "cookie") return by === "token" ? "perhaps" : "no";
  const scopes = session?.scopes ?? [];
  if (scopes.some((scope) => scope === "workspace:write" || scope === "workspace:admin")) return "work";
  return scopes.includes("workspace:read") ? "look" : "no";
}

async function may(path: string): Promise<boolean> {
  try {
    const answer = await call(path);
    await answer.body?.cancel();
    return true;
  } catch (thrown) {
    const error = asApiError(thrown);
    if (error.status >= 400 && error.status < 500) return false;
    throw error;
  }
}

function storedToken(): string | null {
  try {
    return localStorage.getItem(STORED_TOKEN);
  } catch {
    return null; // A browser may forbid storage.
  }
}

function storeToken(token: string): void {
  try {
    localStorage.setItem(STORED_TOKEN, token);
  } catch {
    // Then it is held in memory only.
  }
}

function forgetToken(): void {
  try {
    localStorage.removeItem(STORED_TOKEN);
  } catch {
    // Nothing was stored.
  }
}
