import type { IPAMClaim } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import { type KubeObject, joinKey, splitKey } from '../../api/meta.js';
import { VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import type { Lister } from '../../kube/informers/cache.js';
import { type KeyParts, NamespacedMap } from '../../kube/informers/namespaced-map.js';
import type { Finding } from '../doctor/finding.js';
import { MAX_ROWS, MAX_SHOWN_TEXT, shownAddressesOf } from './bounds.js';
import type { VmRow } from './protocol.js';
import { compareText } from './sort-rows.js';

export interface VmRecord extends KubeObject {
  readonly status: string;
}

export interface VmiRecord extends KubeObject {
  readonly phase: string;
  readonly node: string;
  readonly macs: readonly string[];
}

/** The objects that tell of VMs. */
interface VmSources {
  readonly vms: { readonly cache: Pick<Lister<VmRecord>, 'get'> };
  readonly vmis: { readonly cache: Pick<Lister<VmiRecord>, 'get'> };
  /** @param vm `namespace/name` */
  claimsOfVm(vm: string): readonly IPAMClaim[];
}

/**
 * The VMs of the cluster: those that the user may read, and those that claims name. A row is made when objects of its VM have changed, because a
 * view of a hundred thousand VMs has no time to make them. Objects that come together make it once: a VM may have many claims.
 */
export class VmTable {
  readonly #sources: VmSources;
  readonly #rows = new NamespacedMap<VmRow>();
  /** VMs whose objects have changed since their row was made. */
  #changed: NamespacedMap<KeyParts> | undefined;
  /** Until a row changes. */
  #sorted: VmRow[] | undefined;
  #findings: readonly Finding[] | undefined;
  #problems = new NamespacedMap<string>();

  constructor(sources: VmSources) {
    this.#sources = sources;
  }

  /** Called after each change of an object of the VM. */
  changed({ namespace, name }: KeyParts): void {
    if (this.#changed === undefined) {
      this.#changed = new NamespacedMap();
      queueMicrotask(() => this.#makeRows());
    }
    this.#changed.set({ namespace, name }, { namespace, name });
  }

  #makeRows(): void {
    if (this.#changed === undefined) return;
    const changed = this.#changed.values();
    this.#changed = undefined;
    this.#sorted = undefined;
    for (const vm of changed) {
      const row = vmRow(this.#sources, vm);
      if (row === undefined) this.#rows.delete(vm);
      else this.#rows.set(vm, row);
    }
  }

  /** Returns all, by namespace, then by name. @param findings what the doctor says */
  rows(findings?: readonly Finding[]): readonly VmRow[] {
    if (findings !== this.#findings) this.#problems = problemsOf(findings);
    this.#findings = findings;
    this.#makeRows();
    this.#sorted ??= this.#rows
      .values()
      .sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
    if (this.#problems.size === 0) return this.#sorted;
    return this.#sorted.map((row) => {
      const problem = this.#problems.at(row);
      return problem === undefined ? row : { ...row, problem };
    });
  }
}

/** Of each VM the first finding; of its VMI only if there is none of the VM. */
function problemsOf(findings: readonly Finding[] = []): NamespacedMap<string> {
  const problems = new NamespacedMap<string>();
  for (const kind of [VIRTUAL_MACHINE_KIND, VIRTUAL_MACHINE_INSTANCE_KIND])
    for (const { object, problem, remedy } of findings) {
      const [of, key = ''] = object.split(' ');
      if (of === kind && problems.get(key) === undefined)
        problems.set(splitKey(key), truncate(`${problem} → ${remedy}`, MAX_SHOWN_TEXT));
    }
  return problems;
}

/** Returns one VM, without what the doctor says; undefined if no object tells of it. */
export function vmRow(cluster: VmSources, { namespace, name }: KeyParts): VmRow | undefined {
  const key = joinKey(namespace, name);
  const [vm, vmi, claims] = [cluster.vms.cache.get(key), cluster.vmis.cache.get(key), cluster.claimsOfVm(key)];
  if (vm === undefined && vmi === undefined && claims.length === 0) return undefined;
  const addresses = claims.slice(0, MAX_ROWS).flatMap(shownAddressesOf);
  return { namespace, name, status: vm?.status || (vmi?.phase ?? ''), node: vmi?.node ?? '', addresses, problem: '' };
}
