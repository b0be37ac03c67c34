import { formatAddress } from '../../addressing/address/address.js';
import { type Cidr, formatCidr, overlap } from '../../addressing/address/cidr.js';
import { derivedPool } from '../../addressing/pool/derived-pool.js';
import { type Pool, compilePool } from '../../addressing/pool/pool.js';
import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { byAge, isBeingDeleted } from '../../api/meta.js';
import type { SourceNad } from './nads.js';
import type { Conflict, PlannedPool } from './plan-types.js';

/** An existing pool of an administrator. */
interface CompiledAdminPool {
  readonly object: AddressPool;
  readonly pool: Pool;
}

/** The pools that will serve the NADs after the migration: those of administrators, or those that Holdfast derives. */
export class TargetPools {
  readonly conflicts: Conflict[] = [];
  /** By the NAD's key. */
  readonly #spaces: ReadonlyMap<string, string>;
  readonly #admins: readonly CompiledAdminPool[];
  /** By the NAD's key. */
  readonly #derived = new Map<string, Pool>();
  readonly #planned = new Map<string, PlannedPool>();

  /** @param nads oldest first */
  constructor(nads: readonly SourceNad[], pools: readonly AddressPool[]) {
    this.#admins = adminPools(pools);
    this.#spaces = addressSpaces(nads);
    for (const nad of nads) this.#add(nad, pools);
  }

  /** Returns the pool that will serve a namespace on the NAD's network; undefined if there is none. */
  serving(nad: SourceNad, namespace: string): Pool | undefined {
    return this.#adminOf(nad.network, namespace)?.pool ?? this.#derived.get(nad.key);
  }

  /** Returns the address space of the NAD after the migration. */
  spaceOf(nad: SourceNad): string {
    return this.#spaces.get(nad.key) ?? nad.network;
  }

  get planned(): PlannedPool[] {
    return [...this.#planned.values()];
  }

  #add(nad: SourceNad, pools: readonly AddressPool[]): void {
    const space = this.spaceOf(nad);
    const admins = this.#admins.filter(({ pool }) => pool.network === nad.network);
    for (const { object } of admins) {
      this.#planned.set(object.metadata.name, { pool: object, network: nad.network, state: 'exists' });
    }
    if (!nad.hasMoved) for (const { pool } of admins) this.#compare(nad, space, pool);
    if (nad.requestedSpec.kind === 'none') {
      if (admins.length > 0) return;
      const { path } = nad.place;
      this.#refuse(
        nad,
        `${path} has no range, so whereabouts reads it from whereabouts.conf on the nodes: set range in the NAD, or create an AddressPool for network ${nad.network}`,
      );
      return;
    }
    // a derived pool would serve no namespace
    if (admins.some(({ pool }) => pool.namespaces === undefined)) return;
    const { network: _network, ...rest } = nad.requestedSpec.spec;
    const spec = { network: nad.network, ...rest, ...(space !== nad.network && { addressSpace: space }) };
    this.#derive(nad, derivedPool(nad.namespace, spec), pools);
  }

  #derive(nad: SourceNad, object: AddressPool, pools: readonly AddressPool[]): void {
    const there = nad.hasMoved ? pools.find(({ metadata }) => metadata.name === object.metadata.name) : undefined;
    const compiled = compilePool(there ?? object);
    if (!compiled.ok) {
      this.#refuse(nad, compiled.problems.map(({ field, message }) => `${field} ${message}`).join('; '));
      return;
    }
    const { name } = object.metadata;
    const planned = this.#planned.get(name);
    const before = planned?.pool ?? pools.find(({ metadata }) => metadata.name === name);
    if (before !== undefined && !nad.hasMoved) {
      const problem = describePoolDifference(before, compiled.pool, nad);
      if (problem !== undefined) {
        this.#refuse(nad, problem);
        return;
      }
    }
    this.#derived.set(nad.key, compiled.pool);
    if (planned !== undefined) return;
    const state = before === undefined ? 'create' : 'exists';
    this.#planned.set(name, { pool: before ?? object, network: nad.network, state });
  }

  /** Compares an administrator's pool with the NAD. */
  #compare(nad: SourceNad, space: string, pool: Pool): void {
    if (nad.requestedSpec.kind === 'none') return;
    const there = new Set(pool.subnets.map(({ cidr }) => formatCidr(cidr)));
    const networks = [nad.network];
    const subject = `AddressPool ${pool.name}`;
    if (nad.requestedSpec.pool.subnets.some(({ cidr }) => !there.has(formatCidr(cidr)))) {
      const message = `serves network ${nad.network} with ${describePool(pool)}, but NAD ${nad.key} requests ${describePool(nad.requestedSpec.pool)}: add the subnets to the pool, or delete the pool`;
      this.conflicts.push({ kind: 'pool', subject, message, networks });
    }
    if (pool.addressSpace !== space) {
      const message = `has address space ${pool.addressSpace}, but the networks that share a range with NAD ${nad.key} have ${space}: set "addressSpace": "${pool.addressSpace}" in their NADs`;
      this.conflicts.push({ kind: 'pool', subject, message, networks });
    }
  }

  #adminOf(network: string, namespace: string): CompiledAdminPool | undefined {
    return this.#admins.find(
      ({ pool }) => pool.network === network && (pool.namespaces === undefined || pool.namespaces.has(namespace)),
    );
  }

  #refuse(nad: SourceNad, message: string): void {
    this.conflicts.push({ kind: 'network', subject: `NAD ${nad.key}`, message, networks: [nad.network] });
  }
}

