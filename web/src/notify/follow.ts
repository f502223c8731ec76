import { effect } from "@preact/signals";
import { staysAwake } from "../live/awake";
import { unseen } from "./unseen";
import { wanted, wantsAny } from "./choices";

/** Gives notices while any are wanted, until the returned function is called. Their code is loaded with the first wish. */
export function followNotices(): () => void {
  let over = false;
  let stop: (() => void) | null = null;
  const off = effect(() => {
    staysAwake.value = wantsAny();
    if (!wanted.value.size || stop) return;
    import("./watch").then(({ watch }) => !over && (stop ??= watch()), () => undefined);
  });
  return () => {
    over = true;
    off();
    stop?.();
    unseen.value = 0;
    staysAwake.value = false;
  };
}
