import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, redo, undo } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, type StateEffect, type Text } from "@codemirror/state";
import { drawSelection, dropCursor, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { effect, untracked } from "@preact/signals";
import { cursorAt, editorHandle, isWrapped } from "../editor_handle";
import { nameOf, shownName } from "../names";
import type { OpenFile } from "../open_file";
import { loadLanguage } from "./languages";
import { look, shadowIn } from "./look";
import { changeBetween, endingsOf, hasLongLine, indentOf, linesOf, textOf, type Endings } from "./text";

/** What is kept of a file while another one is shown. */
interface Session {
  state: EditorState;
  endings: Endings;
  revision: number;
  scroll: StateEffect<unknown> | null;
}

const language = new Compartment();
const wrapping = new Compartment();
const separator = new Compartment();

/** The text of one open file at a time. */
export class Screen {
  private readonly view: EditorView;
  private readonly stops: (() => void)[];
  private file: OpenFile | null = null;
  private stopFile: () => void = () => undefined;
  private endings: Endings = endingsOf("");
  private revision = 0;
  private saved: Text = linesOf("", this.endings);

  constructor(host: HTMLElement, private readonly mayWrite: boolean) {
    this.view = new EditorView({ ...shadowIn(host) });
    this.stops = [effect(() => this.wrap(isWrapped.value))];
    editorHandle.value = { undo: () => this.run(undo), redo: () => this.run(redo), search: () => openSearchPanel(this.view), focus: () => this.view.focus() };
  }

  /** Shows a file as it was left. */
  show(file: OpenFile): void {
    this.leave();
    this.file = file;
    const session = file.session as Session | null;
    if (session) this.resume(session);
    else this.begin(file);
    const stops = [effect(() => this.follow(file)), effect(() => this.compare(file))];
    this.stopFile = () => stops.forEach((stop) => stop());
    this.tellCursor();
  }

  end(): void {
    this.leave();
    this.stops.forEach((stop) => stop());
    editorHandle.value = cursorAt.value = null;
    this.view.destroy();
  }

  /** Keeps what is shown for the next time. */
  private leave(): void {
    this.stopFile();
    if (this.file) this.file.session = { state: this.view.state, endings: this.endings, revision: this.revision, scroll: this.view.scrollSnapshot() } satisfies Session;
    this.file = null;
  }

  private begin(file: OpenFile): void {
    const { text, revision } = file.shown.peek();
    this.endings = endingsOf(text);
    this.revision = revision;
    const doc = linesOf(text, this.endings);
    this.view.setState(EditorState.create({ doc, extensions: this.extensions(file, doc) }));
    this.wrap(isWrapped.peek());
    void this.colour(file, doc);
  }

  private resume({ state, endings, revision, scroll }: Session): void {
    this.endings = endings;
    this.revision = revision;
    this.view.setState(state);
    this.wrap(isWrapped.peek());
    if (scroll) this.view.dispatch({ effects: scroll });
  }

  /** The file was read again, or merged: the view shows that, and the cursor stays where it can. */
  private follow(file: OpenFile): void {
    const { text, revision } = file.shown.value;
    if (revision === this.revision) return;
    this.revision = revision;
    this.endings = endingsOf(text);
    const effects = separator.reconfigure(separatorOf(this.endings));
    const changes = changeBetween(this.view.state.doc, linesOf(text, this.endings));
    untracked(() => this.view.dispatch({ changes, effects }));
  }

  /** Another text is the saved one. */
  private compare(file: OpenFile): void {
    this.saved = linesOf(file.saved.value, this.endings);
    untracked(() => this.tell(file));
  }

  private tell(file: OpenFile): void {
    const { doc } = this.view.state;
    const { endings } = this;
    file.typed(() => textOf(doc, endings), !doc.eq(this.saved));
  }

  private extensions(file: OpenFile, doc: Text): Extension {
    return [
      this.mayWrite ? [history(), closeBrackets(), indentOnInput(), dropCursor()] : [EditorState.readOnly.of(true), EditorView.editable.of(false)],
      lineNumbers(), highlightSpecialChars(), drawSelection(), highlightActiveLine(), highlightActiveLineGutter(), bracketMatching(),
      search({ top: true }), highlightSelectionMatches(), look,
      language.of([]), wrapping.of([]), separator.of(separatorOf(this.endings)), indentUnit.of(indentOf(doc)),
      keymap.of([...closeBracketsKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ "aria-label": `Text of ${shownName(nameOf(file.path.peek()))}`, ...(this.mayWrite ? {} : { tabindex: "0" }) }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && this.file) this.tell(this.file);
        if (update.docChanged || update.selectionSet) this.tellCursor();
      }),
    ];
  }

  /** Colours the text once its language is loaded. A line that has no end has no colours, since they would take too long. */
  private async colour(file: OpenFile, doc: Text): Promise<void> {
    if (hasLongLine(doc)) return;
    const support = await loadLanguage(nameOf(file.path.peek()));
    const effects = language.reconfigure(support);
    if (this.file === file) this.view.dispatch({ effects });
    else if (file.session) file.session = { ...(file.session as Session), state: (file.session as Session).state.update({ effects }).state };
  }

  private wrap(on: boolean): void {
    if (wrapping.get(this.view.state) === undefined) return;
    this.view.dispatch({ effects: wrapping.reconfigure(on ? EditorView.lineWrapping : []) });
  }

  private run(command: (view: EditorView) => boolean): void {
    command(this.view);
    this.view.focus();
  }

  private tellCursor(): void {
    const { doc, selection } = this.view.state;
    const line = doc.lineAt(selection.main.head);
    cursorAt.value = { line: line.number, column: selection.main.head - line.from + 1 };
  }
}

function separatorOf({ separator: text }: Endings): Extension {
  return text === undefined ? [] : EditorState.lineSeparator.of(text);
}
