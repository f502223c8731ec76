import { signal } from "@preact/signals";
import { Dialog } from "../parts/dialog";
import { SignInForm } from "./sign_in";

const shown = signal(false);

/** Asks for a token, for more than an open server gives without one. */
export function openSignIn(): void {
  shown.value = true;
}

export function SignInDialog() {
  const close = () => (shown.value = false);
  return (
    <Dialog open={shown.value} onClose={close} label="Sign in" class="sign-in">
      <SignInForm error={null} onDone={close} />
    </Dialog>
  );
}
