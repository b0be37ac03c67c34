import { joinKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import { observeVmTrace } from '../trace/observe.js';
import { traceVm } from '../trace/trace.js';
import type { TraceNode } from '../trace/tree.js';

/** A story is read with a dozen requests: at most so often, however many objects change. */
const MIN_INTERVAL_MS = 2_000;

interface OpenStory {
  readonly vm: { readonly namespace: string; readonly name: string };
  readers: number;
  isReading: boolean;
  /** Something has changed since the last read began. */
  isStale: boolean;
  tree: TraceNode | undefined;
  failure: string | undefined;
}

interface VmStoriesDeps {
  readonly client: Client;
  readonly clock: Clock;
  /** Called after each read. */
  readonly onRead: () => void;
}

/** The stories of the VMs that somebody looks at, as `kubectl holdfast trace vm` tells them. They are read again after changes. */
export class VmStories {
  readonly #deps: VmStoriesDeps;
  readonly #stories = new Map<string, OpenStory>();
  readonly #abort = new AbortController();

  constructor(deps: VmStoriesDeps) {
    this.#deps = deps;
  }

  of(namespace: string, name: string): Pick<OpenStory, 'tree' | 'failure'> | undefined {
    return this.#stories.get(joinKey(namespace, name));
  }

  /** Reads a story until the returned function is called. */
  open(namespace: string, name: string): () => void {
    const key = joinKey(namespace, name);
    const fresh = { readers: 0, isReading: false, isStale: false, tree: undefined, failure: undefined };
    const story: OpenStory = this.#stories.get(key) ?? { vm: { namespace, name }, ...fresh };
    this.#stories.set(key, story);
    story.readers += 1;
    void this.#read(story);
    return () => {
      story.readers -= 1;
      if (story.readers === 0) this.#stories.delete(key);
    };
  }

  /** Called after each change of an object that a story may contain. */
  changed(): void {
    for (const story of this.#stories.values()) void this.#read(story);
  }

  stop(): void {
    this.#abort.abort();
  }

  async #read(story: OpenStory): Promise<void> {
    const { client, clock, onRead } = this.#deps;
    const { signal } = this.#abort;
    story.isStale = true;
    if (story.isReading) return;
    story.isReading = true;
    while (story.isStale && story.readers > 0 && !signal.aborted) {
      story.isStale = false;
      try {
        story.tree = traceVm(await observeVmTrace(story.vm, client, clock.wall()));
        story.failure = undefined;
      } catch (error) {
        story.failure = messageOf(error);
      }
      onRead();
      await clock.sleep(MIN_INTERVAL_MS, signal);
    }
    story.isReading = false;
  }
}
