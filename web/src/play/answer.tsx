import { useEffect, useState } from "preact/hooks";
import { short, span } from "../live/words";
import { Markdown } from "../markdown/view";
import { CopyButton } from "../parts/copy";
import { Icon } from "../parts/icon";
import { isOpen, speedOf, type Answer } from "./conversation";
import { askAgain } from "./talk";

interface AnswerProps {
  answer: Answer;
  turnId: string;
  lane: number;
  /** Whether the model's name stands above it, because there are two. */
  named: boolean;
}

/** One model's answer, with what it took. */
export function AnswerView({ answer, turnId, lane, named }: AnswerProps) {
  return (
    <div role="group" class={`answer ${answer.state}`} aria-label={`Answer of ${answer.model}`} aria-busy={isOpen(answer)}>
      {named && <h2 class="answer-model">{answer.model}</h2>}
      {answer.thought && <Thought text={answer.thought} open={isOpen(answer) && !answer.text} />}
      {answer.text && <Markdown text={answer.text} growing={isOpen(answer)} />}
      {isOpen(answer) && !answer.text && <Waiting answer={answer} />}
      {answer.error && <Failure answer={answer} />}
      <Foot answer={answer} turnId={turnId} lane={lane} />
    </div>
  );
}

function Thought({ text, open }: { text: string; open: boolean }) {
  return (
    <details class="thought" open={open}>
      <summary>{open ? "Thinking…" : "Thoughts"}</summary>
      <Markdown text={text} growing={open} />
    </details>
  );
}

/** After some seconds it says for how long, and what for, if the server told. */
function Waiting({ answer }: { answer: Answer }) {
  const seconds = useSeconds();
  return (
    <p class="waiting muted">
      <span class="pulse" aria-hidden="true" />
      {answer.why ?? (seconds >= 3 ? `Waiting for the first word, ${seconds} s…` : "")}
    </p>
  );
}

function useSeconds(): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((old) => old + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return seconds;
}

function Failure({ answer }: { answer: Answer }) {
  return (
    <p class="notice error" role="alert">
      <Icon name="warn" />
      <span>{answer.error!.message}{answer.error!.advice && <> <span class="muted">{answer.error!.advice}</span></>}</span>
    </p>
  );
}

/** Its place is kept from the beginning, so that nothing moves when the numbers come. */
function Foot({ answer, turnId, lane }: { answer: Answer; turnId: string; lane: number }) {
  const open = isOpen(answer);
  return (
    <div class="answer-foot">
      <Numbers answer={answer} />
      {!open && (
        <span class="buttons">
          {answer.text && <CopyButton text={answer.text} what="answer" />}
          <button type="button" class="icon-button" aria-label="Ask again" title="Ask again" onClick={() => askAgain(turnId, lane)}><Icon name="again" /></button>
        </span>
      )}
    </div>
  );
}

function Numbers({ answer }: { answer: Answer }) {
  const parts: string[] = [];
  const speed = speedOf(answer, answer.totalMs ?? answer.firstMs ?? 0);
  if (answer.state === "stopped") parts.push("stopped");
  if (answer.finish === "length") parts.push("cut at the most tokens");
  if (speed !== null) parts.push(`${answer.completion === null ? "~" : ""}${speed.toFixed(1)} tok/s`);
  if (answer.firstMs !== null) parts.push(`first token ${span(answer.firstMs)}`);
  if (answer.completion !== null) parts.push(`${short(answer.prompt ?? 0)} → ${short(answer.completion)} tokens`);
  if (answer.totalMs !== null && answer.firstMs !== null) parts.push(span(answer.totalMs));
  return <span class="numbers muted small" title={answer.requestId ?? undefined}>{parts.join(" · ")}</span>;
}
