import { Tabs } from "../parts/tabs";
import { go, route, type AdminTab } from "../route";
import { AuditLog } from "./audit";
import { ConfigurationPart } from "./configuration";
import { HealthPart } from "./health";
import { Invitations } from "./invitations";
import { Keys } from "./keys";
import { Sessions } from "./sessions";
import "../style/admin.css";

const TABS: { value: AdminTab; name: string }[] = [
  { value: "access", name: "Keys and browsers" },
  { value: "configuration", name: "Configuration" },
  { value: "audit", name: "Audit log" },
  { value: "health", name: "Health" },
];

/** Who may use the server, how it is set, what was done to it, and how it is. */
export function AdminPage() {
  const tab = (route.value.page === "admin" && route.value.tab) || "access";
  return (
    <div class="page admin">
      <h1>Administration</h1>
      <div><Tabs label="Part" options={TABS} value={tab} onChange={(chosen) => go({ page: "admin", tab: chosen })} /></div>
      {tab === "access" && <><Keys /><Invitations /><Sessions /></>}
      {tab === "configuration" && <ConfigurationPart />}
      {tab === "audit" && <AuditLog />}
      {tab === "health" && <HealthPart />}
    </div>
  );
}
