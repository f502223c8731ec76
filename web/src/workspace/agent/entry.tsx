import { memo } from "preact/compat";
import { Markdown } from "../../markdown/view";
import { Icon } from "../../parts/icon";
import type { Entry } from "./events";

interface EntryProps {
  entry: Entry;
  /** Whether more of it may come. */
  growing: boolean;
}

/** One thing in an agent's conversation. All of it is text of others. */
export function EntryView({ entry, growing }: EntryProps) {
  switch (entry.kind) {
    case "prompt": return <div class="agent-prompt"><p>{entry.text}</p></div>;
    case "text": return <AgentText text={entry.text} unasked={entry.unasked} growing={growing} />;
    case "thinking": return <Folded name="Thinking" text={entry.text} />;
    case "tool": return <Tool entry={entry} />;
    case "notice": return <p class={`agent-notice small ${entry.bad ? "bad" : "muted"}`} role={entry.bad ? "alert" : undefined}>{entry.text}</p>;
  }
}

const AgentText = memo(({ text, unasked, growing }: { text: string; unasked: boolean; growing: boolean }) => (
  <div class="agent-text">
    {unasked && <p class="muted small">Of its own accord:</p>}
    <Markdown text={text} growing={growing} />
  </div>
));

function Folded({ name, text }: { name: string; text: string }) {
  return <details class="agent-fold"><summary class="muted small">{name}</summary><pre class="agent-pre" tabIndex={0}>{text}</pre></details>;
}

const STATES = { runs: "runs…", done: "done", failed: "failed" };

function Tool({ entry: { name, input, output, state } }: { entry: Entry & { kind: "tool" } }) {
  const first = input.split("\n", 1)[0] ?? "";
  return (
    <details class={`agent-fold tool ${state}`}>
      <summary><Icon name={state === "failed" ? "warn" : state === "done" ? "check" : "code"} /><b>{name}</b> <code>{first.slice(0, 120)}</code> <span class="muted small">{STATES[state]}</span></summary>
      {input && <pre class="agent-pre" tabIndex={0}>{input}</pre>}
      {output && <pre class="agent-pre" tabIndex={0}>{output}</pre>}
    </details>
  );
}
