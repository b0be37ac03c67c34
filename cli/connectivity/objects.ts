import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { CommandError } from '../exit-code.js';
import { readList, valueOr } from '../reader.js';
import { CONNECTIVITY_LABEL } from './pods.js';

const POLL_MS = 500;
/** How long to wait until deleted objects are gone. */
const REMOVAL_MS = 60_000;

/** The objects that a command creates in one namespace. It removes them, whatever happens. */
export class TestObjects {
  readonly namespace: string;
  /** Ends the command: Ctrl-C. */
  readonly signal: AbortSignal;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #created: { readonly resource: Resource; readonly name: string }[] = [];

  constructor(client: Client, clock: Clock, { namespace, signal }: { namespace: string; signal: AbortSignal }) {
    this.#client = client;
    this.#clock = clock;
    this.namespace = namespace;
    this.signal = signal;
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<void> {
    this.#throwIfEnded();
    // before the request: it may be carried out although no answer arrives
    this.#created.push({ resource, name: object.metadata.name });
    await this.#client.create(resource, object);
  }

  get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T> {
    return this.#client.get(resource, { namespace: this.namespace, name });
  }

  /**
   * Reads until the value is right, or until the time is over.
   * @returns the last value, and whether it is right
   */
  async wait<T>(
    read: () => Promise<T>,
    isRight: (value: T) => boolean,
    timeoutMs: number,
  ): Promise<{ value: T; isRight: boolean }> {
    const end = this.#clock.now() + timeoutMs;
    for (;;) {
      this.#throwIfEnded();
      const value = await read();
      const result = isRight(value);
      if (result || this.#clock.now() >= end) return { value, isRight: result };
      await this.#clock.sleep(POLL_MS, this.signal);
    }
  }

  /** Removes objects that the command created, and waits until they are gone. @returns what is left, in words */
  async remove(names?: readonly string[]): Promise<string[]> {
    const mine = this.#created.filter(({ name }) => names?.includes(name) ?? true);
    const left = await Promise.all(mine.map((each) => this.#removeOne(each.resource, each.name)));
    return left.flatMap((each) => each ?? []);
  }

  /** Removes what a command left that was killed. @returns what is left, in words */
  async removeLeftovers<T extends KubeObject>(
    resource: Resource<T>,
    isLeft: (object: T) => boolean,
  ): Promise<string[]> {
    const { namespace } = this;
    const read = await readList(this.#client, resource, { namespace, labelSelector: CONNECTIVITY_LABEL });
    if (read.kind === 'forbidden') return [`${resource.kind}s of a run that was killed may be left: ${read.why}`];
    const found = valueOr(read, { unserved: [] }).filter(isLeft);
    const left = await Promise.all(found.map(({ metadata }) => this.#removeOne(resource, metadata.name)));
    return left.flatMap((each) => each ?? []);
  }

  async #removeOne(resource: Resource, name: string): Promise<string | undefined> {
    const text = `${resource.kind} ${this.namespace}/${name}`;
    try {
      await this.#client.delete(resource, { namespace: this.namespace, name });
      const end = this.#clock.now() + REMOVAL_MS;
      while (await this.#client.find(resource, { namespace: this.namespace, name })) {
        if (this.#clock.now() >= end) return `${text} is still being deleted: remove it by hand`;
        await this.#clock.sleep(POLL_MS);
      }
      return undefined;
    } catch (error) {
      return `${text} could not be removed: ${messageOf(error)}: remove it by hand`;
    }
  }

  #throwIfEnded(): void {
    if (this.signal.aborted) throw new CommandError('interrupted');
  }
}
