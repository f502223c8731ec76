import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icon";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  /** What screen readers call it. */
  label: string;
  class?: string;
  /** Shown at the top, with a button to close. */
  title?: string;
  children: ComponentChildren;
}

/** A dialog of the browser's own: it keeps the focus inside, gives it back, and closes by Escape or a click beside it. */
export function Dialog({ open, onClose, label, title, class: name = "", children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    if (open && element && !element.open) element.showModal();
    if (!open && element?.open) element.close();
  }, [open]);
  // Escape: what the page knows changes with the key itself. The browser's own news of it comes later, perhaps when the dialog is open again.
  const onCancel = (event: Event) => {
    if (event.target !== dialog.current) return;
    event.preventDefault();
    onClose();
  };
  const onClosed = () => !dialog.current?.open && onClose();
  const onClick = (event: MouseEvent) => event.target === dialog.current && onClose();
  return (
    <dialog ref={dialog} class={`dialog ${name}`} aria-label={label} onCancel={onCancel} onClose={onClosed} onMouseDown={onClick}>
      {open && (
        <div class="dialog-inner">
          {title && (
            <div class="dialog-head">
              <h2>{title}</h2>
              <button type="button" class="icon-button" aria-label="Close" onClick={onClose}><Icon name="close" /></button>
            </div>
          )}
          {children}
        </div>
      )}
    </dialog>
  );
}
