import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { mayWork } from "../../live/state";
import { copyText } from "../../parts/copy";
import { toast } from "../../parts/toast";
import { theme } from "../../theme";
import type { Session } from "../protocol";
import { KeyBar } from "./bar";
import { Follower } from "./follower";
import { codeOf, isOneKey, withHeld, type Held, type Key } from "./keys";
import { Screen } from "./screen";
import { PasteDialog, TextDialog } from "./text_dialogs";

const NONE: Held = { ctrl: false, alt: false };

/** A session's terminal. */
export function TerminalView({ session }: { session: Session }) {
  const host = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen | null>(null);
  const [held, setHeld] = useState(NONE);
  const heldNow = useRef(held);
  heldNow.current = held;
  const [title, setTitle] = useState("");
  const [selected, setSelected] = useState(false);
  const [text, setText] = useState<string | null>(null);
  const [pasting, setPasting] = useState(false);
  const follower = useMemo(() => new Follower(session.id, () => screen.current), [session.id]);

  useEffect(() => {
    const type = (typed: string) => {
      const { ctrl, alt } = heldNow.current;
      const changes = (ctrl || alt) && isOneKey(typed);
      if (changes) setHeld(NONE);
      follower.type(changes ? withHeld(typed, heldNow.current) : typed);
    };
    const own = new Screen(host.current!, { onInput: type, onRoom: (size) => follower.room(size), onTitle: setTitle, onSelect: setSelected, onFlood: () => follower.restart() });
    screen.current = own;
    follower.start();
    if (!matchMedia("(pointer: coarse)").matches) own.focus();
    return () => {
      follower.stop();
      own.dispose();
      screen.current = null;
    };
  }, [follower]);
  useRepaint(screen);

  const press = (key: Key) => {
    follower.type(codeOf(key, held, screen.current?.hasApplicationArrows ?? false));
    setHeld(NONE);
  };
  const copy = async () => toast((await copyText(screen.current?.selection() ?? "")) ? "Copied." : "Could not copy.");
  const paste = (pasted: string) => {
    setPasting(false);
    screen.current?.paste(pasted);
    screen.current?.focus();
  };
  return (
    <div class="terminal">
      <TerminalState follower={follower} title={title} over={session.status === "exited"} />
      <div class="terminal-scroll"><div ref={host} class="terminal-host" /></div>
      <KeyBar held={held} onHold={setHeld} onKey={press} onCopy={selected ? () => void copy() : null} onText={() => setText(screen.current?.text() ?? "")} onPaste={() => setPasting(true)} />
      <TextDialog text={text} onClose={() => setText(null)} />
      <PasteDialog open={pasting} onClose={() => setPasting(false)} onPaste={paste} />
    </div>
  );
}

/** The colours follow those of the page. */
function useRepaint(screen: { current: Screen | null }): void {
  const chosen = theme.value;
  useEffect(() => {
    const repaint = () => screen.current?.repaint();
    const frame = requestAnimationFrame(repaint);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", repaint);
    return () => {
      cancelAnimationFrame(frame);
      dark.removeEventListener("change", repaint);
    };
  }, [chosen]);
}

interface StateProps {
  follower: Follower;
  title: string;
  over: boolean;
}

function TerminalState({ follower, title, over }: StateProps) {
  const waiting = follower.waiting.value;
  const away = follower.state.value !== "open";
  return (
    <p class="terminal-title small" role="status">
      {away && <span class="terminal-away">Connecting…{waiting > 0 && ` ${waiting} typed characters wait.`}</span>}
      {!away && over && <span class="muted">The program has ended.</span>}
      {!away && !over && !mayWork.value && <span class="muted">You may look, not type.</span>}
      {!away && !over && title && <bdi class="muted">{title}</bdi>}
    </p>
  );
}
