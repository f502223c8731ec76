import { memo } from "preact/compat";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon";
import { AnswerView } from "./answer";
import { isOpen, type Picture, type Turn } from "./conversation";
import { current, isBusy, takeBack } from "./talk";
import { offerAgain } from "./composer";

/** Closer to the end than this, in pixels, the thread follows what comes. */
const NEAR_END = 48;

/** The questions and answers of the conversation. */
export function Thread() {
  const conversation = current.value;
  const { box, following, toEnd } = useFollow(conversation.id);
  if (!conversation.turns.length) return <Welcome />;
  const two = conversation.lanes.length > 1;
  return (
    <div class="thread-wrap">
      <div ref={box} class="thread" tabIndex={0} role="region" aria-label="Conversation">
        {conversation.turns.map((turn, i) => (
          <TurnView key={turn.id} turn={turn} two={two || turn.answers.length > 1} last={i === conversation.turns.length - 1} />
        ))}
      </div>
      {!following && (
        <button type="button" class="to-end" onClick={toEnd} aria-label="To the end"><Icon name="down" /></button>
      )}
      <Progress />
    </div>
  );
}

/** Keeps the end in sight while answers come, unless the person has scrolled away from it. */
function useFollow(id: string) {
  const box = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(true);
  const wanted = useRef(true);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    wanted.current = true;
    const read = () => {
      const near = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END;
      wanted.current = near;
      setFollowing(near);
    };
    element.addEventListener("scroll", read, { passive: true });
    return () => element.removeEventListener("scroll", read);
  }, [id, current.value.turns.length > 0]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && wanted.current) element.scrollTop = element.scrollHeight;
  }, [current.value]);
  const toEnd = () => box.current && (box.current.scrollTop = box.current.scrollHeight);
  return { box, following, toEnd };
}

/** What screen readers are told: not each word, but that it comes and that it is there. */
function Progress() {
  const answers = current.value.turns.at(-1)?.answers ?? [];
  const text = isBusy(current.value) ? "The answer is coming." : `The answer ${answers.some(({ state }) => state === "failed") ? "failed" : "is complete"}.`;
  return <p class="visually-hidden" role="status">{text}</p>;
}

function Welcome() {
  return (
    <div class="welcome">
      <h1>Ask a model</h1>
      <p class="muted">What you write goes to the machine that answers, and is kept in this browser only.</p>
    </div>
  );
}

interface TurnProps {
  turn: Turn;
  two: boolean;
  last: boolean;
}

/** A turn is drawn again only when it changed: the others of a long conversation stay as they are. */
const TurnView = memo(({ turn, two, last }: TurnProps) => (
  <article class={`turn ${last ? "last" : ""}`} aria-label="Question and answer">
    <Question turn={turn} />
    <div class={two ? "lanes two" : "lanes"}>
      {turn.answers.map((answer, lane) => <AnswerView key={lane} answer={answer} turnId={turn.id} lane={lane} named={two} />)}
    </div>
  </article>
));

function Question({ turn }: { turn: Turn }) {
  const open = turn.answers.some(isOpen);
  return (
    <div class="question">
      <Pictures pictures={turn.pictures} />
      {turn.text && <p>{turn.text}</p>}
      <button type="button" class="icon-button question-edit" disabled={open} aria-label="Change this question" title="Change and ask anew" onClick={() => edit(turn.id)}>
        <Icon name="edit" />
      </button>
    </div>
  );
}

function Pictures({ pictures }: { pictures: Picture[] }) {
  if (!pictures.length) return null;
  return <div class="pictures">{pictures.map(({ url, name }, i) => <img key={i} src={url} alt={name} />)}</div>;
}

function edit(turnId: string): void {
  const taken = takeBack(turnId);
  if (taken) offerAgain(taken.text, taken.pictures);
}
