import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { questions } from "../hub";
import type { Session } from "../protocol";
import { textOf } from "../protocol";
import { EntryView } from "./entry";
import { Prompt } from "./prompt";
import { QuestionView } from "./question";
import { Talk } from "./talk";
import { usedWords } from "./used";

/** So many entries are drawn at first, the newest, and so many more for each click. */
const STEP = 300;

/** Closer to the end than this, in pixels, the conversation follows what comes. */
const NEAR_END = 60;

/** An agent's session as a conversation. */
export function AgentView({ session }: { session: Session }) {
  const talk = useMemo(() => new Talk(session.id), [session.id]);
  useEffect(() => {
    talk.start();
    return () => talk.stop();
  }, [talk]);
  const [drawn, setDrawn] = useState(STEP);
  const { entries, busy, loaded, more } = talk.shown.value;
  const open = [...questions.value.values()].filter(({ sessionId }) => sessionId === session.id);
  const works = busy || session.status === "running";
  const earlier = () => {
    setDrawn(drawn + STEP);
    if (more && entries.length < drawn + STEP) void talk.earlier();
  };
  return (
    <div class="agent">
      <Following by={[talk.shown.value, open.length, talk.prompts.value, talk.queued.value]}>
        {loaded && !entries.length && <p class="empty muted">Nothing was said yet.</p>}
        {(more || entries.length > drawn) && <button type="button" class="button small agent-earlier" onClick={() => earlier()}>Show what was before</button>}
        {entries.slice(-drawn).map((entry, at, all) => <EntryView key={entry.key} entry={entry} growing={works && at === all.length - 1} />)}
        {[...talk.queued.value].map(([turn, text]) => <div key={turn} class="agent-prompt waiting"><p>{text}</p><span class="muted small">waits for its turn</span></div>)}
        {talk.prompts.value.map((prompt) => <div key={textOf(prompt["input_id"])} class="agent-prompt waiting"><p>{textOf(prompt["input"])}</p><span class="muted small">on its way…</span></div>)}
        {open.map((question) => <QuestionView key={question.requestId} question={question} answered={talk.answers.value.has(question.requestId)} onAnswer={(allow) => talk.answer(question, allow)} />)}
        {works && !open.length && <p class="agent-works muted small" role="status"><span class="dot good" aria-hidden="true" /> The agent works…</p>}
      </Following>
      {talk.state.value !== "open" && <p class="terminal-away small" role="status">Connecting…</p>}
      <Prompt id={session.id} over={session.status === "exited"} works={works} onPrompt={(text) => talk.prompt(text)} onInterrupt={() => talk.interrupt()} />
      {talk.used.value && <p class="agent-used muted small">Since this page was opened: {usedWords(talk.used.value)}</p>}
    </div>
  );
}

interface FollowingProps {
  /** What changes when something comes. */
  by: unknown[];
  children: ComponentChildren;
}

/** Keeps the end in sight, unless the person has scrolled away from it. */
function Following({ by, children }: FollowingProps) {
  const box = useRef<HTMLDivElement>(null);
  const wanted = useRef(true);
  const read = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!;
    wanted.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
  useLayoutEffect(() => {
    if (wanted.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, by);
  return <div ref={box} class="agent-thread" tabIndex={0} role="region" aria-label="Conversation with the agent" onScroll={read}>{children}</div>;
}
