import { useEffect, useState } from "preact/hooks";
import { projectOf, type Project } from "../files/connection";
import { ask } from "./hub";

/** Where something begins: a project, or a directory. */
export interface Place {
  project: string;
  directory: string;
}

/** The fields of a request that say where it begins. */
export function placeOf({ project, directory }: Place): { project_id: string | null; working_dir: string | null } {
  return { project_id: project || null, working_dir: directory.trim() || (project ? null : "~") };
}

interface PlaceProps {
  place: Place;
  onChange: (place: Place) => void;
}

/** Asks where something is to begin. */
export function PlaceFields({ place, onChange }: PlaceProps) {
  const projects = useProjectNames();
  return (
    <>
      {projects.length > 0 && (
        <label class="field">
          <span>Project</span>
          <select value={place.project} onChange={(event) => onChange({ ...place, project: event.currentTarget.value })}>
            <option value="">none</option>
            {projects.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
          </select>
        </label>
      )}
      <label class="field">
        <span>Directory</span>
        <input type="text" maxLength={4096} placeholder={place.project ? "the project's" : "~"} autocapitalize="off" spellcheck={false} value={place.directory} onInput={(event) => onChange({ ...place, directory: event.currentTarget.value })} />
      </label>
    </>
  );
}

/** The projects, once they are known. Without them there is still the directory. */
function useProjectNames(): Project[] {
  const [projects, setProjects] = useState<Project[]>([]);
  useEffect(() => {
    ask({ type: "list_projects" }, "project_list").then(
      ({ projects: told }) => Array.isArray(told) && setProjects(told.slice(0, 500).map(projectOf).filter((each) => each !== null)),
      () => undefined,
    );
  }, []);
  return projects;
}
