import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Model } from "../api/types";
import { ANY_MODEL } from "../live/room";
import { models, trouble } from "../live/state";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { draftOf, keepDraft } from "../storage/drafts";
import type { Picture } from "./conversation";
import { allTakePictures, MAX_PICTURES, pictureFrom } from "./pictures";
import { ask, busy, currentId, currentLanes, hasBegun, stop } from "./talk";

/** A question that was taken back and is offered to be changed. */
const offered = signal<{ text: string; pictures: Picture[] } | null>(null);

/** Puts a question into the field again. */
export function offerAgain(text: string, pictures: Picture[]): void {
  offered.value = { text, pictures };
}

/** Where a draft belongs: to its conversation, or to the one that has not begun. */
function draftId(): string {
  return hasBegun.value ? currentId.value : "new";
}

interface ComposerProps {
  /** Why nothing can be asked now; the field is there all the same, for what comes next. */
  waiting?: string | null;
}

/** The field that questions are written in, and the button that sends or stops. */
export function Composer({ waiting = null }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState("");
  const [pictures, setPictures] = useState<Picture[]>([]);
  const id = draftId();
  useEffect(() => setText(draftOf(id)), [id]);
  useEffect(() => {
    const again = offered.value;
    if (!again) return;
    offered.value = null;
    setText(again.text);
    setPictures(again.pictures);
    field.current?.focus();
  }, [offered.value]);
  useGrowing(field.current, text);

  const write = (next: string) => {
    setText(next);
    keepDraft(id, next);
  };
  const add = async (files: Iterable<File>) => setPictures(await withFiles(pictures, files));
  const ready = !busy.value && !waiting && !trouble.value?.away && currentLanes.value.every(Boolean) && (text.trim() !== "" || pictures.length > 0);
  const send = () => {
    if (!ready) return;
    ask(text.trim(), pictures);
    keepDraft(id, "");
    setText("");
    setPictures([]);
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(); }} onDrop={(event) => onDrop(event, add)} onDragOver={(event) => event.preventDefault()}>
      <Attached pictures={pictures} onRemove={(at) => setPictures(pictures.filter((_, i) => i !== at))} />
      <div class="composer-row">
        <PictureButton onFiles={add} />
        <textarea
          id="question" ref={field} rows={1} aria-label="Question" placeholder={waiting ?? placeholder()} value={text} enterkeyhint="enter"
          onInput={(event) => write(event.currentTarget.value)} onKeyDown={(event) => onKey(event, send)} onPaste={(event) => onPaste(event, add)}
        />
        {busy.value
          ? <button type="button" class="round stop" aria-label="Stop" title="Stop (Esc)" onClick={stop}><Icon name="stop" /></button>
          : <button type="submit" class="round" aria-label="Send" title="Send (Enter)" disabled={!ready}><Icon name="send" /></button>}
      </div>
    </form>
  );
}

function placeholder(): string {
  if (trouble.value?.away) return "The server is away. Go on writing: nothing is lost.";
  const [first, second] = currentLanes.value;
  return second ? `Ask ${first} and ${second}` : `Ask ${first && first !== ANY_MODEL ? first : "a model"}`;
}

/** Enter sends where there is a keyboard; on a phone it breaks the line, and the button sends. */
function onKey(event: KeyboardEvent, send: () => void): void {
  const plain = event.key === "Enter" && !event.shiftKey && !event.isComposing;
  if (!plain || matchMedia("(pointer: coarse)").matches) return;
  event.preventDefault();
  send();
}

function onPaste(event: ClipboardEvent, add: (files: Iterable<File>) => void): void {
  const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => type.startsWith("image/"));
  if (!files.length) return;
  event.preventDefault();
  add(files);
}

function onDrop(event: DragEvent, add: (files: Iterable<File>) => void): void {
  event.preventDefault();
  add(event.dataTransfer?.files ?? []);
}

function askedModels(): (Model | undefined)[] {
  return currentLanes.value.map((lane) => models.value?.find(({ id }) => id === lane));
}

async function withFiles(pictures: Picture[], files: Iterable<File>): Promise<Picture[]> {
  if (allTakePictures(askedModels()) === false) {
    toast("A model that is asked takes no pictures.", "error");
    return pictures;
  }
  const added = [...pictures];
  for (const file of files) {
    if (added.length >= MAX_PICTURES) {
      toast(`At most ${MAX_PICTURES} pictures go with a question.`, "error");
      break;
    }
    try {
      added.push(await pictureFrom(file));
    } catch (thrown) {
      toast(thrown instanceof Error ? thrown.message : String(thrown), "error");
    }
  }
  return added;
}

function PictureButton({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const takes = allTakePictures(askedModels());
  const name = takes === false ? "This model takes no pictures" : takes === null ? "Add pictures (whether this model takes them is not known)" : "Add pictures";
  return (
    <>
      <button type="button" class="icon-button" aria-label={name} title={name} disabled={takes === false} onClick={() => input.current?.click()}><Icon name="image" /></button>
      <input
        ref={input} type="file" accept="image/*" multiple hidden aria-label="Pictures"
        onChange={(event) => { onFiles([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ""; }}
      />
    </>
  );
}

function Attached({ pictures, onRemove }: { pictures: Picture[]; onRemove: (at: number) => void }) {
  if (!pictures.length) return null;
  return (
    <ul class="attached" aria-label="Pictures">
      {pictures.map(({ url, name }, i) => (
        <li key={i}>
          <img src={url} alt={name} />
          <button type="button" class="icon-button" aria-label={`Remove ${name}`} onClick={() => onRemove(i)}><Icon name="close" /></button>
        </li>
      ))}
    </ul>
  );
}

/** Makes the field as high as its text, up to what the style allows. */
function useGrowing(field: HTMLTextAreaElement | null, text: string): void {
  useEffect(() => {
    if (!field || CSS.supports("field-sizing", "content")) return;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  }, [field, text]);
}
