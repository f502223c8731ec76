/**
 * What xterm.js gets for each `<style>` element that it makes (see `vite.config.ts`): the page's policy forbids those. It is a
 * hidden element whose text is an adopted style sheet of the page, as long as the element is not removed. The policy allows
 * such sheets to the page's own scripts.
 */
export function adoptedStyle(): HTMLElement {
  const [element, sheet] = [document.createElement("span"), new CSSStyleSheet()];
  element.hidden = true;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
