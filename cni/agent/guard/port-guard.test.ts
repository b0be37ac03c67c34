import { expect } from 'chai';
import type { AddressPool } from '../../../api/address-pool.js';
import {
  CLAIM_GUEST_MAC,
  MIGRATION_LABEL,
  NETWORKS_ANNOTATION,
  POOL_NAD_NAMESPACE,
  SHARED_ADDRESSES_ANNOTATION,
} from '../../../api/names.js';
import { podInterfaceName } from '../../../api/pod.js';
import { networkSelectionsOf } from '../../../api/networks/network-selection.js';
import { parseAddress } from '../../../addressing/address/address.js';
import type { Range } from '../../../addressing/address/ranges.js';
import type { LeaseRecord } from '../../../addressing/lease/lease.js';
import { StatusError, TransportError } from '../../../kube/errors.js';
import { VMI_OWNER } from '../../../test/objects/launcher-pods.js';
import { adminPool, holdfastConfig, nadDefinition } from '../../../test/objects/pool-objects.js';
import type { Attachment } from '../attachment.js';
import { CniError } from '../cni-error.js';
import type { NodePod } from '../node-pods.js';
import { lookupOf } from '../testing/lookup-of.js';
import { PortGuard } from './port-guard.js';
import { type RuleSet, EVERY_FRAME } from './rule-set.js';

const CALL = { signal: new AbortController().signal };
const GUEST_MAC = '02:00:00:00:00:07';
const ENFORCE: AddressPool['spec']['guard'] = { mode: 'Enforce' };
const MISSING = new StatusError({ request: 'GET /x', status: 404, reason: 'NotFound', message: 'no' });

