import { useEffect } from "preact/hooks";
import { busy, stop } from "./talk";

/** Escape stops the answer, wherever the focus is; in a dialog it closes that instead. */
export function useEscape(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && busy.peek() && !document.querySelector("dialog[open]")) stop();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
