/** The address of a link if following it can do no harm; otherwise `null`. */
export function safeHref(href: string): string | null {
  // Browsers drop tabs and line breaks from addresses, so `java\nscript:` would pass a simpler test.
  const clean = href.replace(/[\u0000-\u0020\u007f-\u009f]/g, "");
  if (!/^(https?:\/\/|mailto:)/i.test(clean)) return null;
  try {
    const url = new URL(clean);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** The host that a link leads to, if its words name another one: then the page shows it beside them. */
export function hiddenHost(href: string, words: string): string | null {
  const host = hostOf(href);
  const named = /(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})/i.exec(words)?.[1]?.toLowerCase();
  if (!host || !named) return null;
  return host === named || host === `www.${named}` || `www.${host}` === named ? null : host;
}

function hostOf(href: string): string | null {
  try {
    return new URL(href).hostname || null;
  } catch {
    return null;
  }
}
