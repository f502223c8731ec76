import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { askProjects, changes, isConnected } from "../files/connection";
import { statusOf, type Status } from "./status";

/** The least time between two looks that nobody asked for, in milliseconds. */
const PAUSE_MS = 1000;

/** What is known of a project's changes. */
export interface Known {
  /** `null` before the first answer. */
  status: Status | null;
  /** Why the last look failed; empty if it did not. */
  trouble: string;
  isAsking: boolean;
  refresh: () => void;
}

/** The git status of a project, which follows the changes of its files. */
export function useStatus(project: string): Known {
  const [known, setKnown] = useState<{ of: string; status: Status | null; trouble: string }>({ of: project, status: null, trouble: "" });
  const [isAsking, setIsAsking] = useState(false);
  const asked = useRef(0);
  const refresh = useCallback(() => {
    asked.current = Date.now();
    setIsAsking(true);
    look(project).then(
      (status) => setKnown({ of: project, status, trouble: "" }),
      (thrown) => setKnown((before) => ({ ...before, of: project, trouble: asApiError(thrown).message })),
    ).finally(() => setIsAsking(false));
  }, [project]);
  const { count } = changes.value;
  const isOpen = isConnected.value;
  useEffect(() => {
    if (!isOpen) return;
    const timer = setTimeout(refresh, Math.max(0, asked.current + PAUSE_MS - Date.now()));
    return () => clearTimeout(timer);
  }, [project, count, isOpen, refresh]);
  const isCurrent = known.of === project;
  return { status: isCurrent ? known.status : null, trouble: isCurrent ? known.trouble : "", isAsking, refresh };
}

async function look(project: string): Promise<Status> {
  return statusOf(await askProjects({ type: "git_status", project_id: project }, "git_status_result"));
}
