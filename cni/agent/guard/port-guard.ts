import { nadNamespaceOf } from '../../../api/address-pool.js';
import { type IPAMClaim, recordedMacOf } from '../../../api/ipam-claim.js';
import { type VirtualMachineInstance, isReportedBy } from '../../../api/kubevirt.js';
import { parseMac } from '../../../api/mac-address.js';
import { joinKey, objectKey } from '../../../api/meta.js';
import { MIGRATION_LABEL } from '../../../api/names.js';
import { controllingVmi, podInterfaceName } from '../../../api/pod.js';
import type { Range } from '../../../addressing/address/ranges.js';
import type { Address } from '../../../addressing/address/address.js';
import type { LeaseRecord } from '../../../addressing/lease/lease.js';
import { isServingNamespace } from '../../../addressing/directory/resolution.js';
import type { PoolGuard } from '../../../addressing/pool/guard.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { Client } from '../../../kube/client.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINE_INSTANCES } from '../../../kube/resources.js';
import { type Attachment, userOfAttachment } from '../attachment.js';
import { isApiUnavailable } from '../../../kube/errors.js';
import { CniCode, CniError, readResult } from '../cni-error.js';
import type { PoolLookup } from '../pool-lookup.js';
import type { RequestContext } from '../request-queue.js';
import { invalidConfig } from '../stdin-config.js';
import { allowedSenders } from './allowed-senders.js';
import { guardRules } from './claim-rules.js';
import type { GuardSubject } from './guard-notes.js';
import type { RuleSet } from './rule-set.js';

interface PortGuardDeps {
  readonly client: Pick<Client, 'get'>;
  readonly lookup: PoolLookup;
  readonly nodeName: string;
}

/** Each is a rule through which every tagged frame goes. */
const MAX_VLAN_RANGES = 64;

/** The addresses of an interface, with the leases by which it has them. */
type LeasedAddresses = readonly { readonly address: Address; readonly lease: Pick<LeaseRecord, 'pool' | 'owner'> }[];

/** The rules of a port, and whose it is. */
export interface PortRules extends RuleSet {
  readonly subject: GuardSubject;
  /** The pod is that of a VM: no other container of it sends past a filter inside of the pod. */
  readonly isGuest: boolean;
}

/** A launcher to which the guest may move. */
interface MigrationTarget {
  readonly guestMac?: string;
  /** The guest runs in another VMI, of another namespace or cluster. */
  readonly isReceiver?: boolean;
}

interface GuardedInterface {
  readonly grant: LeasedAddresses;
  /** Those of the trunk. */
  readonly vlans: readonly Range[];
}

/** The claim that owns an address, if one does. */
type ClaimKey = { readonly namespace: string; readonly name: string } | undefined;

/** Decides which rules the port of an interface gets. */
export class PortGuard {
  readonly #deps: PortGuardDeps;

