import { useMemo } from "preact/hooks";
import { DiffView } from "../../git/diff_view";
import { besideEdits, editsOf, MAX_EDITS } from "../../git/edits";
import type { FileDiff } from "../../git/patch";
import { visible } from "../../git/visible";
import { inputText } from "./events";

/** What an agent gives to a tool: what it changes in files, line by line, or else its text. */
export function ToolInput({ tool, input }: { tool: string; input: unknown }) {
  const files = useMemo(() => editsOf(tool, input), [tool, input]);
  return files.length ? <Edits files={files} input={input} /> : <Text text={inputText(input)} />;
}

/** The edits, and all that was sent: nobody is to allow what is not shown. */
function Edits({ files, input }: { files: FileDiff[]; input: unknown }) {
  const beside = besideEdits(input);
  const [{ name }] = files as [FileDiff];
  return (
    <>
      {files.length === 1 && name && <p class="diff-name"><code>{visible(name)}</code></p>}
      <div class="diff-box" tabIndex={0} role="group" aria-label="What it changes">
        <DiffView files={files} label="What it changes" />
      </div>
      {files.length >= MAX_EDITS && <p class="diff-note small">There may be more edits than these: see what was sent.</p>}
      {beside && <Text text={inputText(beside)} />}
      <details class="agent-fold sent"><summary class="muted small">As it was sent</summary><Text text={inputText(input)} /></details>
    </>
  );
}

function Text({ text }: { text: string }) {
  return text ? <pre class="agent-pre" tabIndex={0}>{text}</pre> : null;
}
