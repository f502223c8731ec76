import { useEffect, useRef } from "preact/hooks";
import { mayWork } from "../../live/state";
import type { OpenFile } from "../open_file";
import { Screen } from "./screen";
import "../../style/editor.css";

/** The text of an open file. */
export function TextView({ file }: { file: OpenFile }) {
  const host = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen | null>(null);
  useEffect(() => {
    screen.current = new Screen(host.current!, mayWork.peek());
    return () => screen.current?.end();
  }, []);
  useEffect(() => screen.current?.show(file), [file]);
  return <div ref={host} class="editor-host" />;
}
