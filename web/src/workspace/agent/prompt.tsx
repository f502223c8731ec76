import { useState } from "preact/hooks";
import { mayWork } from "../../live/state";
import { Icon } from "../../parts/icon";
import { toast } from "../../parts/toast";
import { draftOf, keepDraft } from "../../storage/drafts";

/** The longest prompt, in characters. */
const MAX_PROMPT = 1_000_000;

interface PromptProps {
  id: string;
  over: boolean;
  works: boolean;
  /** Takes a prompt; `false` if it cannot. */
  onPrompt: (text: string) => boolean;
  onInterrupt: () => void;
}

/** The field for the next prompt. Prompts that come while the agent works wait for their turn. */
export function Prompt({ id, over, works, onPrompt, onInterrupt }: PromptProps) {
  const [text, setText] = useState(() => draftOf(`agent.${id}`));
  const change = (to: string) => {
    setText(to);
    keepDraft(`agent.${id}`, to);
  };
  const send = () => {
    if (!text.trim()) return;
    if (onPrompt(text)) change("");
    else toast("Enough prompts wait already.", "error");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || matchMedia("(pointer: coarse)").matches) return;
    event.preventDefault();
    send();
  };
  if (over || !mayWork.value) return <p class="empty muted">{over ? "This agent has ended." : "You may look, not work."}</p>;
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(); }}>
      <div class="composer-row">
        <textarea rows={1} aria-label="Prompt" placeholder="Tell the agent what to do" maxLength={MAX_PROMPT} value={text} onInput={(event) => change(event.currentTarget.value)} onKeyDown={onKeyDown} />
        {works && <button type="button" class="round stop" aria-label="Interrupt" title="Interrupt" onClick={onInterrupt}><Icon name="stop" /></button>}
        <button type="submit" class="round" aria-label="Send" title="Send" disabled={!text.trim()}><Icon name="send" /></button>
      </div>
    </form>
  );
}
