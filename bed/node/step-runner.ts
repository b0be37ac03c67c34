import type { KubeObject } from '../../api/meta.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import { isNotFound } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import type { Step } from './step.js';

/** Carries out steps of state machines, unless the object that a step is based on is outdated. */
export class StepRunner {
  readonly #log: Logger;
  /** The resourceVersion that was last changed, by name. The cached object with this version is outdated. */
  readonly #changed = new Map<string, string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The object is gone, or was not changed although a step was carried out. */
  forget(name: string): void {
    this.#changed.delete(name);
  }

  async take<Change>(
    name: string,
    object: KubeObject,
    step: Step<Change>,
    write: (change: Change) => Promise<unknown>,
  ): Promise<SyncResult> {
    if ('waitFor' in step) {
      return step.recheckAfterMs === undefined ? undefined : { requeueAfterMs: step.recheckAfterMs };
    }
    const version = object.metadata.resourceVersion ?? '';
    if (this.#changed.get(name) === version) return undefined; // the event of that change will arrive
    this.#changed.set(name, version);
    try {
      await write(step.next);
      this.#log.info({ object: name }, step.reason);
    } catch (error) {
      this.#changed.delete(name);
      if (!isNotFound(error)) throw error;
    }
    return undefined;
  }
}
