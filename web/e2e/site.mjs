// What stands between a browser and Warren: a proxy that takes a prefix away, as Warren's documentation has it.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the page: `dist`, or the one that `DIST` names. */
export const DIST = process.env.DIST && process.env.DIST !== "1" ? process.env.DIST : fileURLToPath(new URL("../dist/", import.meta.url));

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
  ".png": "image/png", ".webmanifest": "application/manifest+json",
};

/** The headers of CONTRACT.md, for a server that is a stand-in and has no page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; manifest-src 'self'; worker-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * A site at `base` (`/`, `/warren/`). `warren()` says where requests go now; `stranger` makes them come from elsewhere.
 * `cut()` breaks all WebSockets, `freeze()` lets them say nothing more to Warren. `files`: the site itself has the page, from `folder`. `gone()`: whether nobody answers now, or the status with which a proxy does. `sessions`: answers `web/session` instead of Warren.
 */
export async function serveSite({ warren, base = "/", stranger = false, files = false, folder = DIST, gone = () => false, sessions = null }) {
  const server = createServer((incoming, outgoing) => {
    const away = gone();
    if (away) return away === true ? incoming.socket.destroy() : outgoing.writeHead(away).end("a proxy's own page");
    const path = incoming.url.startsWith(base) ? incoming.url.slice(base.length) : null;
    if (path === null) return outgoing.writeHead(404).end();
    if (sessions && path === "web/session") return sessions(incoming, outgoing);
    if (files && isPage(path)) return void servePage(folder, path, outgoing);
    pass(incoming, outgoing, `/${path}`, warren().port, stranger);
  });
  const links = new Set();
  server.on("upgrade", (incoming, socket) => gone() ? socket.destroy() : passLink(links, incoming, socket, base, warren().port));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${server.address().port}`;
  const cut = () => links.forEach((link) => link.destroy());
  const freeze = () => links.forEach((link) => link.unpipe().pause());
  return { url: origin + base, cut, freeze, links, close: () => { cut(); server.closeAllConnections(); server.close(); } };
}

function isPage(path) {
  const plain = path.split("?")[0];
  return plain === "" || plain.startsWith("assets/") || /^[\w-]+\.(svg|png|js|webmanifest)$/.test(plain);
}

async function servePage(folder, path, outgoing) {
  const file = normalize(path.split("?")[0] || "index.html");
  try {
    const body = await readFile(join(folder, file));
    const cached = file.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache";
    outgoing.writeHead(200, { "content-type": TYPES[extname(file)], "cache-control": cached, "content-security-policy": POLICY, "x-content-type-options": "nosniff" });
    outgoing.end(body);
  } catch {
    outgoing.writeHead(404).end();
  }
}

/** Passes a WebSocket on, byte for byte. */
function passLink(links, incoming, socket, base, port) {
  const lines = [`GET /${incoming.url.slice(base.length)} HTTP/1.1`];
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) lines.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`);
  const onward = connect(port, "127.0.0.1", () => onward.write(`${lines.join("\r\n")}\r\n\r\n`));
  const ends = [socket, onward];
  links.add(socket);
  ends.forEach((end, at) => {
    end.on("error", () => end.destroy());
    end.on("close", () => { links.delete(socket); ends[1 - at].destroy(); });
    end.pipe(ends[1 - at]);
  });
}

/** The host of the request is passed on. Hanging up on one side hangs up on the other. */
function pass(incoming, outgoing, path, port, stranger) {
  const headers = { ...incoming.headers };
  if (stranger) headers["x-forwarded-for"] = "192.0.2.7";
  const onward = request({ host: "127.0.0.1", port, path, method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
    answer.on("close", () => answer.complete || outgoing.destroy());
  });
  onward.on("error", () => outgoing.destroy());
  outgoing.on("close", () => onward.destroy());
  incoming.pipe(onward);
}
