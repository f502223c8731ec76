import { useState } from "preact/hooks";
import { Icon } from "./icon";

/** Copies a text. Without a secure context browsers have no clipboard; then the old way is taken. */
export async function copyText(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // It was forbidden; the old way may still be allowed.
  }
  return copyBySelection(text);
}

function copyBySelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  field.readOnly = true;
  const focused = document.activeElement as HTMLElement | null;
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return copied;
}

/** A button that copies a text, and says for a moment that it did. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  const copy = async () => {
    setState((await copyText(text)) ? "copied" : "failed");
    setTimeout(() => setState("idle"), 1500);
  };
  const label = { idle: `Copy ${what}`, copied: "Copied", failed: "Could not copy" }[state];
  return (
    <button type="button" class="icon-button" aria-label={label} title={label} onClick={copy}>
      <Icon name={state === "copied" ? "check" : "copy"} />
    </button>
  );
}