/** Returns the usable pools of administrators, oldest first. */
function adminPools(pools: readonly AddressPool[]): CompiledAdminPool[] {
  return [...pools].sort(byAge).flatMap((object) => {
    if (nadNamespaceOf(object) !== undefined || isBeingDeleted(object)) return [];
    const compiled = compilePool(object);
    return compiled.ok ? [{ object, pool: compiled.pool }] : [];
  });
}

/** Returns why an existing pool cannot serve as the pool derived from the NAD; undefined if it can. */
export function describePoolDifference(
  before: AddressPool,
  wanted: Pool,
  nad: Pick<SourceNad, 'namespace' | 'network'>,
): string | undefined {
  const { name } = before.metadata;
  if (nadNamespaceOf(before) !== nad.namespace || before.spec.network !== nad.network) {
    return `AddressPool ${name} was not created for NADs of namespace ${nad.namespace} and network ${nad.network}: give that pool another name`;
  }
  if (isBeingDeleted(before)) return `AddressPool ${name} is being deleted: wait until it is gone`;
  const compiled = compilePool(before);
  if (!compiled.ok) return `AddressPool ${name} is invalid: correct it, or delete it`;
  const { pool } = compiled;
  if (canonicalForm(pool) === canonicalForm(wanted)) return undefined;
  return `for namespace ${nad.namespace} and network ${nad.network}, an older NAD or AddressPool ${name} has ${describePool(pool)}, but this NAD has ${describePool(wanted)}: make them equal, or set another network name in this NAD`;
}

/** Returns a text that is equal for pools that may lease the same addresses. */
function canonicalForm({ addressSpace, subnets }: Pool): string {
  return JSON.stringify([addressSpace, subnets], (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}

function describePool({ addressSpace, subnets }: Pool): string {
  const parts = subnets.map(
    ({ cidr, open, gateway }) =>
      `${formatCidr(cidr)} (${open.size} addresses${gateway === undefined ? '' : `, gateway ${formatAddress(gateway)}`})`,
  );
  return `${parts.join(', ')} in address space ${addressSpace}`;
}

/**
 * The address space of each NAD, by its key. whereabouts keeps an address unique among all ranges of one `network_name`, and of none: NADs whose
 * ranges overlap there share an address space here, whatever their networks are called. One that names its address space has meant it, and one
 * that has moved has the one that it has.
 * @param nads oldest first: the oldest of those that share names the space
 */
function addressSpaces(nads: readonly SourceNad[]): Map<string, string> {
  const spaces = new Map<string, string>();
  const left = new Set(nads);
  for (const nad of nads) {
    if (!left.has(nad)) continue;
    const sharing = nadsSharingWith(nad, left);
    const space = sharing.map(explicitSpaceOf).find((own) => own !== undefined) ?? nad.network;
    for (const each of sharing) {
      left.delete(each);
      spaces.set(each.key, explicitSpaceOf(each) ?? space);
    }
  }
  return spaces;
}

function explicitSpaceOf({ config, hasMoved, network }: SourceNad): string | undefined {
  return config.addressSpace ?? (hasMoved ? network : undefined);
}

/** All that share a range with it, or with one that does. */
function nadsSharingWith(nad: SourceNad, among: ReadonlySet<SourceNad>): SourceNad[] {
  const found = new Set([nad]);
  // a set goes on with what is added meanwhile
  for (const one of found) {
    for (const other of among) if (one.networkName === other.networkName && shareRange(one, other)) found.add(other);
  }
  // in the order of their age
  return [...among].filter((each) => found.has(each));
}

function shareRange(one: SourceNad, other: SourceNad): boolean {
  const others = cidrsOf(other);
  return cidrsOf(one).some((cidr) => others.some((each) => overlap(cidr, each)));
}

/** Of the ranges that it names. */
export function cidrsOf({ requestedSpec }: SourceNad): Cidr[] {
  return requestedSpec.kind === 'spec' ? requestedSpec.pool.subnets.map(({ cidr }) => cidr) : [];
}
