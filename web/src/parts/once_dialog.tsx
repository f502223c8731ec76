import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog";

interface OnceDialogProps<T> {
  open: boolean;
  onClose: () => void;
  /** Called when it was made. */
  onMade: () => void;
  label: string;
  /** The title once it was made. */
  madeTitle: string;
  form: (onDone: (made: T) => void) => ComponentChildren;
  shown: (made: T, close: () => void) => ComponentChildren;
}

/** A dialog that asks what to make, makes it, and shows the result once. */
export function OnceDialog<T>({ open, onClose, onMade, label, madeTitle, form, shown }: OnceDialogProps<T>) {
  const [made, setMade] = useState<T | null>(null);
  const close = () => {
    setMade(null);
    onClose();
  };
  const onDone = (result: T) => {
    setMade(result);
    onMade();
  };
  return (
    <Dialog open={open} onClose={close} label={label} title={made === null ? label : madeTitle}>
      {made === null ? form(onDone) : shown(made, close)}
    </Dialog>
  );
}
