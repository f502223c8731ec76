import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "../../parts/copy";
import { Dialog } from "../../parts/dialog";

/** The longest text that is pasted at once. */
const MAX_PASTE = 500_000;

/** What the terminal shows, as text to select: phones select nothing in a terminal. */
export function TextDialog({ text, onClose }: { text: string | null; onClose: () => void }) {
  return (
    <Dialog open={text !== null} onClose={onClose} label="The terminal as text" title="As text">
      <pre class="terminal-text" tabIndex={0}>{text}</pre>
      <div class="dialog-foot"><CopyButton text={text ?? ""} what="all of it" /></div>
    </Dialog>
  );
}

interface PasteProps {
  open: boolean;
  onClose: () => void;
  onPaste: (text: string) => void;
}

/** A field to paste into, and to see what it is before a program gets it. */
export function PasteDialog({ open, onClose, onPaste }: PasteProps) {
  return <Dialog open={open} onClose={onClose} label="Paste" title="Paste">{open && <PasteForm onPaste={onPaste} />}</Dialog>;
}

function PasteForm({ onPaste }: { onPaste: (text: string) => void }) {
  const [text, setText] = useState("");
  useEffect(() => {
    // There only in a secure context, and only if the person allows it; otherwise the field is filled by hand.
    navigator.clipboard?.readText?.().then((found) => setText((now) => now || found.slice(0, MAX_PASTE)), () => {});
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    onPaste(text);
  };
  return (
    <form class="form" onSubmit={submit}>
      <label class="field"><span>What the program gets</span><textarea rows={6} autoFocus maxLength={MAX_PASTE} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
      <div class="dialog-foot"><button type="submit" class="button primary" disabled={!text}>Paste it</button></div>
    </form>
  );
}
