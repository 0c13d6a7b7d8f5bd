/** So many events wait for a slow reader. Later ones are lost, as `seq` shows. */
const maxWaiting = 1024;
/**
 * A call that was begun: iterate over it for its progress, and await {@link ResultStream.result} for its outcome.
 * Leaving the loop early does not end the call; the `signal` of its options does. Where there is no outcome, both
 * throw the reason.
 */
export class ResultStream {
    /** The outcome. */
    result;
    #events = [];
    #ended = false;
    #wake = [];
    /** @internal */
    constructor(begin) {
        this.result = begin((event) => {
            if (this.#events.length < maxWaiting)
                this.#events.push(event);
            this.#notify();
        });
        const end = () => {
            this.#ended = true;
            this.#notify();
        };
        // A program that only iterates gets the error there, and has not left a rejection unhandled.
        this.result.then(end, end);
    }
    #notify() {
        for (const wake of this.#wake.splice(0))
            wake();
    }
    async *[Symbol.asyncIterator]() {
        for (;;) {
            const event = this.#events.shift();
            if (event instanceof Error)
                throw event;
            if (event) {
                yield event;
            }
            else if (this.#ended) {
                await this.result;
                return;
            }
            else {
                await new Promise((wake) => this.#wake.push(wake));
            }
        }
    }
}
