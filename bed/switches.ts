/** The behaviour of the simulated nodes towards a VM or an ordinary pod. */
export interface VmSwitches {
  /** The guest does not shut down when asked; a pod ignores SIGTERM. */
  readonly holdTermination: boolean;
  /** The result of a live migration's copy: `hold` never ends. */
  readonly migration: 'succeed' | 'fail' | 'hold';
  /** A dynamic networks controller applies changes of the networks annotation to the running pod. */
  readonly dynamicNetworks: boolean;
  /** The runtime is slow: networks of new pods are not attached yet. */
  readonly holdNetworks: boolean;
  /** The runtime is slow: containers have ended, but CNI DEL is not called yet. */
  readonly delayNetworkEnd: boolean;
  /** The guest agent of a guest with a kernel of its own reports its interfaces. */
  readonly guestAgent: boolean;
}

/** The workloads of a setting. Without a name all of the namespace; without a namespace all. */
export interface Scope {
  readonly namespace?: string;
  /** Name of the VM or of the ordinary pod. */
  readonly name?: string;
}

const DEFAULTS: VmSwitches = {
  holdTermination: false,
  migration: 'succeed',
  dynamicNetworks: true,
  holdNetworks: false,
  delayNetworkEnd: false,
  guestAgent: true,
};

interface Setting {
  readonly scope: Scope;
  readonly values: Partial<VmSwitches>;
}

/** Lets tests change the behaviour of the simulated nodes while they run. */
export class Switches {
  #settings: Setting[] = [];
  readonly #lostNodes = new Set<string>();
  readonly #listeners = new Set<() => void>();

  /** Changes the behaviour for some workloads, in addition to earlier changes. @returns reverts the change */
  set(values: Partial<VmSwitches>, scope: Scope = {}): () => void {
    const setting = { scope, values };
    this.#settings.push(setting);
    this.#changed();
    return () => {
      this.#settings = this.#settings.filter((other) => other !== setting);
      this.#changed();
    };
  }

  /** The current behaviour for one workload. */
  of(namespace: string | undefined, name: string): VmSwitches {
    const applies = ({ scope }: Setting) =>
      (scope.namespace ?? namespace) === namespace && (scope.name ?? name) === name;
    return Object.assign({}, DEFAULTS, ...this.#settings.filter(applies).map(({ values }) => values)) as VmSwitches;
  }

  /** Stops the machine of a node: no heartbeats, and no changes of its pods. */
  loseNode(node: string): void {
    this.#lostNodes.add(node);
    this.#changed();
  }

  recoverNode(node: string): void {
    this.#lostNodes.delete(node);
    this.#changed();
  }

  isLost(node: string): boolean {
    return this.#lostNodes.has(node);
  }

  /** Reverts all changes. */
  clear(): void {
    this.#settings = [];
    this.#lostNodes.clear();
    this.#changed();
  }

  /** Calls `listener` after every change. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
