import type { Output, Skill } from "./skill.js";
/** Serves the calls that come on standard input until that ends. */
export declare function runWorker(skill: Skill, concurrency: number, input: NodeJS.ReadStream, output: Output): Promise<never>;
