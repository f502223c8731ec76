import { useState } from "preact/hooks";
import { openaiBase } from "../api/address";
import type { ChatRequest } from "../api/chat";
import { access } from "../live/state";
import { CodeBlock } from "../markdown/view";
import { Dialog } from "../parts/dialog";
import { Tabs } from "../parts/tabs";
import { examplesOf } from "./code";
import { messagesFor } from "./conversation";
import { current } from "./talk";

/** The conversation so far, as the request that a program would send. */
export function Examples({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [name, setName] = useState("curl");
  if (!open) return <Dialog open={false} onClose={onClose} label="Show as code">{null}</Dialog>;
  const examples = examplesOf(requestNow(), openaiBase());
  const shown = examples.find((each) => each.name === name)!;
  return (
    <Dialog open onClose={onClose} label="Show as code" title="Show as code" class="wide-dialog">
      <Tabs label="Language" options={examples.map((each) => ({ value: each.name, name: each.name }))} value={name} onChange={setName} />
      <CodeBlock language={shown.language} text={shown.text} />
      <p class="muted small">
        {access.value?.by === "open"
          ? "This machine needs no key. Programs elsewhere do: warren key create --name NAME"
          : "WARREN_KEY is a key of scope inference: warren key create --name NAME"}
      </p>
    </Dialog>
  );
}

/** What would be asked now: all that was said, and a question where there is none. */
function requestNow(): ChatRequest {
  const { lanes, parameters, route, turns } = current.value;
  const messages = messagesFor(current.value, 0, turns.at(-1)?.id ?? "");
  if (!turns.length) messages.push({ role: "user", content: "What is Warren?" });
  return { model: lanes[0] ?? "", messages, parameters, route: route || undefined };
}
