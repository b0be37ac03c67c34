/** How the simulated world treats a VM, or an ordinary pod. */
export interface VmSwitches {
  /** The guest ignores the request to shut down; a pod ignores SIGTERM. */
  readonly holdTermination: boolean;
  /** What becomes of a live migration's copy: `hold` copies for ever. */
  readonly migration: 'succeed' | 'fail' | 'hold';
  /** How long the copy takes. */
  readonly migrationMs: number;
  /** There is a dynamic networks controller: a changed networks annotation reaches the running pod. */
  readonly dynamicNetworks: boolean;
  /** Multus fails: new pods get no network status and never start. */
  readonly refuseNetworks: boolean;
  /** The runtime is slow: new pods are bound, and their networks are not attached yet. */
  readonly holdNetworks: boolean;
  /** The runtime is late: containers have ended, and CNI DEL does not come yet. */
  readonly delayNetworkEnd: boolean;
  /** A guest whose launcher is killed ends as Failed, not as Succeeded. */
  readonly killFails: boolean;
}

/** Which workloads a setting is for. Without a name all of the namespace, without a namespace all. */
export interface Scope {
  readonly namespace?: string;
  /** Of the VM, or of a pod that belongs to none. */
  readonly name?: string;
}

const DEFAULTS: VmSwitches = {
  holdTermination: false,
  migration: 'succeed',
  migrationMs: 500,
  dynamicNetworks: true,
  refuseNetworks: false,
  holdNetworks: false,
  delayNetworkEnd: false,
  killFails: false,
};

interface Setting {
  readonly scope: Scope;
  readonly values: Partial<VmSwitches>;
}

/** What tests change in the simulated world while it runs. */
export class Switches {
  #settings: Setting[] = [];
  readonly #lostNodes = new Set<string>();
  readonly #listeners = new Set<() => void>();

  /** Changes the behaviour for some workloads, over what was set before. @returns takes the change back */
  set(values: Partial<VmSwitches>, scope: Scope = {}): () => void {
    const setting = { scope, values };
    this.#settings.push(setting);
    this.#changed();
    return () => {
      this.#settings = this.#settings.filter((other) => other !== setting);
      this.#changed();
    };
  }

  /** What holds for one workload. */
  of(namespace: string | undefined, name: string): VmSwitches {
    const applies = ({ scope }: Setting) =>
      (scope.namespace ?? namespace) === namespace && (scope.name ?? name) === name;
    return Object.assign({}, DEFAULTS, ...this.#settings.filter(applies).map(({ values }) => values)) as VmSwitches;
  }

  /** The node's machine stops: no heartbeats, and nothing on it moves any more. */
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

  /** Back to a world without trouble. */
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
