import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { pathOf } from "../../git/edits";
import { Markdown } from "../../markdown/view";
import { Icon } from "../../parts/icon";
import type { Entry } from "./events";
import { ToolInput } from "./tool_input";
import { usedWords } from "./used";

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
    case "used": return <p class="agent-turn-used muted small">{usedWords(entry.used)}</p>;
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

/** What it changes is looked for once somebody wants to see it. */
function Tool({ entry: { name, input, raw, output, state } }: { entry: Entry & { kind: "tool" } }) {
  const [isOpen, setIsOpen] = useState(false);
  const first = pathOf(raw) ?? input.split("\n", 1)[0] ?? "";
  return (
    <details class={`agent-fold tool ${state}`} onToggle={(event) => event.target === event.currentTarget && setIsOpen(event.currentTarget.open)}>
      <summary><Icon name={state === "failed" ? "warn" : state === "done" ? "check" : "code"} /><b>{name}</b> <code>{first.slice(0, 120)}</code> <span class="muted small">{STATES[state]}</span></summary>
      {isOpen ? <ToolInput tool={name} input={raw} /> : input && <pre class="agent-pre" tabIndex={0}>{input}</pre>}
      {output && <pre class="agent-pre" tabIndex={0}>{output}</pre>}
    </details>
  );
}
