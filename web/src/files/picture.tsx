import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { bytes } from "../live/words";
import { download, type Sink } from "./download";
import { nameOf, shownName } from "./names";
import { withLine } from "./transfer_link";

interface PictureProps {
  project: string;
  path: string;
  look: { type: string; size: number };
}

/** A picture. What is in it runs nothing: it is shown as an image, also if it is an SVG. */
export function Picture({ project, path, look }: PictureProps) {
  const [address, setAddress] = useState("");
  const [error, setError] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    let made = "";
    setError("");
    fetchPicture(project, path, look.type, stop.signal).then(
      (blob) => stop.signal.aborted || setAddress((made = URL.createObjectURL(blob))),
      (thrown) => stop.signal.aborted || setError(asApiError(thrown).message),
    );
    return () => {
      stop.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [project, path, look]);
  const name = shownName(nameOf(path));
  if (error) return <p class="shown-nothing" role="alert">{error}</p>;
  if (!address) return <p class="shown-nothing muted" role="status">Fetching the picture…</p>;
  return (
    <figure class="picture">
      <img src={address} alt={name} onError={() => setError("The browser cannot show this picture. Download it instead.")} />
      <figcaption class="muted small">{bytes(look.size)}</figcaption>
    </figure>
  );
}

async function fetchPicture(project: string, path: string, type: string, signal: AbortSignal): Promise<Blob> {
  const pieces: BlobPart[] = [];
  const sink: Sink = {
    write: async (piece) => void pieces.push(piece),
    restart: async () => void pieces.splice(0),
    finish: async () => undefined,
    abort: async () => undefined,
  };
  await withLine((line) => download({ line, project, path, sink, signal, onProgress: () => undefined }));
  return new Blob(pieces, { type });
}
