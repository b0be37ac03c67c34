import { expect } from 'chai';
import fc from 'fast-check';
import { CLAIM_REFERENCE_KEY, DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../names.js';
import {
  NetworkSelectionError,
  type NetworkSelection,
  defaultSelectionOf,
  interfaceNameOf,
  parseNetworkSelections,
  networkSelectionsOf,
  withClaimReferences,
} from './network-selection.js';

describe('the networks annotation', () => {
  const readable: { name: string; given: string; expect: NetworkSelection[] }[] = [
    { name: 'an empty value', given: ' ', expect: [] },
    { name: 'an empty list', given: '[]', expect: [] },
    {
      name: 'the comma form',
      given: 'blue, other/green@net7',
      expect: [
        { position: 1, nad: { namespace: 'vms', name: 'blue' }, requestsAddresses: false },
        { position: 2, nad: { namespace: 'other', name: 'green' }, interface: 'net7', requestsAddresses: false },
      ],
    },
    {
      name: 'the JSON form, as KubeVirt writes it',
      given: '[{"name":"blue","namespace":"vms","mac":"02:00:00:00:00:01","interface":"pod3a6eb0790f3"}]',
      expect: [
        { position: 1, nad: { namespace: 'vms', name: 'blue' }, interface: 'pod3a6eb0790f3', requestsAddresses: false },
      ],
    },
    {
      name: 'addresses and a claim, and an empty namespace and interface as absent ones',
      given: `[{"name":"blue","namespace":"","interface":"","ips":["10.1.0.5/24"],"${CLAIM_REFERENCE_KEY}":"vm1.data"}]`,
      expect: [
        { position: 1, nad: { namespace: 'vms', name: 'blue' }, requestsAddresses: true, claimReference: 'vm1.data' },
      ],
    },
    {
      name: 'null addresses and an empty reference as none, and keys that are not read in any case',
      given: `[{"name":"blue","ips":null,"MAC":"02:00:00:00:00:01","${CLAIM_REFERENCE_KEY}":""}]`,
      expect: [{ position: 1, nad: { namespace: 'vms', name: 'blue' }, requestsAddresses: false }],
    },
    {
      name: "Multus' old key of the interface name, which counts if the present one is empty or absent",
      given: '[{"name":"a","interfaceRequest":"x1"},{"name":"b","interface":"","interfaceRequest":"x2"}]',
      expect: [
        { position: 1, nad: { namespace: 'vms', name: 'a' }, interface: 'x1', requestsAddresses: false },
        { position: 2, nad: { namespace: 'vms', name: 'b' }, interface: 'x2', requestsAddresses: false },
      ],
    },
    {
      name: 'both keys of the interface name, of which the present one counts',
      given: '[{"name":"a","interfaceRequest":"x1","interface":"y1"}]',
      expect: [{ position: 1, nad: { namespace: 'vms', name: 'a' }, interface: 'y1', requestsAddresses: false }],
    },
  ];
  for (const { name, given, expect: expected } of readable) {
    it(`is read: ${name}`, () => {
      expect(parseNetworkSelections(given, 'vms')).to.deep.equal(expected);
    });
  }

  it("is read in the pod's namespace, and a pod without it requests no networks", () => {
    const metadata = { namespace: 'vms', name: 'p1' };
    const blue = { position: 1, nad: { namespace: 'vms', name: 'blue' }, requestsAddresses: false };
    const annotations = { [NETWORKS_ANNOTATION]: 'blue' };
    expect(networkSelectionsOf({ metadata: { ...metadata, annotations } })).to.deep.equal([blue]);
    expect(networkSelectionsOf({ metadata })).to.deep.equal([]);
  });

  const unreadable = [
    { name: 'broken JSON', given: '[{"name":"blue"', expect: /^it is not JSON: / },
    { name: 'JSON that is no list', given: '{"name":"blue"}', expect: 'it is not a list of network elements' },
    { name: 'an element that is no object', given: '["blue"]', expect: 'element 0 is "blue", not an object' },
    { name: 'an unnamed element', given: '[{"name":"a"},{"namespace":"vms"}]', expect: 'element 1 has no "name"' },
    {
      name: 'an interface that is no string',
      given: '[{"name":"a","interface":7}]',
      expect: 'element 0: "interface" is 7, not a string',
    },
    { name: 'two slashes', given: 'a/b/c', expect: 'element 0 is "a/b/c", not [namespace/]name[@interface]' },
    { name: 'an empty part', given: 'a,,b', expect: 'element 1 is "", not [namespace/]name[@interface]' },
    { name: 'a comma form with a bracket, which Multus takes for JSON', given: 'a,[b]', expect: /^it is not JSON: / },
    {
      name: 'a reference whose key only Go would read',
      given: '[{"name":"a","IPAM-Claim-Reference":"other.data"}]',
      expect: `element 0: write the key "IPAM-Claim-Reference" as "${CLAIM_REFERENCE_KEY}"`,
    },
    {
      name: 'a null that would leave an earlier reference in force',
      given: `[{"name":"a","${CLAIM_REFERENCE_KEY}":"other.data","${CLAIM_REFERENCE_KEY}":null}]`,
      expect: `element 0: "${CLAIM_REFERENCE_KEY}" is null: leave the key out`,
    },
    ...['Name', 'Namespace', 'Interface', 'Ips', 'IPS', 'name\u017fpace'].map((key) => ({
      name: `a key that only Go would read, ${key}`,
      given: JSON.stringify([{ name: 'a' }, { name: 'a', [key]: 'b' }]),
      expect: `element 1: write the key "${key}" as "${key.replace('\u017f', 's').toLowerCase()}"`,
    })),
    {
      name: "Multus' old key of the interface name in another case",
      given: '[{"name":"a","InterfaceRequest":"x1"}]',
      expect: 'element 0: write the key "InterfaceRequest" as "interfaceRequest"',
    },
    {
      name: 'two elements that request one interface',
      given: '[{"name":"a","interface":"x1"},{"name":"b"},{"name":"c","interfaceRequest":"x1"}]',
      expect: 'elements 0 and 2 both have the interface "x1": give each its own "interface"',
    },
    {
      name: 'an element that requests the interface that Multus counts for another',
      given: 'a@net2,b',
      expect: 'elements 0 and 1 both have the interface "net2"',
    },
    {
      name: 'a name that is longer than any',
      given: JSON.stringify([{ name: 'a'.repeat(254) }]),
      expect: 'element 0: "name" is longer than 253 characters',
    },
    {
      name: 'a name that is longer than any in the comma form, shown in part',
      given: `a,${'b'.repeat(254)}`,
      expect: new RegExp(`^element 1 is "b{80}", not `),
    },
    { name: '65 elements', given: JSON.stringify(many(65)), expect: 'it has more than 64 elements' },
    { name: '65 elements in the comma form', given: 'a'.repeat(65).split('').join(), expect: 'more than 64 elements' },
    {
      name: 'more text than 64 elements need, before it is parsed',
      given: '['.repeat(64 * 1024 + 1),
      expect: 'it has 65537 characters: write at most 65536',
    },
    {
      name: 'a null that would leave an earlier interface in force',
      given: '[{"name":"a","interface":"pod1","interface":null}]',
      expect: 'element 0: "interface" is null: leave the key out',
    },
  ];
  for (const { name, given, expect: expected } of unreadable) {
    it(`is rejected: ${name}`, () => {
      expect(() => parseNetworkSelections(given, 'vms')).to.throw(NetworkSelectionError, expected);
    });
  }

  it('is read with up to 64 elements; with more, no element is read', () => {
    expect(parseNetworkSelections(JSON.stringify(many(64)), 'vms')).to.have.length(64);
    expect(() => parseNetworkSelections(JSON.stringify([...many(64), 'no object']), 'vms')).to.throw('more than 64');
  });

  it('is read as KubeVirt writes it for a network binding plugin, whose NAD has no interface name', () => {
    const written =
      '[{"name":"a","interface":"pod37a8eec1ce1"},{"name":"binding","cni-args":{"logicNetworkName":"a"}}]';
    expect(parseNetworkSelections(written, 'vms').map(interfaceNameOf)).to.deep.equal(['pod37a8eec1ce1', 'net2']);
  });

  it("is read for a default network in the namespace of Multus, with the pod's primary interface", () => {
    const read = (value?: string) => {
      const annotations = value === undefined ? {} : { [DEFAULT_NETWORK_ANNOTATION]: value };
      return defaultSelectionOf({ metadata: { namespace: 'vms', name: 'p1', annotations } }, 'multus');
    };
    expect(read()).to.deep.equal([]);
    const selection = { position: 0, requestsAddresses: false };
    const [inMultus, other] = ['multus', 'other'].map((namespace) => ({ namespace, name: 'blue' }));
    expect(read('blue')).to.deep.equal([{ ...selection, nad: inMultus, interface: 'eth0' }]);
    const element = '[{"name":"blue","namespace":"other","interfaceRequest":"x1"}]';
    expect(read(element)).to.deep.equal([{ ...selection, nad: other, interface: 'x1' }]);
    expect(() => read('a,b')).to.throw(NetworkSelectionError, 'it has more than one element: name one network');
  });

  it('gives ordinal interface names to elements without one', () => {
    const [first, second] = parseNetworkSelections('a@net9,b', 'vms');
    expect(interfaceNameOf(first!)).to.equal('net9');
    expect(interfaceNameOf(second!)).to.equal('net2');
  });
});

describe('setting the claim references of network elements', () => {
  const cases: { name: string; given: string; references: [number, string][]; expect: string }[] = [
    {
      name: 'adds the key at the end of the element and leaves all other bytes alone',
      given: ' [ {"name" : "blue" , "x.example/y":{"a":[1,{}]} } ,\n  {"name":"green"} ]',
      references: [[0, 'vm1.data']],
      expect: ` [ {"name" : "blue" , "x.example/y":{"a":[1,{}]},"${CLAIM_REFERENCE_KEY}":"vm1.data" } ,\n  {"name":"green"} ]`,
    },
    {
      name: 'is not misled by braces, brackets and quotes in strings',
      given: '[{"name":"a","v.example/k":"}]\\"{["},{"name":"b"}]',
      references: [
        [1, 'vm1.b'],
        [0, 'vm1.a'],
      ],
      expect: `[{"name":"a","v.example/k":"}]\\"{[","${CLAIM_REFERENCE_KEY}":"vm1.a"},{"name":"b","${CLAIM_REFERENCE_KEY}":"vm1.b"}]`,
    },
    {
      name: 'turns the comma form into JSON, with each namespace written out',
      given: 'blue, other/green@net7',
      references: [[1, 'vm1.g']],
      expect: `[{"name":"blue","namespace":"vms"},{"name":"green","namespace":"other","interface":"net7","${CLAIM_REFERENCE_KEY}":"vm1.g"}]`,
    },
    { name: 'leaves the comma form alone if nothing is added', given: 'blue', references: [], expect: 'blue' },
    {
      name: 'fills an empty reference',
      given: `[{"name":"a","${CLAIM_REFERENCE_KEY}":""}]`,
      references: [[0, 'vm1.a']],
      expect: `[{"name":"a","${CLAIM_REFERENCE_KEY}":"vm1.a"}]`,
    },
  ];
  for (const { name, given, references, expect: expected } of cases) {
    it(name, () => {
      expect(withClaimReferences(given, 'vms', new Map(references))).to.equal(expected);
    });
  }

  it('fails for an element that does not exist', () => {
    expect(() => withClaimReferences('[{"name":"a"}]', 'vms', new Map([[3, 'x']]))).to.throw(RangeError);
  });

  const key = fc.oneof(fc.string(), fc.constantFrom('mac', 'cni-args', 'io.example/x', '__proto__', '7'));
  const element = fc
    .tuple(fc.dictionary(key, fc.jsonValue(), { maxKeys: 4 }), fc.string({ minLength: 1 }))
    .map(([extra, name]) => ({ ...withoutReserved(extra), name }));
  const annotation = fc
    .tuple(fc.array(element, { maxLength: 5 }), fc.constantFrom(0, 1, 3))
    .map(([elements, indent]) => ({ elements, text: JSON.stringify(elements, null, indent) }));

  it('keeps every other key, value and element', () => {
    fc.assert(
      fc.property(annotation, fc.nat({ max: 4 }), ({ elements, text }, index) => {
        fc.pre(index < elements.length);
        const edited = JSON.parse(withClaimReferences(text, 'vms', new Map([[index, 'vm1.data']]))) as unknown[];
        const expected = elements.map((before, at) =>
          at === index ? { ...before, [CLAIM_REFERENCE_KEY]: 'vm1.data' } : before,
        );
        expect(edited).to.deep.equal(JSON.parse(JSON.stringify(expected)));
      }),
    );
  });

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(annotation, fc.nat({ max: 4 }), ({ elements, text }, index) => {
        fc.pre(index < elements.length);
        const references = new Map([[index, 'vm1.data']]);
        const once = withClaimReferences(text, 'vms', references);
        expect(withClaimReferences(once, 'vms', references)).to.equal(once);
      }),
    );
  });

  it('reads any value or reports what is wrong with it', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          annotation.map(({ text }) => text.slice(0, -1)),
        ),
        (value) => {
          try {
            parseNetworkSelections(value, 'vms');
          } catch (error) {
            expect(error).to.be.instanceOf(NetworkSelectionError);
          }
        },
      ),
    );
  });
});

function many(count: number): { name: string }[] {
  return Array.from({ length: count }, (_, n) => ({ name: `n${n}` }));
}

function withoutReserved(extra: Record<string, unknown>): Record<string, unknown> {
  const reserved = ['NAME', 'NAMESPACE', 'INTERFACE', 'INTERFACEREQUEST', 'IPS', CLAIM_REFERENCE_KEY.toUpperCase()];
  return Object.fromEntries(Object.entries(extra).filter(([name]) => !reserved.includes(name.toUpperCase())));
}
