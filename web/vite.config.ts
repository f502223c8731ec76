import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Within xterm.js: a style attribute that is set, and a style element that is made. */
const STYLE_ATTRIBUTE = /(\w+)\.setAttribute\("style",(`[^`]*`)\)/g;
const STYLE_ELEMENT = /[\w.]+\.createElement\("style"\)/g;
const ADOPTED_STYLE = fileURLToPath(new URL("src/workspace/terminal/adopted_style.ts", import.meta.url));

/** The page's policy forbids style attributes and style elements. Here xterm.js gets by without them. */
function strictXterm(): Plugin {
  const count = (code: string, what: RegExp) => code.match(what)?.length ?? 0;
  return {
    name: "strict-xterm",
    transform(code, id) {
      if (!id.includes("@xterm/xterm/lib/")) return null;
      if (count(code, STYLE_ATTRIBUTE) !== 1 || count(code, STYLE_ELEMENT) !== 3) throw new Error("xterm.js makes its styles in another way than it did.");
      const strict = code.replace(STYLE_ATTRIBUTE, "($1.style.cssText=$2)").replace(STYLE_ELEMENT, "adoptedStyle()");
      return { code: `import { adoptedStyle } from ${JSON.stringify(ADOPTED_STYLE)};${strict}`, map: null };
    },
  };
}

/** The files that the page names itself: it shows nothing without them. */
const NAMED_FILE = /(?<=["'(]\.\/)assets\/[^"')]+/g;

/** Tells the service worker which files there are. What it is told depends on nothing but their content. */
function serviceWorker(): Plugin {
  return {
    name: "service-worker",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const [page, worker] = [bundle["index.html"], bundle["sw.js"]];
        if (page?.type !== "asset" || worker?.type !== "chunk") throw new Error("The page or its service worker is missing.");
        if (worker.imports.length || worker.exports.length) throw new Error("The service worker is to be one file.");
        const html = String(page.source);
        const first = [...new Set(html.match(NAMED_FILE))].sort();
        const assets = Object.keys(bundle).filter((name) => name.startsWith("assets/")).sort();
        const build = createHash("sha256").update(html).update(assets.join()).update(worker.code).digest("hex").slice(0, 16);
        const told = { __BUILD__: build, __FIRST__: first, __ASSETS__: assets };
        for (const [name, value] of Object.entries(told)) worker.code = worker.code.replace(name, () => JSON.stringify(value));
      },
    },
  };
}

// Every address in the page is relative, so that the server may serve it below any path.
export default defineConfig({
  base: "./",
  plugins: [strictXterm(), serviceWorker()],
  build: {
    target: "es2022",
    outDir: "dist",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rollupOptions: {
      input: { index: "index.html", sw: "src/offline/sw.ts" },
      // A service worker is asked for by its name, and serves what is below its own address.
      output: { entryFileNames: ({ name }) => (name === "sw" ? "sw.js" : "assets/[name]-[hash].js") },
    },
  },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
    environment: "node",
    testTimeout: 10_000,
  },
});
