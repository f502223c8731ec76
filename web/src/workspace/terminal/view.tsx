import { useState } from "preact/hooks";
import { mayWork } from "../../live/state";
import { copyText } from "../../parts/copy";
import { toast } from "../../parts/toast";
import type { Session } from "../protocol";
import { KeyBar } from "./bar";
import { EarlierDialog } from "./earlier";
import type { Follower } from "./follower";
import { OptionsDialog } from "./options";
import { PasteDialog, TextDialog } from "./text_dialogs";
import { useTerminal } from "./use_terminal";
import "../../style/terminal.css";

/** The dialogs of a terminal. */
type Opened = "paste" | "earlier" | "options" | null;

/** A session's terminal. */
export function TerminalView({ session }: { session: Session }) {
  const { host, screen, follower, held, hold, press, title, selected, top } = useTerminal(session.id);
  const [text, setText] = useState<string | null>(null);
  const [opened, setOpened] = useState<Opened>(null);
  const close = () => setOpened(null);
  const copy = async () => toast((await copyText(screen.current?.selection() ?? "")) ? "Copied." : "Could not copy.");
  const paste = (pasted: string) => {
    close();
    screen.current?.paste(pasted);
    screen.current?.focus();
  };
  return (
    <div class="terminal">
      <TerminalState follower={follower} title={title} over={session.status === "exited"} />
      <div class="terminal-scroll">
        <div ref={host} class="terminal-host" />
        {top && <button type="button" class="button small terminal-earlier" onClick={() => setOpened("earlier")}>Show earlier output</button>}
      </div>
      <KeyBar held={held} onHold={hold} onKey={press} onCopy={selected ? () => void copy() : null} onText={() => setText(screen.current?.text() ?? "")} onPaste={() => setOpened("paste")} onEarlier={() => setOpened("earlier")} onOptions={() => setOpened("options")} />
      <TextDialog text={text} onClose={() => setText(null)} />
      <PasteDialog open={opened === "paste"} onClose={close} onPaste={paste} />
      <EarlierDialog session={session} size={opened === "earlier" ? (screen.current?.size ?? null) : null} onClose={close} />
      <OptionsDialog open={opened === "options"} onClose={close} onChange={() => screen.current?.followChoices()} />
    </div>
  );
}

interface StateProps {
  follower: Follower;
  title: string;
  over: boolean;
}

/** What there is to say of the terminal; else the title that its program gave it. */
function TerminalState({ follower, title, over }: StateProps) {
  const waiting = follower.waiting.value;
  const away = follower.state.value !== "open";
  const words = over ? "The program has ended." : mayWork.value ? null : "You may look, not type.";
  return (
    <p class="terminal-title small" role="status">
      {away && <span class="terminal-away">Connecting…{waiting > 0 && ` ${waiting} typed characters wait.`}</span>}
      {!away && (words ? <span class="muted">{words}</span> : <bdi class="muted">{title}</bdi>)}
    </p>
  );
}
