import { StringDecoder } from 'node:string_decoder';

/** Splits a stream into lines, and passes on each complete one that is not empty. */
export class LineReader {
  readonly #source: string;
  readonly #maxLength: number;
  readonly #take: (line: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  #pending = '';

  /** @param source for errors, with an article */
  constructor(source: string, maxLength: number, take: (line: string) => void) {
    this.#source = source;
    this.#maxLength = maxLength;
    this.#take = take;
  }

  /** @throws {TypeError} if a line is too long */
  push(chunk: Buffer): void {
    const [first = '', ...rest] = this.#decoder.write(chunk).split('\n');
    const last = rest.pop();
    this.#pending += first;
    if (last !== undefined) {
      for (const line of [this.#pending, ...rest]) if (line !== '') this.#take(line);
      this.#pending = last;
    }
    if (this.#pending.length > this.#maxLength)
      throw new TypeError(`a line of ${this.#source} exceeds ${this.#maxLength} characters`);
  }
}
