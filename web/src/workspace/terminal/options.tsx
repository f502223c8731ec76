import { useState } from "preact/hooks";
import { Dialog } from "../../parts/dialog";
import { Tabs } from "../../parts/tabs";
import { chooseDrawing, chooseReader, drawingChosen, readerChosen, type Drawing } from "./drawing";

const DRAWINGS: { value: Drawing; name: string }[] = [
  { value: "automatic", name: "Automatic" },
  { value: "webgl", name: "WebGL" },
  { value: "plain", name: "Plain" },
];

interface OptionsProps {
  open: boolean;
  onClose: () => void;
  /** Something else was chosen. */
  onChange: () => void;
}

/** How terminals are shown in this browser. */
export function OptionsDialog({ open, onClose, onChange }: OptionsProps) {
  return <Dialog open={open} onClose={onClose} label="How terminals are shown" title="How terminals are shown">{open && <Options onChange={onChange} />}</Dialog>;
}

function Options({ onChange }: { onChange: () => void }) {
  const [drawing, setDrawing] = useState(drawingChosen);
  const [reader, setReader] = useState(readerChosen);
  const draw = (to: Drawing) => {
    chooseDrawing(to);
    setDrawing(to);
    onChange();
  };
  const read = (to: boolean) => {
    chooseReader(to);
    setReader(to);
    onChange();
  };
  return (
    <div class="form">
      <div class="field"><span>Drawn by</span><div><Tabs label="Drawn by" options={DRAWINGS} value={drawing} onChange={draw} /></div></div>
      <p class="muted small">WebGL is faster with a graphics card, and chosen where the browser has one. Choose <i>Plain</i> if characters look wrong.</p>
      <label class="check"><input type="checkbox" checked={reader} onChange={(event) => read(event.currentTarget.checked)} /> For a screen reader: lines as text, and new output read aloud</label>
    </div>
  );
}
