import { signal } from "@preact/signals";
import { Icon } from "./icon";

/** A short message at the edge of the page. */
interface Toast {
  id: number;
  text: string;
  kind: "note" | "error";
  /** The address within the page that it is about. */
  href?: string;
}

/** More than this are never shown at once. */
const MAX_TOASTS = 4;

const toasts = signal<Toast[]>([]);
let nextId = 1;

/** Shows a message for some seconds; errors stay longer. */
export function toast(text: string, kind: Toast["kind"] = "note", href?: string): void {
  const id = nextId;
  nextId += 1;
  toasts.value = [...toasts.value.slice(-(MAX_TOASTS - 1)), { id, text, kind, href }];
  setTimeout(() => dismiss(id), kind === "error" ? 12_000 : 5000);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** Where the messages appear. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind, href }) => (
        <div key={id} class={`toast ${kind}`}>
          {href ? <a href={href} onClick={() => dismiss(id)}>{text}</a> : <span>{text}</span>}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  );
}
