import { serve } from "./generated/owners.ts";
import { findOwner } from "./owners.ts";

await serve({ "find-owner": findOwner });
