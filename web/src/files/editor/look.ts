import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** The colours of the page, which the text inherits. */
const theme = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--panel)", color: "var(--ink)", fontSize: "var(--code-size)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)", padding: "0.5rem 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "light-dark(#cfe3d9, #2c5243)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", border: "0" },
  ".cm-activeLine": { backgroundColor: "light-dark(rgb(40 60 50 / 4%), rgb(255 255 255 / 4%))" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-selectionMatch": { backgroundColor: "light-dark(rgb(150 97 15 / 18%), rgb(224 176 98 / 22%))" },
  ".cm-searchMatch": { backgroundColor: "var(--warm-soft)", outline: "1px solid var(--warm)" },
  ".cm-searchMatch-selected": { backgroundColor: "light-dark(#f0c879, #6a5015)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-soft)" },
  ".cm-panels": { backgroundColor: "var(--ground)", color: "var(--ink)", fontFamily: "var(--text)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--edge)" },
  ".cm-panel.cm-search": { display: "flex", flexWrap: "wrap", alignItems: "center", gap: "0.35rem", padding: "0.4rem 2.4rem 0.4rem 0.5rem" },
  ".cm-panel.cm-search br": { display: "none" },
  ".cm-panel.cm-search label": { display: "inline-flex", alignItems: "center", gap: "0.3rem", margin: "0", fontSize: "0.8125rem" },
  ".cm-panel.cm-search [name=close]": { top: "0.3rem", right: "0.4rem", width: "2rem", height: "2rem", margin: "0", fontSize: "1.2rem", color: "var(--muted)", cursor: "pointer" },
  ".cm-textfield": { flex: "1 1 8rem", minHeight: "2rem", minWidth: "0", margin: "0", padding: "0.2rem 0.5rem", border: "1px solid var(--edge-strong)", borderRadius: "7px", backgroundColor: "var(--panel)", color: "inherit", fontSize: "inherit" },
  ".cm-button": { minHeight: "2rem", margin: "0", padding: "0.1rem 0.6rem", border: "1px solid var(--edge-strong)", borderRadius: "7px", background: "var(--panel)", color: "inherit", fontSize: "0.8125rem", cursor: "pointer" },
  ".cm-button:active": { background: "var(--hover)" },
  ".cm-deletedChunk button[name=mine]": { background: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-deletedChunk button[name=theirs]": { background: "var(--bad)", color: "var(--panel)" },
  ".cm-deletedChunk .cm-chunkButtons button": { minHeight: "1.9rem", padding: "0 0.7rem", fontFamily: "var(--text)" },
  ".cm-mergeView, .cm-mergeViewEditors": { height: "100%" },
  ".cm-changedLine": { backgroundColor: "var(--accent-soft) !important" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--bad-soft) !important" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-soft)" },
  ".cm-changedText, .cm-insertedLine": { background: "light-dark(#bfdfcf, #2f5f4b)" },
  ".cm-deletedChunk .cm-deletedText, .cm-deletedLine": { background: "light-dark(#f0c4be, #6b332d)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.controlKeyword, tags.moduleKeyword], color: "light-dark(#7a3e9d, #c9a0e4)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "light-dark(#2b6a1f, #a3cf8f)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "light-dark(#96500f, #e6b072)" },
  { tag: [tags.comment, tags.docComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.className, tags.namespace, tags.tagName], color: "light-dark(#1f5f8b, #86c1ea)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.labelName, tags.macroName], color: "light-dark(#1c5fa8, #8fb8f2)" },
  { tag: [tags.propertyName, tags.attributeName, tags.definition(tags.propertyName)], color: "light-dark(#7a4a12, #d9bd8a)" },
  { tag: [tags.heading, tags.strong], fontWeight: "bold" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: [tags.link, tags.url], color: "var(--accent)", textDecoration: "underline" },
  { tag: [tags.meta, tags.processingInstruction], color: "var(--muted)" },
  { tag: tags.inserted, color: "light-dark(#1f6b3a, #8fd3a6)" },
  { tag: [tags.deleted, tags.invalid], color: "var(--bad)" },
]);

/** How text looks in every editor of the page. */
export const look: Extension = [theme, syntaxHighlighting(colours, { fallback: true })];

/** Makes a place for an editor, apart from the page's styles: there its own may be adopted, which the page's policy allows. */
export function shadowIn(host: HTMLElement): { root: ShadowRoot; parent: HTMLElement } {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const parent = document.createElement("div");
  parent.style.height = "100%";
  root.replaceChildren(parent);
  return { root, parent };
}
