import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { byAge, isBeingDeleted } from '../../api/meta.js';
import { formatAddress } from '../../ipam/core/address.js';
import { formatCidr } from '../../ipam/core/cidr.js';
import { derivedPool } from '../../ipam/core/derived-pool.js';
import { type Pool, compilePool } from '../../ipam/core/pool.js';
import type { SourceNad } from './nads.js';
import type { Conflict, PlannedPool } from './plan-types.js';
import { addressSpaces } from './address-spaces.js';

/** A pool that is there. */
interface CompiledAdminPool {
  readonly object: AddressPool;
  readonly pool: Pool;
}

/** The pools that will serve the users of the NADs once these have moved over: an administrator's, or the one that Holdfast derives. */
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

  /** Which pool serves a workload on the NAD's network; undefined where none can. */
  serving(nad: SourceNad, namespace: string): Pool | undefined {
    return this.#adminOf(nad.network, namespace)?.pool ?? this.#derived.get(nad.key);
  }

  /** The address space of the NAD once it has moved. */
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
    if (nad.asked.kind === 'none') {
      if (admins.length > 0) return;
      const { path } = nad.place;
      this.#refuse(
        nad,
        `${path} names no range, so whereabouts takes it from whereabouts.conf on the nodes: write range into the NAD, or make an AddressPool for network ${nad.network}`,
      );
      return;
    }
    // it would serve nobody
    if (admins.some(({ pool }) => pool.namespaces === undefined)) return;
    const { network: _network, ...rest } = nad.asked.spec;
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

  /** What an administrator's pool says, against what the NAD does. */
  #compare(nad: SourceNad, space: string, pool: Pool): void {
    if (nad.asked.kind === 'none') return;
    const there = new Set(pool.subnets.map(({ cidr }) => formatCidr(cidr)));
    const networks = [nad.network];
    const subject = `AddressPool ${pool.name}`;
    if (nad.asked.pool.subnets.some(({ cidr }) => !there.has(formatCidr(cidr)))) {
      const message = `serves network ${nad.network} with ${describePool(pool)}, and NAD ${nad.key} asks for ${describePool(nad.asked.pool)}: add the subnets to the pool, or delete it`;
      this.conflicts.push({ kind: 'pool', subject, message, networks });
    }
    if (pool.addressSpace !== space) {
      const message = `has the address space ${pool.addressSpace}, and the networks that share a range with NAD ${nad.key} have ${space}: give their NADs "addressSpace": "${pool.addressSpace}"`;
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

/** Those that can serve, oldest first. */
function adminPools(pools: readonly AddressPool[]): CompiledAdminPool[] {
  return [...pools].sort(byAge).flatMap((object) => {
    if (nadNamespaceOf(object) !== undefined || isBeingDeleted(object)) return [];
    const compiled = compilePool(object);
    return compiled.ok ? [{ object, pool: compiled.pool }] : [];
  });
}

/** Why a pool of the derived one's name cannot be the one that the NAD asks for. */
export function describePoolDifference(
  before: AddressPool,
  wanted: Pool,
  nad: Pick<SourceNad, 'namespace' | 'network'>,
): string | undefined {
  const { name } = before.metadata;
  if (nadNamespaceOf(before) !== nad.namespace || before.spec.network !== nad.network) {
    return `AddressPool ${name} was not made for NADs of namespace ${nad.namespace} and network ${nad.network}: rename that pool`;
  }
  if (isBeingDeleted(before)) return `AddressPool ${name} is being deleted: wait until it is gone`;
  const compiled = compilePool(before);
  if (!compiled.ok) return `AddressPool ${name} is invalid: delete it, or correct it`;
  const { pool } = compiled;
  if (canonicalForm(pool) === canonicalForm(wanted)) return undefined;
  return `of namespace ${nad.namespace} and network ${nad.network} an older NAD, or AddressPool ${name}, says ${describePool(pool)}, and this one ${describePool(wanted)}: make them equal, or give this one another network's name`;
}

/** What may be leased, however it is written. */
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
