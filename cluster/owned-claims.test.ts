import { expect } from 'chai';
import fc from 'fast-check';
import { type IPAMClaim, claimName } from '../api/ipam-claim.js';
import { isForVmNetwork, ipamExtensionsClaimName, servedVmNetwork } from '../api/vm-claims.js';
import { nad } from '../test/objects/pool-objects.js';
import { claim, claimOfIpamExtensions, vmReference } from '../test/objects/workload-objects.js';
import { OwnedClaims } from './owned-claims.js';
import type { VmiNetwork, Workload } from './workload.js';

const OWNER = { kind: 'VirtualMachine', name: 'vm1', uid: 'vm1-uid' } as const;
/** kubevirt/ipam-extensions gives the claims of the first three one name. */
const NAMES = ['net_1', 'Net_1', 'nEt_1', 'data'];

interface Given {
  workload: Workload;
  claims: IPAMClaim[];
}

const network = fc.record({
  name: fc.constantFrom(...NAMES),
  nad: fc.constantFrom('blue', 'green', 'none'),
  gone: fc.boolean(),
});
const anyClaim = fc.record({
  vmNetwork: fc.constantFrom(...NAMES),
  kind: fc.constantFrom('ours', 'unnoted', 'of-ipam-extensions'),
  cniNetwork: fc.constantFrom('blue', 'green'),
  podInterface: fc.constantFrom(...NAMES),
  isOwn: fc.boolean(),
});

function workloadOf(networks: { name: string; nad: string; gone: boolean }[]): Workload {
  const made = networks.map(({ name, nad: nadName, gone }, index): VmiNetwork => ({
    ...{ name, position: index + 1, nad: { namespace: 'vms', name: nadName } },
    ...{ isUnplugRequested: gone, podInterface: `pod-${name}` },
  }));
  return { namespace: 'vms', vmi: 'vm1', owner: OWNER, networks: made, podNetwork: undefined };
}

function claimOf(given: { vmNetwork: string; kind: string; cniNetwork: string; podInterface: string; isOwn: boolean }) {
  const { vmNetwork, kind, cniNetwork, isOwn } = given;
  const owner = vmReference(isOwn ? OWNER.uid : 'other-uid', OWNER.name);
  const name = kind === 'of-ipam-extensions' ? ipamExtensionsClaimName('vm1', vmNetwork) : claimName('vm1', vmNetwork);
  const made =
    kind === 'ours'
      ? claim({ name, vmNetwork, network: cniNetwork, owner })
      : claimOfIpamExtensions({ name, network: cniNetwork, owner });
  return { ...made, spec: { ...made.spec, interface: `pod-${given.podInterface}` } };
}

const given: fc.Arbitrary<Given> = fc.record({
  workload: fc.uniqueArray(network, { selector: ({ name }) => name, minLength: 1 }).map(workloadOf),
  claims: fc.uniqueArray(anyClaim.map(claimOf), { selector: ({ metadata }) => metadata.name }),
});

function viewOf(claims: readonly IPAMClaim[]) {
  const networks = new Map(
    ['blue', 'green'].map((name) => [`vms/${name}`, nad(`vms/${name}`, { name, type: 'bridge' })]),
  );
  const claimsOf = (uid: string) => claims.filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid);
  return { claimsOf, network: (key: string) => networks.get(key)?.config };
}

/** The definition, without any memory: each claim is compared with all networks. */
function defined({ workload, claims }: Given, one: VmiNetwork): IPAMClaim[] {
  const view = viewOf(claims);
  return view.claimsOf(OWNER.uid).filter((each) => {
    if (!isForVmNetwork(each, OWNER.name, one.name)) return false;
    const beside = workload.networks.filter((other) => {
      const config = other.isUnplugRequested ? undefined : view.network(`vms/${other.nad.name}`);
      return other === one || (config?.ok === true && config.network.name === each.spec.network);
    });
    return servedVmNetwork(each, OWNER.name, beside) === one.name;
  });
}

describe('the claims of a workload', () => {
  it('are those that serve a network of the VM’s spec, also if kubevirt/ipam-extensions gave several networks one name', () => {
    fc.assert(
      fc.property(given, ({ workload, claims }) => {
        const owned = new OwnedClaims(workload, viewOf(claims));
        for (const one of workload.networks) expect(owned.of(one)).to.have.members(defined({ workload, claims }, one));
      }),
      { numRuns: 500 },
    );
  });
});