  constructor(deps: PortGuardDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the rules of an interface that has got its addresses; undefined if no pool of it has a guard.
   * @throws {CniError} 11 if it is not known whether there is a guard, or which MAC address the guest has
   */
  async rulesFor(
    attachment: Attachment,
    { grant, vlans }: GuardedInterface,
    call: RequestContext,
  ): Promise<PortRules | undefined> {
    const leasedFrom = grant.map(({ lease }) => lease.pool);
    const now = await this.#poolsNow(attachment, grant, call);
    await this.#deps.lookup.loadPools(leasedFrom, call);
    const pools = [...now, ...leasedFrom];
    const found = this.#guardOf(pools);
    if (found === undefined) return undefined;
    const { pool, guard } = found;
    if (vlans.length > MAX_VLAN_RANGES)
      throw invalidConfig(
        'vlanTrunk',
        `it has ${vlans.length} ranges of VLANs, and a guard can have ${MAX_VLAN_RANGES}: join them`,
      );
    const claim = claimKeyOf(grant);
    const target = await this.#migrationTarget(attachment, call);
    const isTarget = target !== undefined;
    // Multus sets the MAC address of the VM's spec on the interface; without one the target's interface has its own
    const mac =
      isTarget && attachment.mac === undefined
        ? (target.guestMac ?? (await this.#recordedMac(claim, target, call)))
        : undefined;
    const rules = guardRules({
      mode: guard.mode,
      ...(mac !== undefined && { mac }),
      addresses: grant.map(({ address }) => address),
      allowed: allowedSenders(guard, claim && joinKey(claim.namespace, claim.name), attachment.pod),
      isHeld: isTarget && guard.holdsMigrations,
      vlans,
    });
    const isGuest = controllingVmi(attachment.pod) !== undefined;
    return { ...rules, subject: this.#subjectOf(attachment, pool, claim), isGuest };
  }

  #subjectOf({ pod: { metadata }, interfaceName }: Attachment, pool: string, claim: ClaimKey): GuardSubject {
    const { namespace, name, uid } = metadata;
    const written = this.#deps.lookup.writtenPool(pool);
    const nadNamespace = written && nadNamespaceOf(written);
    return {
      ...{ namespace, pod: name, podUid: uid, interfaceName, pool },
      ...(claim !== undefined && { claim: claim.name }),
      ...(nadNamespace !== undefined && { nadNamespace }),
    };
  }

  /** Those that would give the interface an address now: its lease may be older than the administrator's pool. */
  async #poolsNow(attachment: Attachment, grant: LeasedAddresses, call: RequestContext): Promise<string[]> {
    const { lookup } = this.#deps;
    const user = userOfAttachment(attachment);
    await lookup.load(user, call);
    const hasAddresses = grant.length > 0;
    const resolution = lookup.directory.resolveUser({ ...user, hasAddresses, keepsPool: hasAddresses, isClaim: true });
    if (resolution.kind === 'served') return [resolution.pool.name];
    if (resolution.kind === 'foreign') return [];
    const pools = lookup.adminPools(user.network).filter((each) => isServingNamespace(each, user.namespace));
    return pools.map(({ name }) => name);
  }

  /** @returns the guard of the first pool that has one, with the strictest mode of all, and the pool of that mode */
  #guardOf(pools: readonly string[]): { readonly pool: string; readonly guard: PoolGuard } | undefined {
    const guards = [...new Set(pools)].flatMap((pool) => {
      const guard = this.#guardOfPool(pool);
      return guard === undefined ? [] : [{ pool, guard }];
    });
    const [first] = guards;
    const strictest = guards.find(({ guard }) => guard.mode === 'Enforce') ?? first;
    if (first === undefined || strictest === undefined) return undefined;
    return { pool: strictest.pool, guard: { ...first.guard, mode: strictest.guard.mode } };
  }

  /** An invalid pool may have had a guard, and an unknown one too. */
  #guardOfPool(name: string): PoolGuard | undefined {
    const { lookup } = this.#deps;
    const pool = lookup.directory.pool(name);
    if (pool !== undefined) return pool.guard;
    const written = lookup.writtenPool(name);
    if (written !== undefined && written.spec.guard === undefined) return undefined;
    const state = written === undefined ? 'is not known to the agent' : 'is invalid';
    throw new CniError(
      CniCode.TryAgain,
      `AddressPool ${name} ${state}, so it is not known whether its interfaces have a guard: the kubelet retries`,
    );
  }

  /**
   * Returns what is known of the guest if it runs on another node now. Former targets keep the label. If the VMI cannot be read, the pod
   * counts as a target, because a hold ends by itself.
   */
  async #migrationTarget(
    { pod, interfaceName }: Attachment,
    { signal }: RequestContext,
  ): Promise<MigrationTarget | undefined> {
    const vmi = controllingVmi(pod);
    if (vmi === undefined || pod.metadata.labels?.[MIGRATION_LABEL] === undefined) return undefined;
    const { client, nodeName } = this.#deps;
    const ref = { namespace: pod.metadata.namespace, name: vmi.name };
    try {
      const found = await findUnlessGone(client, VIRTUAL_MACHINE_INSTANCES, ref, { signal });
      if (found?.status?.nodeName === nodeName) return undefined;
      return found === undefined ? {} : migrationTargetOf(found, interfaceName);
    } catch (error) {
      if (isApiUnavailable(error)) return {};
      throw error;
    }
  }

  /** Claims on networks without IPAM record the MAC address. */
  async #recordedMac(key: ClaimKey, { isReceiver }: MigrationTarget, { signal }: RequestContext): Promise<string> {
    const read = key && findUnlessGone<IPAMClaim>(this.#deps.client, IPAM_CLAIMS, key, { signal });
    const claim = await readResult(Promise.resolve(read));
    const mac = claim && recordedMacOf(claim);
    if (mac !== undefined) return mac;
    const subject = claim === undefined ? 'the claim of the guest' : `IPAMClaim ${objectKey(claim)}`;
    const why = isReceiver
      ? ', which comes from another namespace or cluster: write it as macAddress into the spec of this VM'
      : ' yet: the kubelet retries';
    throw new CniError(CniCode.TryAgain, `${subject} does not show the MAC address of the guest${why}`);
  }
}

/** Finds the MAC address that libvirt's domain has on an interface of the launcher. */
function migrationTargetOf({ status }: VirtualMachineInstance, interfaceName: string): MigrationTarget {
  const found = status?.interfaces?.find(
    (each) =>
      isReportedBy('domain', each) &&
      (each.podInterfaceName === interfaceName || podInterfaceName(each.name ?? '') === interfaceName),
  );
  const guestMac = parseMac(found?.mac ?? '');
  return guestMac === undefined ? { isReceiver: !status?.nodeName } : { guestMac };
}

function claimKeyOf(grant: LeasedAddresses): ClaimKey {
  const owner = grant[0]?.lease.owner;
  if (owner?.kind !== 'IPAMClaim') return undefined;
  return { namespace: owner.namespace, name: owner.name };
}
