// An HTTP API as that of an agent.
import { createServer } from "node:http";

/**
 * Serves answer, which gets {method, url, headers, body} and returns the body of a response, a list of lines, or
 * {status, body}; with undefined there is no response.
 */
export async function startAgent(answer, where = { port: 0, host: "127.0.0.1" }) {
  const left = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    request.on("end", () => {
      const given = answer({ method: request.method, url: request.url, headers: request.headers, text, body: text === "" ? undefined : JSON.parse(text) });
      if (given === undefined) return;
      const lines = Array.isArray(given) ? given : [given.http ? given.body : given];
      response.statusCode = given.http ?? 200;
      response.end(lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)) + "\n").join(""));
    });
    response.on("close", () => {
      if (!response.writableEnded) for (const wake of left.splice(0)) wake();
    });
  });
  await new Promise((resolve) => server.listen(where, resolve));
  return {
    url: typeof server.address() === "string" ? "" : "http://127.0.0.1:" + server.address().port,
    /** Resolves when a client has left before its response. */
    left: () => new Promise((resolve) => left.push(resolve)),
    close: () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())),
  };
}
