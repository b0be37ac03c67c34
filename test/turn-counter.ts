/** Counts the turns of the event loop until it is stopped. */
export class TurnCounter {
  turns = 0;
  #next = setImmediate(() => this.#count());

  stop(): void {
    clearImmediate(this.#next);
  }

  #count(): void {
    this.turns++;
    this.#next = setImmediate(() => this.#count());
  }
}
