import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { commandsNow, type Command } from "./commands";
import { best } from "./match";
import { openPalette, paletteShown } from "./open";

/** As many commands are shown at most. */
const MOST = 50;

/** The palette: everything that can be done, found by its name. */
export function Palette() {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      if (paletteShown.value) close();
      else openPalette();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  return (
    <Dialog open={paletteShown.value} onClose={close} label="Commands" class="palette">
      <Search />
    </Dialog>
  );
}

function close(): void {
  paletteShown.value = false;
}

function Search() {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const found = best(commandsNow(), typed, MOST);
  const chosen = Math.min(at, found.length - 1);
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    // The dialog gives the focus back first; the command may then take it.
    setTimeout(command.run, 0);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) setAt((chosen + step + found.length) % found.length);
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="palette-field">
        <Icon name="search" />
        <input
          type="text" role="combobox" autoFocus placeholder="What do you want to do?" aria-label="Command" spellcheck={false} autocomplete="off"
          aria-expanded={found.length > 0} aria-controls="commands" aria-activedescendant={found.length ? `command-${chosen}` : undefined}
          value={typed} onInput={(event) => { setTyped(event.currentTarget.value); setAt(0); }} onKeyDown={onKey}
        />
      </div>
      {found.length > 0
        ? <ul id="commands" role="listbox" aria-label="Commands">{found.map((command, i) => <Option key={`${command.kind}/${command.name}/${i}`} command={command} id={`command-${i}`} chosen={i === chosen} onRun={() => run(command)} />)}</ul>
        : <p class="empty muted" role="status">Nothing is called that.</p>}
    </>
  );
}

function Option({ command, id, chosen, onRun }: { command: Command; id: string; chosen: boolean; onRun: () => void }) {
  useEffect(() => {
    if (chosen) document.getElementById(id)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <li id={id} role="option" aria-selected={chosen} class={chosen ? "chosen" : undefined} onClick={onRun}>
      <Icon name={command.icon} />
      <span>{command.name}</span>
      <span class="muted small">{command.kind}</span>
    </li>
  );
}
