import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { look, shadowIn } from "./look";
import { endingsOf, linesOf, textOf } from "./text";

/** How much is compared before the view shows coarser changes: a comparison must not hang the page. */
const BOUND = { scanLimit: 1000, timeout: 300 };

/** Two texts, of which the second can be edited. */
export interface Merge {
  /** The second text as it is now. */
  text: () => string;
  end: () => void;
}

/** Shows two texts beside each other, or as one below another where there is little room. */
export function mergeIn(host: HTMLElement, theirs: string, mine: string, isNarrow: boolean, onEdit: () => void): Merge {
  const endings = endingsOf(mine);
  const place = shadowIn(host);
  const [a, b] = [linesOf(theirs, endingsOf(theirs)), linesOf(mine, endings)];
  const own = [history(), keymap.of([...historyKeymap, ...defaultKeymap]), labelled("Your text"), EditorView.updateListener.of(({ docChanged }) => docChanged && onEdit())];
  if (isNarrow) {
    const extensions = [common, own, unifiedMergeView({ original: a, diffConfig: BOUND, mergeControls: choiceOf })];
    const view = new EditorView({ ...place, state: EditorState.create({ doc: b, extensions }) });
    return { text: () => textOf(view.state.doc, endings), end: () => view.destroy() };
  }
  const both = new MergeView({
    ...place,
    a: { doc: a, extensions: [common, EditorState.readOnly.of(true), labelled("The text on the disk")] },
    b: { doc: b, extensions: [common, own] },
    revertControls: "a-to-b", gutter: true, diffConfig: BOUND, collapseUnchanged: { margin: 3, minSize: 8 },
  });
  return { text: () => textOf(both.b.state.doc, endings), end: () => both.destroy() };
}

/** A button that takes one of the two texts of a change. */
function choiceOf(type: "accept" | "reject", act: (event: MouseEvent) => void): HTMLElement {
  const [name, words] = type === "accept" ? ["mine", "Mine"] : ["theirs", "The disk's"];
  return Object.assign(document.createElement("button"), { type: "button", name, textContent: words, onclick: act });
}

const common: Extension = [lineNumbers(), EditorView.lineWrapping, look];

function labelled(label: string): Extension {
  return EditorView.contentAttributes.of({ "aria-label": label });
}
