import { expect } from 'chai';
import fc from 'fast-check';
import { type DefaultRoute, type RouteCandidate, chooseDefaultRoute } from './interfaces.js';

const POD: RouteCandidate = { vmNetwork: 'default', isPodNetwork: true, isServed: false, gateways: [] };
const DATA: RouteCandidate = { vmNetwork: 'data', isPodNetwork: false, isServed: true, gateways: [4, 6] };
const STORAGE: RouteCandidate = { vmNetwork: 'storage', isPodNetwork: false, isServed: true, gateways: [] };
const OTHER: RouteCandidate = { vmNetwork: 'other', isPodNetwork: false, isServed: false, gateways: [] };

describe('the default route of a guest', () => {
  const cases: { name: string; given: RouteCandidate[]; requested?: string; expect: DefaultRoute | string }[] = [
    { name: 'is none without an interface', given: [], expect: { kind: 'none' } },
    {
      name: 'is on the pod network, although another interface has a gateway',
      given: [DATA, POD],
      expect: { kind: 'interface', vmNetwork: 'default', by: 'pod-network' },
    },
    {
      name: 'is on the first interface with a gateway, without a pod network',
      given: [STORAGE, OTHER, DATA, { ...DATA, vmNetwork: 'later' }],
      expect: { kind: 'interface', vmNetwork: 'data', by: 'first-gateway' },
    },
    { name: 'is none if no interface has a gateway', given: [STORAGE, OTHER], expect: { kind: 'none' } },
    {
      name: 'is where the annotation says',
      given: [POD, STORAGE, DATA],
      requested: 'data',
      expect: { kind: 'interface', vmNetwork: 'data', by: 'annotation' },
    },
    {
      name: 'may be on an interface whose routes somebody else brings',
      given: [POD, OTHER],
      requested: 'other',
      expect: { kind: 'interface', vmNetwork: 'other', by: 'annotation' },
    },
    { name: 'is none if the annotation says so', given: [POD, DATA], requested: 'none', expect: { kind: 'none' } },
    {
      name: 'is on a network that is called none',
      given: [{ ...DATA, vmNetwork: 'none' }],
      requested: 'none',
      expect: { kind: 'interface', vmNetwork: 'none', by: 'annotation' },
    },
    {
      name: 'is refused on a network without a gateway',
      given: [STORAGE],
      requested: 'storage',
      expect: 'Annotation ipam.holdfast.dev/default-route: "storage" has no gateway: name another network',
    },
    {
      name: 'is refused on a network that the VM does not have',
      given: [POD, DATA],
      requested: 'dta\u001b[2J',
      expect: 'is not a network of the VM: write one of "default", "data", "none"',
    },
    { name: 'is refused on no network', given: [POD], requested: '', expect: 'is not a network of the VM' },
  ];
  for (const { name, given, requested, expect: wanted } of cases) {
    it(name, () => {
      const route = chooseDefaultRoute(given, requested);
      if (typeof wanted !== 'string') expect(route).to.deep.equal(wanted);
      else expect(route.kind === 'invalid' ? route.message : route.kind).to.include(wanted);
    });
  }

  it('is always on an interface of the VM, and refusals are short and printable', () => {
    const candidate = fc.record({
      vmNetwork: fc.string({ maxLength: 64 }),
      isPodNetwork: fc.boolean(),
      isServed: fc.boolean(),
      gateways: fc.subarray([4, 6] as const),
    });
    fc.assert(
      fc.property(fc.array(candidate), fc.option(fc.string(), { nil: undefined }), (candidates, requested) => {
        const route = chooseDefaultRoute(candidates, requested);
        if (route.kind === 'interface')
          expect(candidates.map(({ vmNetwork }) => vmNetwork)).to.include(route.vmNetwork);
        if (route.kind === 'invalid')
          expect(route.message)
            .to.match(/^\P{Cc}*$/u)
            .and.have.length.below(2000);
      }),
    );
  });
});
