import { expect } from 'chai';
import fc from 'fast-check';
import { DEFAULT_NETWORK_ANNOTATION, PRIMARY_CLAIM_ANNOTATION } from '../api/names.js';
import { makeClaim, makeVm } from '../test/objects/kubevirt-objects.js';
import { nad } from '../test/objects/workload-objects.js';
import {
  type Given,
  MAC,
  UDN,
  VM1,
  WITH_MAC,
  annotationsAfter,
  create,
  launcherOf,
  requesting,
  update,
} from './testing/primary-review.js';

const text = fc.oneof(
  fc.constantFrom('vm1.default', 'vm2.default', WITH_MAC, '', '[]', 'udn', '{', '__proto__'),
  fc.string({ maxLength: 40 }),
  fc.constant('x'.repeat(200_000)),
);
const annotations = fc
  .record({ [PRIMARY_CLAIM_ANNOTATION]: text, [DEFAULT_NETWORK_ANNOTATION]: text }, { requiredKeys: [] })
  .map((found) => ({ ...found }));
const config = fc.oneof(
  fc.constant({
    name: 'tenant-net',
    role: 'primary',
    allowPersistentIPs: true,
    subnets: '192.168.0.0/16,fd12:1234::/64',
  }),
  fc.record({
    name: fc.constantFrom('tenant-net', 'other', 5),
    role: fc.constantFrom('primary', 'secondary', null, {}),
    allowPersistentIPs: fc.constantFrom(true, false, 'true'),
    subnets: fc.oneof(fc.constantFrom('10.0.0.0/8', ',', '::/0,0.0.0.0/0', 7), fc.string({ maxLength: 30 })),
  }),
  fc.string({ maxLength: 30 }),
);
const nads = fc
  .array(config, { maxLength: 4 })
  .map((configs) => configs.map((each, index) => nad(`udn${index}`, each)));
const claims = fc.subarray([
  makeClaim('vm1', 'default', { network: 'tenant-net' }),
  makeClaim('vm1', 'data'),
  makeClaim('vm2', 'default', { network: 'tenant-net' }),
]);
const request = fc.oneof(
  fc.constantFrom(undefined, { default: ['192.168.1.10'] }, { default: [] }, { default: {} }, []),
  fc.dictionary(
    fc.constantFrom('default', 'other'),
    fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ maxLength: 9 }))),
  ),
);
const given = fc.record({
  annotations,
  nads,
  claims,
  request,
  mac: fc.constantFrom(undefined, MAC, '', 'x'),
  enabled: fc.boolean(),
});

function asGiven({ request: asked, mac, ...rest }: typeof given extends fc.Arbitrary<infer T> ? T : never): Given {
  return { ...rest, vms: [makeVm('vm1'), makeVm('vm2')], vmi: requesting(asked, mac) };
}

describe('any launcher in a namespace with a primary network, whatever its tenant writes', () => {
  it('names no claim or its own, and a second review changes nothing', () => {
    fc.assert(
      fc.property(given, (values) => {
        const cluster = asGiven(values);
        const pod = launcherOf(cluster.vmi ?? VM1, cluster.annotations);
        const verdict = create(cluster, pod);
        if (!verdict.allowed) {
          expect(verdict.reason.length).to.be.lessThan(3_000);
          return;
        }
        const after = annotationsAfter(verdict, pod);
        expect(after[PRIMARY_CLAIM_ANNOTATION] ?? 'vm1.default').to.match(/^vm1\.default(-[0-9a-f]{10})?$/);
        const again = launcherOf(cluster.vmi ?? VM1, after);
        expect(create(cluster, again)).to.deep.include({ allowed: true, patch: [] });
        expect(update(after, after, cluster)).to.deep.include({ allowed: true, patch: [] });
      }),
    );
  });

  it('never changes its claim while it runs, and with a claim never its request', () => {
    fc.assert(
      fc.property(annotations, annotations, (before, after) => {
        const kept = annotationsAfter(update(before, after, { nads: [UDN] }), launcherOf(VM1, after));
        expect(kept[PRIMARY_CLAIM_ANNOTATION]).to.equal(before[PRIMARY_CLAIM_ANNOTATION]);
        const expected = PRIMARY_CLAIM_ANNOTATION in before ? before : after;
        expect(kept[DEFAULT_NETWORK_ANNOTATION]).to.equal(expected[DEFAULT_NETWORK_ANNOTATION]);
      }),
    );
  });
});
