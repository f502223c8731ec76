import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

interface LaterProps<P> {
  /** Loads the part; the same function each time. */
  of: () => Promise<ComponentType<P>>;
  props: P;
}

/** A part of the page whose code is loaded once it is needed. */
export function Later<P extends object>({ of: load, props }: LaterProps<P>) {
  const [Part, setPart] = useState<ComponentType<P> | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let wanted = true;
    load().then((part) => wanted && setPart(() => part), () => wanted && setFailed(true));
    return () => void (wanted = false);
  }, [load]);
  if (Part) return <Part {...props} />;
  if (!failed) return <p class="entering" role="status">Loading…</p>;
  return (
    <div class="page">
      <p class="card empty" role="alert">This part of the page could not be loaded; perhaps the server has a new version. <button type="button" class="button small" onClick={() => location.reload()}>Reload the page</button></p>
    </div>
  );
}
