import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { theme } from "../../theme";
import { Follower } from "./follower";
import { codeOf, isOneKey, withHeld, type Held, type Key } from "./keys";
import { Screen } from "./screen";

const NONE: Held = { ctrl: false, alt: false };

/** A session's terminal, as its view needs it. */
export interface TerminalHandle {
  host: RefObject<HTMLDivElement | null>;
  screen: RefObject<Screen | null>;
  follower: Follower;
  held: Held;
  hold: (held: Held) => void;
  press: (key: Key) => void;
  title: string;
  /** Whether something is selected. */
  selected: boolean;
  /** Whether the oldest line that the terminal keeps is in sight. */
  top: boolean;
}

/** A screen that follows a session, as long as the part of the page is there. */
export function useTerminal(sessionId: string): TerminalHandle {
  const host = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen>(null);
  const [title, setTitle] = useState("");
  const [selected, setSelected] = useState(false);
  const [top, setTop] = useState(false);
  const follower = useMemo(() => new Follower(sessionId, () => screen.current), [sessionId]);
  const { held, hold, type } = useHeld(follower);
  useEffect(() => {
    const own = new Screen(host.current!, { onInput: type, onRoom: (size) => follower.room(size), onTitle: setTitle, onSelect: setSelected, onTop: setTop, onFlood: () => follower.restart() });
    screen.current = own;
    follower.start();
    // On a phone it would bring the keyboard up.
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
    hold(NONE);
  };
  return { host, screen, follower, held, hold, press, title, selected, top };
}

/** The modifiers of the bar hold for the next key. */
function useHeld(follower: Follower) {
  const [held, hold] = useState(NONE);
  const now = useRef(held);
  now.current = held;
  const type = (text: string) => {
    const changes = (now.current.ctrl || now.current.alt) && isOneKey(text);
    follower.type(changes ? withHeld(text, now.current) : text);
    if (changes) hold(NONE);
  };
  return { held, hold, type };
}

/** The colours follow those of the page. */
function useRepaint(screen: RefObject<Screen | null>): void {
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
