import { batch } from "@preact/signals";
import { enter, signInWithCode, signOut, type Access } from "./api/access";
import { asApiError, type ApiError } from "./api/errors";
import { takeLoginCode } from "./api/login";
import { access, entering, forgetServer, signInError, trouble } from "./live/state";
import { follow, unfollow } from "./live/watch";
import { toast } from "./parts/toast";

/** How long the page waits before it tries again to reach a server that is away, in milliseconds. */
const RETRY_MS = 2000;

/**
 * Gets in with what there is: a login code in the address, a session, a stored token, or nothing. Where that is not
 * enough, the sign-in page shows `before`, what went wrong earlier.
 */
export async function begin(before: ApiError | null = null): Promise<void> {
  const code = takeLoginCode();
  if (code) return beginWithCode(code);
  const entry = await enter();
  if ("access" in entry) return entered(entry.access);
  batch(() => {
    signInError.value = before ?? entry.error;
    trouble.value = isAway(entry.error) ? entry.error : null;
    entering.value = false;
  });
  if (isAway(entry.error)) setTimeout(() => void begin(before), RETRY_MS);
}

/** Whether nobody answers, or a proxy does in place of the server. */
function isAway(error: ApiError | null): boolean {
  return error !== null && (error.away || error.status >= 502);
}

async function beginWithCode(code: string): Promise<void> {
  try {
    entered(await signInWithCode(code));
  } catch (thrown) {
    const error = asApiError(thrown);
    await begin(error);
    if (access.value) toast(`The login code was not accepted. ${error.message}`, "error");
  }
}

/** From here on the page is open. */
export function entered(by: Access): void {
  batch(() => {
    forgetServer();
    access.value = by;
    signInError.value = null;
    entering.value = false;
  });
  follow();
}

/** Ends the session, and shows what is left without one. */
export async function leave(): Promise<void> {
  unfollow();
  try {
    await signOut();
  } catch (thrown) {
    toast(`The session could not be ended: ${asApiError(thrown).message}`, "error");
  }
  batch(() => {
    forgetServer();
    access.value = null;
  });
  await begin();
}
