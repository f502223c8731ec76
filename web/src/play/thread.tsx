import type { ComponentChildren, RefObject } from "preact";
import { memo } from "preact/compat";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon";
import { AnswerView } from "./answer";
import { isOpen, type Picture, type Turn } from "./conversation";
import { busy, current, takeBack } from "./talk";
import { offerAgain } from "./composer";

/** So many turns are drawn at first: those that a window may show, and some more. */
const FIRST = 8;

/** So many earlier ones are drawn in a frame, as somebody comes near the first of them. More would make the frame late. */
const STEP = 3;

/** Closer to the first drawn turn than this, in pixels, earlier ones are drawn. */
const NEAR_TOP = 2500;

/** Closer to the end than this, in pixels, the thread follows what comes. */
const NEAR_END = 48;

/** The questions and answers of the conversation. */
export function Thread({ welcome }: { welcome?: ComponentChildren }) {
  const conversation = current.value;
  const { turns, lanes } = conversation;
  const { box, following, toEnd } = useFollow(conversation.id);
  const from = useEarlier(box, conversation.id, turns.length);
  if (!turns.length) return <div class="welcome">{welcome ?? <Welcome />}</div>;
  return (
    <div class="thread-wrap">
      <div ref={box} class="thread" tabIndex={0} role="region" aria-label="Conversation">
        {turns.slice(from).map((turn) => <TurnView key={turn.id} turn={turn} two={lanes.length > 1 || turn.answers.length > 1} />)}
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

/** The first turn that is drawn. When earlier ones are added above, what is seen stays where it is. */
function useEarlier(box: RefObject<HTMLDivElement | null>, id: string, total: number): number {
  const begun = useMemo(() => Math.max(0, total - FIRST), [id]);
  const [shown, setShown] = useState({ id, from: begun });
  const height = useRef(0);
  const from = Math.min(shown.id === id ? shown.from : begun, Math.max(0, total - 1));
  useEffect(() => {
    const element = box.current;
    if (!element || from === 0) return;
    let frame = 0;
    const draw = () => {
      height.current = element.scrollHeight;
      setShown({ id, from: Math.max(0, from - STEP) });
    };
    const read = () => {
      if (!frame && element.scrollTop < NEAR_TOP) frame = requestAnimationFrame(draw);
    };
    read();
    element.addEventListener("scroll", read, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      element.removeEventListener("scroll", read);
    };
  }, [id, from]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && height.current) element.scrollTop += element.scrollHeight - height.current;
    height.current = 0;
  }, [from]);
  return from;
}

/** What screen readers are told: not each word, but that it comes and that it is there. */
function Progress() {
  const answers = current.value.turns.at(-1)?.answers ?? [];
  const text = busy.value ? "The answer is coming." : `The answer ${answers.some(({ state }) => state === "failed") ? "failed" : "is complete"}.`;
  return <p class="visually-hidden" role="status">{text}</p>;
}

function Welcome() {
  return (
    <>
      <h1>Ask a model</h1>
      <p class="muted">What you write goes to the machine that answers, and is kept in this browser only.</p>
    </>
  );
}

interface TurnProps {
  turn: Turn;
  two: boolean;
}

/** A turn is drawn again only when it changed: the others of a long conversation stay as they are. */
const TurnView = memo(({ turn, two }: TurnProps) => (
  <article class={two ? "turn wide" : "turn"} aria-label="Question and answer">
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
