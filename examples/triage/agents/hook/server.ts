// Takes webhooks of GitHub: WEBHOOK_SECRET=… AGENTD_SOCKET=<socket of hook> node agents/hook/server.ts [port]
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

import { AgentdError } from "@agentd/sdk";

import { Client } from "./generated/triage.ts";

const secret = process.env["WEBHOOK_SECRET"];
if (!secret) throw new Error("WEBHOOK_SECRET is not set");
const triage = new Client();
const mostBytes = 1 << 20;

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((length += chunk.length) > mostBytes) throw new RangeError("too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function signed(body: Buffer, signature: unknown): boolean {
  const want = Buffer.from("sha256=" + createHmac("sha256", secret!).update(body).digest("hex"));
  const got = Buffer.from(String(signature));
  return want.length === got.length && timingSafeEqual(want, got);
}

async function answer(request: IncomingMessage): Promise<[number, unknown]> {
  const body = await read(request);
  if (!signed(body, request.headers["x-hub-signature-256"])) return [401, "the signature is not GitHub's"];
  const { action, issue } = JSON.parse(body.toString());
  if (request.headers["x-github-event"] !== "issues" || action !== "opened") return [204, undefined];
  // GitHub delivers again what it takes for lost. With the key, the second time gets the first answer.
  const result = await triage.triageIssue(
    { title: issue.title, body: issue.body ?? "", author: issue.user.login },
    { idempotencyKey: String(request.headers["x-github-delivery"]), timeoutMs: 9_000 },
  );
  switch (result.status) {
    case "ok":
      return [200, result.response];
    case "schema-violation":
      return [422, result.violations];
    default:
      return [result.error.retryable ? 503 : 500, result.error.code];
  }
}

const server = createServer((request, response) => {
  answer(request)
    .catch((e: unknown): [number, unknown] => {
      console.error(e);
      return e instanceof AgentdError ? [503, "no agent answers"] : [400, "that is no webhook"];
    })
    .then(([status, value]) => response.writeHead(status, { "Content-Type": "application/json" }).end(value === undefined ? "" : JSON.stringify(value)));
});
server.listen(Number(process.argv[2] ?? 8080), "127.0.0.1", () => console.log(`listening on ${(server.address() as AddressInfo).port}`));
