import type { ComponentChildren } from "preact";
import { Icon } from "../../parts/icon";
import type { Held, Key } from "./keys";

interface BarProps {
  held: Held;
  onHold: (held: Held) => void;
  onKey: (key: Key) => void;
  /** Copies what is selected; `null` while nothing is. */
  onCopy: (() => void) | null;
  onText: () => void;
  onPaste: () => void;
  onEarlier: () => void;
  onOptions: () => void;
}

/** Keys that phones lack, and the clipboard. */
export function KeyBar({ held, onHold, onKey, onCopy, onText, onPaste, onEarlier, onOptions }: BarProps) {
  const key = (name: Key, label: string, sign: ComponentChildren) => <BarButton label={label} onPress={() => onKey(name)}>{sign}</BarButton>;
  return (
    <div class="key-bar" role="toolbar" aria-label="Keys of the terminal">
      <span class="touch-only">
        {key("Escape", "Escape", "Esc")}
        <BarButton label="Ctrl" pressed={held.ctrl} onPress={() => onHold({ ...held, ctrl: !held.ctrl })}>Ctrl</BarButton>
        <BarButton label="Alt" pressed={held.alt} onPress={() => onHold({ ...held, alt: !held.alt })}>Alt</BarButton>
        {key("Tab", "Tab", "Tab")}
        {key("Left", "Left", "←")}
        {key("Up", "Up", "↑")}
        {key("Down", "Down", "↓")}
        {key("Right", "Right", "→")}
      </span>
      {onCopy && <BarButton label="Copy what is selected" onPress={onCopy}>Copy</BarButton>}
      <BarButton label="Paste" onPress={onPaste}>Paste</BarButton>
      <BarButton label="Show as text" onPress={onText}>Text</BarButton>
      <BarButton label="Earlier output, and search" onPress={onEarlier}>Earlier</BarButton>
      <BarButton label="How terminals are shown" onPress={onOptions}><Icon name="sliders" /></BarButton>
    </div>
  );
}

interface ButtonProps {
  label: string;
  pressed?: boolean;
  onPress: () => void;
  children: ComponentChildren;
}

/** The terminal keeps the focus, and with it a phone's keyboard. */
function BarButton({ label, pressed, onPress, children }: ButtonProps) {
  return <button type="button" class="key" aria-label={label} aria-pressed={pressed} onPointerDown={(event) => event.preventDefault()} onMouseDown={(event) => event.preventDefault()} onClick={onPress}>{children}</button>;
}
