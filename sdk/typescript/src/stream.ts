import type { JsonError } from "./errors.js";
import type { ExchangeOptions } from "./request.js";
import type { ProgressEvent, Result } from "./result.js";

/** So many events wait for a slow reader. Later ones are lost, as `seq` shows. */
const maxWaiting = 1024;

/**
 * A call that was begun: iterate over it for its progress, and await {@link ResultStream.result} for its outcome.
 * Leaving the loop early does not end the call; the `signal` of its options does. Where there is no outcome, both
 * throw the reason.
 */
export class ResultStream<T = unknown, P = unknown> implements AsyncIterable<ProgressEvent<P>> {
  /** The outcome. */
  readonly result: Promise<Result<T>>;
  readonly #events: Array<ProgressEvent | JsonError> = [];
  #ended = false;
  #wake: Array<() => void> = [];

  /** @internal */
  constructor(begin: (onProgress: NonNullable<ExchangeOptions["onProgress"]>) => Promise<Result>) {
    this.result = begin((event) => {
      if (this.#events.length < maxWaiting) this.#events.push(event);
      this.#notify();
    }) as Promise<Result<T>>;
    const end = (): void => {
      this.#ended = true;
      this.#notify();
    };
    // A program that only iterates gets the error there, and has not left a rejection unhandled.
    this.result.then(end, end);
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ProgressEvent<P>, void, undefined> {
    for (;;) {
      const event = this.#events.shift();
      if (event instanceof Error) throw event;
      if (event) {
        yield event as ProgressEvent<P>;
      } else if (this.#ended) {
        await this.result;
        return;
      } else {
        await new Promise<void>((wake) => this.#wake.push(wake));
      }
    }
  }
}
