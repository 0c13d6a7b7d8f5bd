import { serve } from "./generated/triage.ts";
import { triageIssue } from "./triage.ts";

// Calls wait for owners and not for the processor: one process serves many.
await serve({ "triage-issue": triageIssue }, { concurrency: 16 });
