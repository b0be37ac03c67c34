/** A queue with a moving head, because shifting an array of many thousands of elements is slow. */
export class Fifo<T> {
  #elements: T[] = [];
  #head = 0;

  get length(): number {
    return this.#elements.length - this.#head;
  }

  push(element: T): void {
    this.#elements.push(element);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const element = this.#elements[this.#head++];
    if (this.#head * 2 > this.#elements.length) {
      this.#elements = this.#elements.slice(this.#head);
      this.#head = 0;
    }
    return element;
  }
}
