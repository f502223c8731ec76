import { useEffect, useRef } from "preact/hooks";
import { count } from "../live/words";
import { isSameChange, wordsOfChange, type Area, type Change, type Status } from "./status";
import { visible } from "./visible";

const AREAS: { area: Area; name: string }[] = [
  { area: "staged", name: "Staged" },
  { area: "unstaged", name: "Not staged" },
  { area: "untracked", name: "Not known to git" },
];

interface ListProps {
  status: Status;
  chosen: Change | null;
  onChoose: (change: Change) => void;
}

/** The files that changed, by where they changed. */
export function ChangeList({ status: { changes, more }, chosen, onChoose }: ListProps) {
  return (
    <div class="git-lists" role="region" aria-label="Changed files" tabIndex={0}>
      {!changes.length && <p class="empty muted">Nothing changed since the last commit.</p>}
      {AREAS.map(({ area, name }) => {
        const within = changes.filter((each) => each.area === area);
        return within.length > 0 && (
          <section key={area}>
            <h2 id={`git-${area}`}>{name} <span>({within.length})</span></h2>
            <ul aria-labelledby={`git-${area}`}>{within.map((change) => <Item key={change.path} change={change} isChosen={chosen !== null && isSameChange(change, chosen)} onChoose={onChoose} />)}</ul>
          </section>
        );
      })}
      {more > 0 && <p class="git-plain muted small">{count(more, "more change")} are not shown.</p>}
    </div>
  );
}

/** Puts the focus on a change of the list, where it was before the change was shown. */
export function focusChange(list: HTMLElement | null, change: Change | null): void {
  const items = [...(list?.querySelectorAll<HTMLElement>("[data-path]") ?? [])];
  items.find(({ dataset }) => dataset["path"] === change?.path && dataset["area"] === change?.area)?.focus();
}

function Item({ change, isChosen, onChoose }: { change: Change; isChosen: boolean; onChoose: (change: Change) => void }) {
  const { area, letter, path } = change;
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isChosen) button.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  const words = wordsOfChange(change);
  return (
    <li>
      <button ref={button} type="button" class="git-change" data-path={path} data-area={area} aria-current={isChosen ? "true" : undefined} title={words} onClick={() => onChoose(change)}>
        <span class={`git-letter ${letter === "?" ? "unknown" : letter}`} aria-hidden="true">{letter}</span>
        <span class="git-path"><bdi>{visible(path)}</bdi><span class="visually-hidden"> ({words})</span></span>
      </button>
    </li>
  );
}
