import { useEffect, useMemo, useState } from "preact/hooks";
import { asApiError, type ApiError } from "../api/errors";
import { Poll } from "./poll";

/** What was seen at the last look; `error` while the last look failed; `look` looks again now. */
export interface Polled<T> {
  value: T | null;
  error: ApiError | null;
  look: () => void;
}

/** Looks every so many milliseconds while a part of the page is there; what it looks at changes with `by`. */
export function usePolled<T>(look: (signal: AbortSignal) => Promise<T>, every: number, by: unknown[] = []): Polled<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const poll = useMemo(
    () => new Poll({
      look: async (signal) => setValue(await look(signal)),
      every: () => every,
      onOk: () => setError(null),
      onError: (thrown) => setError(asApiError(thrown)),
    }),
    by,
  );
  useEffect(() => {
    poll.start();
    return () => poll.stop();
  }, [poll]);
  return { value, error, look: poll.now };
}
