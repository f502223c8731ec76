import { Icon } from "../../parts/icon";

interface SearchProps {
  words: string;
  /** Which of the places is shown, from 1, and how many there are. */
  place: number;
  of: number;
  /** Whether there is output that is not searched yet. */
  more: boolean;
  onWords: (words: string) => void;
  /** Goes to the place before, which is by 1, or to the one after it. */
  onStep: (by: number) => void;
}

/** A field that searches upwards, from the end. */
export function Search({ words, place, of, more, onWords, onStep }: SearchProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    onStep(event.shiftKey ? -1 : 1);
  };
  return (
    <div class="earlier-search" role="search">
      <input type="search" aria-label="Search the output" placeholder="Search" maxLength={200} spellcheck={false} autocapitalize="off" value={words} onInput={(event) => onWords(event.currentTarget.value)} onKeyDown={onKeyDown} />
      <span class="muted small earlier-places" role="status">{words && placesOf(place, of, more)}</span>
      <button type="button" class="icon-button" aria-label="The place before" title="The place before (Enter)" disabled={!of && !more} onClick={() => onStep(1)}><span class="turned-up"><Icon name="down" /></span></button>
      <button type="button" class="icon-button" aria-label="The next place" title="The next place (Shift Enter)" disabled={!of} onClick={() => onStep(-1)}><Icon name="down" /></button>
    </div>
  );
}

function placesOf(place: number, of: number, more: boolean): string {
  const words = of ? `${place} of ${of}` : "not found";
  return more ? `${words} so far` : words;
}
