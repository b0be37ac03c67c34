import { joinKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { addClusterFlags } from '../cluster-flags.js';
import { observeVmTrace } from '../trace/observe.js';
import { traceVm } from '../trace/trace.js';
import type { TraceNode } from '../trace/tree.js';
import { SharedRead } from './shared-read.js';

/** A story is read with a dozen requests: at most so often, however many objects change. */
const MIN_INTERVAL_MS = 2_000;

interface VmStoriesDeps {
  readonly client: Client;
  /** Of commands in the stories. */
  readonly clusterFlags: string;
  readonly clock: Clock;
  /** Called after each read. */
  readonly onRead: () => void;
}

type Story = SharedRead<TraceNode | undefined>;

/** The stories of the VMs that somebody looks at, as `kubectl holdfast trace vm` tells them. They are read again after changes. */
export class VmStories {
  readonly #deps: VmStoriesDeps;
  readonly #stories = new Map<string, Story>();

  constructor(deps: VmStoriesDeps) {
    this.#deps = deps;
  }

  of(namespace: string, name: string): Pick<Story, 'value' | 'failure'> | undefined {
    return this.#stories.get(joinKey(namespace, name));
  }

  /** Reads a story until the returned function is called. */
  open(namespace: string, name: string): () => void {
    const key = joinKey(namespace, name);
    const story = this.#stories.get(key) ?? this.#storyOf({ namespace, name });
    this.#stories.set(key, story);
    const end = story.open();
    return () => {
      end();
      if (!story.isOpen) this.#stories.delete(key);
    };
  }

  /** Called after each change of an object that a story may contain. */
  changed(): void {
    for (const story of this.#stories.values()) story.changed();
  }

  stop(): void {
    for (const story of this.#stories.values()) story.stop();
  }

  #storyOf(vm: { namespace: string; name: string }): Story {
    const { client, clusterFlags, clock, onRead } = this.#deps;
    const read = async () => addClusterFlags(traceVm(await observeVmTrace(vm, client, clock.wall())), clusterFlags);
    return new SharedRead(read, { clock, onRead, pauseAfter: () => MIN_INTERVAL_MS });
  }
}