describe('the guard of a port', () => {
  let pools: AddressPool[];
  let owner: LeaseRecord['owner'];
  /** A pool. */
  let leasedFrom: string;
  /** Objects by kind; an error is thrown. */
  let objects: Record<string, object>;
  let reads: string[];

  beforeEach(() => {
    pools = [guarded(ENFORCE)];
    owner = { kind: 'IPAMClaim', namespace: 'vms', name: 'vm1.blue', uid: 'c1' };
    leasedFrom = 'blue';
    objects = {
      virtualmachineinstances: { metadata: { name: 'vm1' }, status: { nodeName: 'source' } },
      ipamclaims: { metadata: { namespace: 'vms', name: 'vm1.blue', annotations: { [CLAIM_GUEST_MAC]: GUEST_MAC } } },
    };
    reads = [];
  });

  function guarded(guard: AddressPool['spec']['guard'] | undefined): AddressPool {
    const pool = adminPool('blue');
    return { ...pool, spec: { ...pool.spec, ...(guard !== undefined && { guard }) } };
  }

  async function rulesFor(
    given: {
      labels?: Record<string, string>;
      mac?: string;
      shared?: string;
      vlans?: readonly Range[];
      hasAddress?: boolean;
      interfaceName?: string;
    } = {},
  ) {
    const { lookup } = lookupOf(pools, [nadDefinition('vms/blue', holdfastConfig())]);
    const get = ({ plural }: { plural: string }) => {
      reads.push(plural);
      const found = objects[plural] ?? MISSING;
      return found instanceof Error ? Promise.reject(found) : Promise.resolve(found as never);
    };
    const guard = new PortGuard({ client: { get }, lookup, nodeName: 'target' });
    const metadata = {
      namespace: 'vms',
      name: 'virt-launcher-vm1',
      uid: 'p1',
      annotations: {
        [NETWORKS_ANNOTATION]: 'blue@net1',
        ...(given.shared !== undefined && { [SHARED_ADDRESSES_ANNOTATION]: given.shared }),
      },
      labels: given.labels ?? {},
      ownerReferences: [VMI_OWNER],
    };
    const pod: NodePod = { metadata };
    const [selection] = networkSelectionsOf(pod);
    const attachment: Attachment = {
      ...{
        pod,
        containerId: 'c1',
        interfaceName: given.interfaceName ?? 'net1',
        network: 'blue',
        requested: [],
        mac: given.mac,
      },
      selection: selection!,
    };
    const lease = { pool: leasedFrom, owner } as LeaseRecord;
    const grant = [{ address: parseAddress('10.1.0.5'), prefixLength: 24, lease }];
    const { vlans = [], hasAddress = true } = given;
    return guard.rulesFor(attachment, { grant: hasAddress ? grant : [], vlans }, CALL);
  }

  async function refusal(given: Parameters<typeof rulesFor>[0] = {}): Promise<CniError> {
    const error: unknown = await rulesFor(given).catch((thrown: unknown) => thrown);
    if (error instanceof CniError) return error;
    throw new Error('no refusal', { cause: error });
  }

  function elements(rules: RuleSet | undefined, set: string): readonly string[] | undefined {
    return rules?.sets.find(({ name }) => name === set)?.elements;
  }

  const TARGET = { labels: { [MIGRATION_LABEL]: 'm1' } };

  it('has no rules and reads nothing if the pool has no guard', async () => {
    pools = [guarded(undefined)];
    expect(await rulesFor(TARGET)).to.equal(undefined);
    expect(reads).to.deep.equal([]);
  });

  it('passes the addresses of the claim, with the MAC address of the interface, and holds no first start', async () => {
    const rules = await rulesFor();
    expect(rules?.mode).to.equal('Enforce');
    expect(elements(rules, 'ipv4')).to.deep.equal(['0a010005']);
    expect(elements(rules, 'macs')).to.deep.equal(['interface']);
    expect(elements(rules, 'held')).to.equal(undefined);
    expect(reads).to.deep.equal([]);
  });

  it("holds the target of a migration, with the guest's MAC address if its spec has none", async () => {
    const rules = await rulesFor(TARGET);
    expect(elements(rules, 'macs')).to.deep.equal(['020000000007']);
    expect(elements(rules, 'held')).to.deep.equal([EVERY_FRAME.mask]);
    const withMac = await rulesFor({ ...TARGET, mac: GUEST_MAC });
    expect(elements(withMac, 'macs')).to.deep.equal(['interface']);
    expect(elements(withMac, 'held')).to.deep.equal([EVERY_FRAME.mask]);
  });

  for (const [how, fields] of Object.entries({
    'names the interface of the launcher': { name: 'data', podInterfaceName: 'net1' },
    'names the network only': { name: 'data' },
  }))
    it(`knows the MAC address of a guest from its VMI, which ${how}, if the claim records none`, async () => {
      objects.ipamclaims = { metadata: { namespace: 'vms', name: 'vm1.blue' } };
      const ofDomain = { infoSource: 'domain, multus-status', mac: '02:00:00:00:00:08', ...fields };
      const interfaces = [{ name: 'data', infoSource: 'guest-agent', mac: '02:00:00:00:00:09' }, ofDomain];
      objects.virtualmachineinstances = { metadata: { name: 'vm1' }, status: { nodeName: 'source', interfaces } };
      const interfaceName = 'podInterfaceName' in fields ? 'net1' : podInterfaceName('data');
      expect(elements(await rulesFor({ ...TARGET, interfaceName }), 'macs')).to.deep.equal(['020000000008']);
      expect(reads).to.deep.equal(['virtualmachineinstances']);
    });

  it('does not hold an interface that is plugged into a former target', async () => {
    objects.virtualmachineinstances = { metadata: { name: 'vm1' }, status: { nodeName: 'target' } };
    expect(elements(await rulesFor(TARGET), 'held')).to.equal(undefined);
  });

  it('holds a possible target if the API server does not say where the guest runs', async () => {
    objects.virtualmachineinstances = new TransportError('unsent', 'GET /x: refused');
    expect(elements(await rulesFor({ ...TARGET, mac: GUEST_MAC }), 'held')).to.deep.equal([EVERY_FRAME.mask]);
  });

  it('holds nothing if the pool says so, but knows the MAC address of the guest', async () => {
    pools = [guarded({ mode: 'Observe', migrationHold: false })];
    const rules = await rulesFor(TARGET);
    expect(elements(rules, 'held')).to.equal(undefined);
    expect(elements(rules, 'macs')).to.deep.equal(['020000000007']);
  });

  it('refuses a target whose guest has an unknown MAC address', async () => {
    objects.ipamclaims = { metadata: { namespace: 'vms', name: 'vm1.blue' } };
    expect(await refusal(TARGET)).to.include({ code: 11 });
    expect((await refusal(TARGET)).message).to.include('IPAMClaim vms/vm1.blue does not show the MAC address');
  });

  it('says what to do if the guest comes from another VMI, which alone knows its MAC address', async () => {
    objects.virtualmachineinstances = { metadata: { name: 'vm1' }, status: { phase: 'Scheduling' } };
    objects.ipamclaims = { metadata: { namespace: 'vms', name: 'vm1.blue' } };
    expect((await refusal(TARGET)).message).to.include('write it as macAddress into the spec of this VM');
    expect(elements(await rulesFor({ ...TARGET, mac: GUEST_MAC }), 'held')).to.deep.equal([EVERY_FRAME.mask]);
  });

  it('allows further addresses only to the claims that the pool names', async () => {
    const allow = [
      { addresses: ['10.1.0.100'], claims: ['vms/vm1.blue'], macs: ['00:00:5e:00:01:0a'] },
      { addresses: ['10.1.0.101'], claims: ['other/vm1.blue'] },
      { addresses: ['10.1.0.102'] },
    ];
    pools = [guarded({ mode: 'Enforce', allow })];
    const own = ['0a010005', '0a010064', '0a010066'];
    expect(elements(await rulesFor(), 'ipv4')).to.deep.equal(own);
    expect(elements(await rulesFor(), 'macs')).to.deep.equal(['interface', '00005e00010a']);
    owner = { kind: 'Pod', namespace: 'vms', name: 'vm1.blue', uid: 'p1' };
    expect(elements(await rulesFor(), 'ipv4')).to.deep.equal([own[0], own[2]]);
  });

  it('allows the addresses that a pod requests within a range that the pool gives on request, and no others', async () => {
    const onRequest = { addresses: ['10.1.0.100-10.1.0.110'], macs: ['00:00:5e:00:01:0a'], onRequest: true };
    pools = [guarded({ mode: 'Enforce', allow: [onRequest] })];
    const shared = '["10.1.0.100", "10.1.0.111", "fd00::1"]';
    expect(elements(await rulesFor({ shared }), 'ipv4')).to.deep.equal(['0a010005', '0a010064']);
    expect(elements(await rulesFor({ shared }), 'ipv6')).to.deep.equal([]);
    expect(elements(await rulesFor({ shared }), 'macs')).to.deep.equal(['interface', '00005e00010a']);
    for (const none of [undefined, '["10.1.0.99"]']) {
      const rules = await rulesFor(none === undefined ? {} : { shared: none });
      expect(elements(rules, 'ipv4')).to.deep.equal(['0a010005']);
      expect(elements(rules, 'macs')).to.deep.equal(['interface']);
    }
    pools = [guarded({ mode: 'Enforce', allow: [{ ...onRequest, claims: ['other/vm1.blue'] }] })];
    expect(elements(await rulesFor({ shared }), 'ipv4')).to.deep.equal(['0a010005']);
  });

  it('gives nothing for a request if the pool gives nothing on request', async () => {
    expect(elements(await rulesFor({ shared: '["10.1.0.100"]' }), 'ipv4')).to.deep.equal(['0a010005']);
  });

  const seventeen = JSON.stringify(Array.from({ length: 17 }, () => '10.1.0.1'));
  for (const shared of ['10.1.0.100', '{}', '["all"]', seventeen, ' '.repeat(100_000)]) {
    it(`refuses a request that is invalid: ${shared.slice(0, 16)}`, async () => {
      pools = [guarded({ mode: 'Enforce', allow: [{ addresses: ['10.1.0.0/24'], onRequest: true }] })];
      expect(await refusal({ shared })).to.include({ code: 100 });
      expect((await refusal({ shared })).message).to.include(SHARED_ADDRESSES_ANNOTATION);
    });
  }

  it('refuses an interface whose pool is unknown or has an invalid guard, because it may have to be guarded', async () => {
    pools = [guarded({ mode: 'enforce' as never })];
    expect(await refusal()).to.include({ code: 11 });
    expect((await refusal()).message).to.include('AddressPool blue is invalid');
    pools = [];
    expect((await refusal()).message).to.include('AddressPool blue is not known');
  });

  describe("of an address that was leased before the administrator's pool was created", () => {
    const allow = [{ addresses: ['10.1.0.100'] }];
    const ofNad = (guard?: AddressPool['spec']['guard']) =>
      adminPool('blue.vms', { nadNamespace: 'vms', ...(guard !== undefined && { guard }) });

    beforeEach(() => (leasedFrom = 'blue.vms'));

    it("is that of the administrator's pool", async () => {
      pools = [ofNad(), guarded({ mode: 'Enforce', allow })];
      const rules = await rulesFor();
      expect(rules?.mode).to.equal('Enforce');
      expect(elements(rules, 'ipv4')).to.deep.equal(['0a010005', '0a010064']);
      expect(rules?.subject.pool).to.equal('blue');
    });

    it("has the stricter mode of both pools, and what the administrator's pool allows", async () => {
      pools = [ofNad({ mode: 'Enforce' }), guarded({ mode: 'Observe', allow, migrationHold: false })];
      const rules = await rulesFor(TARGET);
      expect(rules?.mode).to.equal('Enforce');
      expect(elements(rules, 'ipv4')).to.include('0a010064');
      expect(elements(rules, 'held')).to.equal(undefined);
      expect(rules?.subject).to.include({ pool: 'blue.vms', nadNamespace: 'vms' });
      pools = [ofNad({ mode: 'Enforce' }), guarded(undefined)];
      expect((await rulesFor())?.mode).to.equal('Enforce');
    });

    it("is not known while the administrator's pool is invalid, unless it is for other namespaces", async () => {
      const pool = guarded({ mode: 'enforce' as never });
      pools = [ofNad(), pool];
      expect((await refusal()).message).to.include('AddressPool blue is invalid');
      pools = [ofNad(), { ...pool, spec: { ...pool.spec, namespaces: ['others'] } }];
      expect(await rulesFor()).to.equal(undefined);
    });
  });

  it('passes no address of an interface without one', async () => {
    const rules = await rulesFor({ hasAddress: false });
    for (const set of ['ipv4', 'ipv6']) expect(elements(rules, set)).to.deep.equal([]);
    expect(rules?.isGuest).to.equal(true);
    expect(rules?.subject).to.deep.equal({
      ...{ namespace: 'vms', pod: 'virt-launcher-vm1', podUid: 'p1', interfaceName: 'net1', pool: 'blue' },
    });
  });

  it('names claim and pool, and the namespace of the NADs of a derived pool', async () => {
    const [pool] = pools;
    const annotations = { [POOL_NAD_NAMESPACE]: 'vms' };
    pools = [{ ...pool!, metadata: { ...pool!.metadata, annotations } }];
    expect((await rulesFor())?.subject).to.include({ claim: 'vm1.blue', pool: 'blue', nadNamespace: 'vms' });
  });

  it('refuses a trunk with more ranges of VLANs than rules may have, if there is a guard', async () => {
    const vlans = Array.from({ length: 65 }, (_, index) => ({
      first: BigInt(2 * index + 1),
      last: BigInt(2 * index + 1),
    }));
    expect((await refusal({ vlans })).message).to.include('vlanTrunk: it has 65 ranges of VLANs');
    pools = [guarded(undefined)];
    expect(await rulesFor({ vlans })).to.equal(undefined);
  });

  it('passes frames with VLAN tags if the plugin makes the port a trunk', async () => {
    const accepted = (rules: RuleSet | undefined) =>
      rules?.chains[0]?.rules.some(({ verdict, matches }) => verdict === 'accept' && matches[0]?.value === '8100');
    expect(accepted(await rulesFor())).to.equal(false);
    expect(accepted(await rulesFor({ vlans: [{ first: 7n, last: 7n }] }))).to.equal(true);
  });
});
