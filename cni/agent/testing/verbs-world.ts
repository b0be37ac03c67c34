import type { RequestContext } from '../request-queue.js';
import { expect } from 'chai';
import type { AddressPool } from '../../../api/address-pool.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { NETWORKS_ANNOTATION } from '../../../api/names.js';
import { type Address, formatAddress, parseAddress } from '../../../addressing/address/address.js';
import type { LeaseRecord } from '../../../addressing/lease/lease.js';
import { NETWORK_CONFIG, pluginRequest } from '../../testing/cni-requests.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { adminPool, nadDefinition } from '../../../test/objects/pool-objects.js';
import type { PortRules } from '../guard/port-guard.js';
import { type Attachment, AttachmentResolver } from '../attachment.js';
import { CniError } from '../cni-error.js';
import type { NodePod } from '../node-pods.js';
import { readCniRequest, sandboxInterfaceKey } from '../request.js';
import type { Grant } from '../result.js';
import { Verbs, type VerbsDeps } from '../verbs.js';
import { lookupOf } from './lookup-of.js';

const CALL = { signal: new AbortController().signal };

/** Minimal fakes of everything that the verbs use. */
export class VerbsWorld {
  readonly steps: string[] = [];
  pods = [verbsPod('blue@net1')];
  /** Called when a launcher has got an address of its own. */
  lookAgain = (): void => expect.fail('an ordinary pod has no claim');
  claim: IPAMClaim | undefined;
  authorizationFails: CniError | undefined;
  held: Address[] = [];
  checked: 'held' | 'lost' | 'unknown' = 'unknown';
  missing: string | undefined;
  synced: Promise<void> = Promise.resolve();
  notes = new Set<string>();
  releaseFails: Error | undefined;
  /** The sandboxes of ADDs. */
  readonly recorded: string[] = [];
  pools: AddressPool[] = [adminPool('blue')];
  /** Of the NAD vms/blue. */
  config: object = NETWORK_CONFIG;
  /** The addresses that a guard got. */
  guarded: string | undefined;
  /** The rules of each interface. */
  rules: PortRules | undefined;
  /** False: an older version of Holdfast installed the plugin. */
  pluginAppliesGuards = true;
  /** Called before an address is leased; false: the pool has changed. */
  confirm: (maxAgeMs?: number) => boolean = () => true;
  /** Of the pool, until it is undefined. */
  refused: CniError | undefined;

  perform(command: string, config: object = {}, call: RequestContext = CALL) {
    const { guard, ...older } = pluginRequest(command, {}, config);
    const asked = { ...older, ...(this.pluginAppliesGuards && { guard }) };
    return new Verbs(this.#deps()).perform(readCniRequest(asked), call).then(({ result }) => result);
  }

  async refusalOf(command: string, config: object = {}, call: RequestContext = CALL): Promise<CniError> {
    const error: unknown = await this.perform(command, config, call).catch((thrown: unknown) => thrown);
    if (error instanceof CniError) return error;
    throw new Error('no refusal', { cause: error });
  }

  #deps(): VerbsDeps {
    const { lookup } = lookupOf(this.pools, [nadDefinition('vms/blue', this.config)]);
    const confirm = lookup.confirm.bind(lookup);
    lookup.confirm = async (...given) => (await confirm(...given)) && this.confirm(given[2]);
    const find = () => Promise.resolve(this.pods[0]!);
    const pods = { find, read: find };
    const resolver = new AttachmentResolver({ pods, lookup, clock: new ManualClock(0), multusNamespace: 'multus' });
    const grant =
      (kind: string, address: string) =>
      (attachment: Attachment): Promise<Grant> => {
        this.steps.push(`grant ${kind}`);
        expect(attachment.network).to.equal('blue');
        return Promise.resolve([{ address: parseAddress(address), prefixLength: 24, lease: {} as LeaseRecord }]);
      };
    return {
      pods: { find },
      resolver,
      claims: {
        grant: (attachment) => {
          if (this.authorizationFails !== undefined) return Promise.reject(this.authorizationFails);
          return this.claim === undefined ? Promise.resolve(undefined) : grant('claimed', '10.0.0.7')(attachment);
        },
        hasClaim: () => {
          this.lookAgain();
          return Promise.resolve(this.claim !== undefined);
        },
        check: ({ pod: checked }, addresses) => {
          this.steps.push(`check ${checked?.metadata.name} ${addresses.map(formatAddress).join(' ')}`);
          return Promise.resolve(this.checked);
        },
      },
      leases: {
        grant: (attachment) =>
          this.refused === undefined ? grant('own', '10.0.0.9')(attachment) : Promise.reject(this.refused),
        release: (containerId, interfaceName) => {
          this.steps.push(`release ${sandboxInterfaceKey({ containerId, interfaceName })}`);
          return this.releaseFails === undefined ? Promise.resolve() : Promise.reject(this.releaseFails);
        },
        held: () => Promise.resolve(this.held.map((address) => ({ address }) as never)),
        collect: (network, valid) => {
          this.steps.push(`collect ${network} ${[...valid].join()}`);
          return Promise.resolve();
        },
      },
      lookup,
      pendingDeletes: {
        has: (at) => this.notes.has(sandboxInterfaceKey(at)),
        remove: (at) => {
          this.notes.delete(sandboxInterfaceKey(at));
          return Promise.resolve();
        },
      },
      sandboxes: {
        add: ({ containerId, netns }) => {
          this.recorded.push(`${containerId} ${netns} after ${this.steps.length} steps`);
        },
      },
      guard: {
        rulesFor: (_attachment, { grant }) => {
          this.guarded = grant.map(({ address }) => formatAddress(address)).join();
          return Promise.resolve(this.rules);
        },
      },
      informers: { ready: () => this.missing, synced: () => this.synced },
    };
  }
}

export function verbsPod(value: string): NodePod {
  return { metadata: { namespace: 'vms', name: 'p1', uid: 'p1-uid', annotations: { [NETWORKS_ANNOTATION]: value } } };
}
