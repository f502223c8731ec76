import { mayWork } from "../../live/state";
import { Icon } from "../../parts/icon";
import type { Question } from "../protocol";
import { ToolInput } from "./tool_input";

interface QuestionProps {
  question: Question;
  /** Whether it was answered here, and the agent does not have the answer yet. */
  answered: boolean;
  onAnswer: (allow: boolean) => void;
}

/** An agent asks whether it may use a tool. */
export function QuestionView({ question: { tool, input }, answered, onAnswer }: QuestionProps) {
  return (
    <section class="agent-question card" aria-label={`May it use ${tool}?`}>
      <h2><Icon name="shield" /> May it use {tool}?</h2>
      <ToolInput tool={tool} input={input} />
      <div class="question-buttons">
        <button type="button" class="button" disabled={answered || !mayWork.value} onClick={() => onAnswer(false)}>Deny</button>
        <button type="button" class="button primary" disabled={answered || !mayWork.value} onClick={() => onAnswer(true)}>Allow</button>
      </div>
      {answered && <p class="muted small" role="status">The answer is on its way…</p>}
    </section>
  );
}
