import { expect } from 'chai';
import fc from 'fast-check';
import { claimOwnerOf } from '../api/ipam-claim.js';
import { CLAIM_NAD, CLAIM_REFERENCE_KEY } from '../api/names.js';
import { podInterfaceName } from '../api/pod.js';
import { makeClaim, makeNad, makeVm, makeVmi } from '../test/objects/kubevirt-objects.js';
import { networksAfter, reviewCreate, reviewUpdate } from '../test/objects/pod-review.js';

function keepsReferences(before: string, after: string): boolean {
  const [old, now] = [before, after].map((value) => JSON.parse(value) as Record<string, unknown>[]);
  return old!.every((element, index) => {
    const reference = element[CLAIM_REFERENCE_KEY];
    return reference === undefined || reference === now![index]![CLAIM_REFERENCE_KEY];
  });
}

describe('any launcher pod', () => {
  const vmi = makeVmi('vm1', { data: 'blue', more: 'green', lost: 'nowhere', plain: 'plain', same: 'blue' });
  const nads = [makeNad('blue'), makeNad('green', { network: 'blue' }), makeNad('plain', { persistent: false })];
  const claim = fc
    .record({
      network: fc.constantFrom('data', 'more', 'same', 'plain'),
      cni: fc.constantFrom('blue', 'green'),
      ownerUid: fc.constantFrom('vm1-vm-uid', 'vm1-vm-uid', 'vm1-vm-uid', 'other', null),
      terminating: fc.boolean(),
      noted: fc.boolean(),
    })
    .map(({ network, cni, noted, ...rest }) => {
      const made = makeClaim('vm1', network, { ...rest, network: cni });
      if (!noted) delete made.metadata.annotations?.[CLAIM_NAD];
      return made;
    });
  const someElement = fc.record(
    {
      name: fc.constantFrom('blue', 'green', 'plain', 'nowhere'),
      interface: fc.constantFrom(
        ...['data', 'more', 'lost', 'plain', 'same'].map(podInterfaceName),
        'net1',
        'net2',
        'eth7',
      ),
      mac: fc.constantFrom('02:00:00:00:00:01'),
      'io.example/key': fc.jsonValue({ maxDepth: 2 }),
      ips: fc.constantFrom([], ['10.0.0.1']),
      [CLAIM_REFERENCE_KEY]: fc.constantFrom('vm1.data', 'vm1.same', 'vm2.data'),
    },
    { requiredKeys: ['name'] },
  );
  const annotation = fc
    .tuple(fc.array(someElement, { maxLength: 5 }), fc.constantFrom(undefined, 1, '\t'))
    .map(([elements, indent]) => JSON.stringify(elements, null, indent));
  const cluster = fc.record({
    claims: fc.uniqueArray(claim, { selector: ({ metadata }) => metadata.name, maxLength: 4 }),
    nads: fc.subarray(nads),
    enabled: fc.boolean(),
    vmis: fc.constantFrom([vmi], [vmi], []),
    vms: fc.constantFrom([makeVm('vm1')], [makeVm('vm1')], []),
  });

  // its reference is that of kubevirt/ipam-extensions for another network of the same NAD
  const onBlue = makeClaim('vm1', 'more', { network: 'blue' });
  onBlue.metadata.annotations = { ...onBlue.metadata.annotations, [CLAIM_NAD]: 'vms/blue' };
  const REPLACED = {
    claims: [makeClaim('vm1', 'same', { network: 'blue' }), onBlue],
    nads: [],
    enabled: false,
    vmis: [vmi] as const,
    vms: [makeVm('vm1')] as const,
  };
  const REPLACED_NETWORKS = JSON.stringify([
    { name: 'blue', interface: podInterfaceName('more'), [CLAIM_REFERENCE_KEY]: 'vm1.same' },
  ]);

  it('is not changed again by a second review on CREATE or UPDATE', () => {
    fc.assert(
      fc.property(cluster, annotation, (given, networks) => {
        const verdict = reviewCreate(given, networks);
        fc.pre(verdict.allowed);
        const once = networksAfter(verdict, networks);
        expect(reviewCreate(given, once)).to.deep.include({ allowed: true, patch: [] });
        // a pod keeps its own references, so an UPDATE does not replace them as a CREATE does
        const old = keepsReferences(networks, once) ? networks : '[]';
        expect(reviewUpdate(given, old, once)).to.deep.include({ allowed: true, patch: [] });
      }),
      { examples: [[REPLACED, REPLACED_NETWORKS]] },
    );
  });

  it('gets back byte for byte what virt-controller removes', () => {
    fc.assert(
      fc.property(cluster, annotation, (given, networks) => {
        const stripped = networks.replaceAll(/"ipam-claim-reference":\s*"[^"]*"/g, '"x.example/was":1');
        const verdict = reviewCreate(given, stripped);
        fc.pre(verdict.allowed);
        const once = networksAfter(verdict, stripped);
        const again = reviewUpdate(given, once, stripped);
        expect(networksAfter(again, stripped)).to.equal(once);
      }),
    );
  });

  it('keeps everything but the references, and never refers to a claim of another owner', () => {
    fc.assert(
      fc.property(cluster, annotation, (given, networks) => {
        const verdict = reviewCreate(given, networks);
        fc.pre(verdict.allowed);
        const [before, after] = [networks, networksAfter(verdict, networks)].map(
          (value) => JSON.parse(value) as Record<string, unknown>[],
        );
        const bare = (elements: Record<string, unknown>[]) =>
          elements.map(({ [CLAIM_REFERENCE_KEY]: _, ...rest }) => rest);
        expect(bare(after!)).to.deep.equal(bare(before!));
        for (const { [CLAIM_REFERENCE_KEY]: name } of after!) {
          const named = given.claims.find(({ metadata }) => metadata.name === name);
          if (named !== undefined) expect(claimOwnerOf(named)?.uid ?? 'vm1-vm-uid').to.equal('vm1-vm-uid');
        }
      }),
    );
  });
});
