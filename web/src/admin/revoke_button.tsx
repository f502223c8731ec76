import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";

interface RevokeProps {
  /** Whose access ends. */
  what: string;
  onRevoke: () => Promise<void>;
  /** What it means. */
  children: ComponentChildren;
}

/** A button that ends somebody's access, once it was said what that means. */
export function RevokeButton({ what, onRevoke, children }: RevokeProps) {
  const [asking, setAsking] = useState(false);
  const revoke = () => {
    setAsking(false);
    void onRevoke();
  };
  return (
    <>
      <button type="button" class="button small" aria-label={`Revoke ${what}`} onClick={() => setAsking(true)}>Revoke</button>
      <Dialog open={asking} onClose={() => setAsking(false)} label={`Revoke ${what}`} title={`Revoke ${what}?`}>
        <p class="wrapping">{children}</p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={() => setAsking(false)}>Keep it</button>
          <button type="button" class="button primary" onClick={revoke}>Revoke</button>
        </div>
      </Dialog>
    </>
  );
}
