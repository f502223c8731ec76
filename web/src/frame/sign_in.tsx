import { useState } from "preact/hooks";
import { hasSessions, signInWithCode, signInWithToken } from "../api/access";
import { asApiError, type ApiError } from "../api/errors";
import { begin, entered } from "../begin";
import { signInError, trouble } from "../live/state";
import { Icon } from "../parts/icon";
import { Brand } from "./brand";

/** The page for those who are not in yet. */
export function SignInPage() {
  const away = trouble.value;
  return (
    <main class="sign-in-page">
      <div class="card sign-in">
        <Brand />
        {away ? <Away error={away} /> : <SignInForm error={signInError.value} />}
      </div>
      <p class="muted small">The token goes to this server only. Nothing is asked from anywhere else.</p>
    </main>
  );
}

function Away({ error }: { error: ApiError }) {
  return (
    <div role="status">
      <h1>The server is away</h1>
      <p>{error.message} The page looks again every two seconds.</p>
      <button type="button" class="button" onClick={() => void begin()}>Look now</button>
    </div>
  );
}

/** The form itself; `onDone` is called when somebody is in. */
export function SignInForm({ error, onDone }: { error: ApiError | null; onDone?: () => void }) {
  const [text, setText] = useState("");
  const [stay, setStay] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(error);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      entered(await signIn(text, stay));
      onDone?.();
    } catch (thrown) {
      setFailure(asApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
      <h1>Sign in</h1>
      <label class="field">
        <span>Token, or login address</span>
        <input
          type="password" name="token" autocomplete="current-password" spellcheck={false} autoFocus required
          value={text} onInput={(event) => setText(event.currentTarget.value)} aria-describedby="sign-in-help"
        />
      </label>
      {hasSessions() ? <p class="muted small">This browser stays signed in for 30 days, or until you sign out.</p> : <Stay stay={stay} onChange={setStay} />}
      {failure && <Failure error={failure} />}
      <button type="submit" class="button primary wide" disabled={busy || !text.trim()}>{busy ? "Signing in…" : "Sign in"}</button>
      <Help />
    </form>
  );
}

function Stay({ stay, onChange }: { stay: boolean; onChange: (stay: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={stay} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>Stay signed in in this browser</span>
    </label>
  );
}

function Failure({ error }: { error: ApiError }) {
  return (
    <p class="notice error" role="alert">
      <Icon name="warn" />
      <span>{error.message}{error.retryAfter ? ` Try again in ${error.retryAfter} s.` : ""}</span>
    </p>
  );
}

function Help() {
  return (
    <details class="help" id="sign-in-help">
      <summary>Where do I get one?</summary>
      <ul>
        <li>On the server's machine, <code>warren web</code> prints an address with a code that signs in once.</li>
        <li>The administrator's token is in <code>admin.token</code> in the server's data directory.</li>
        <li>Or make a key: <code>warren key create --name me --scope inference,admin</code></li>
      </ul>
    </details>
  );
}

/** Who pastes the whole login address means the code in it. */
function signIn(text: string, stay: boolean) {
  const code = /#login=([\w-]+)/.exec(text)?.[1];
  return code ? signInWithCode(code) : signInWithToken(text, stay);
}
