import { openSignIn } from "../frame/sign_in_dialog";
import { access } from "../live/state";

/** A page about the workspace for somebody who may not use it. `of`: what signing in leads to. */
export function NoAccess({ title, why, of }: { title: string; why: string; of: string }) {
  const open = access.value?.by === "open";
  return (
    <div class="page">
      <h1>{title}</h1>
      <div class="card empty">
        <p>{open ? why : "Your key is not for the workspace. It needs a scope such as workspace:write."}</p>
        {open && <p class="workspace-sign-in"><button type="button" class="button primary" onClick={openSignIn}>Sign in to the {of}</button></p>}
      </div>
    </div>
  );
}

/** The same page when the server let nobody in, and why. */
export function Refused({ title, why, onRetry }: { title: string; why: string; onRetry: () => void }) {
  return (
    <div class="page">
      <h1>{title}</h1>
      <div class="card empty" role="alert">
        <p>{why}</p>
        <p class="workspace-sign-in"><button type="button" class="button" onClick={onRetry}>Try again</button></p>
      </div>
    </div>
  );
}
