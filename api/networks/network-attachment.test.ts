import { expect } from 'chai';
import fc from 'fast-check';
import { type NetworkAttachmentDefinition, parseNetworkConfig } from './network-attachment.js';

function nad(config: unknown): NetworkAttachmentDefinition {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return { metadata: { name: 'blue-nad', namespace: 'vms' }, spec: { config: text } };
}

describe('the config of a NetworkAttachmentDefinition', () => {
  const usable = [
    { name: 'a plugin', given: { name: 'blue', type: 'bridge' }, expect: { name: 'blue', allowPersistentIPs: false } },
    {
      name: 'the flag at the top level',
      given: { name: 'blue', allowPersistentIPs: true },
      expect: { name: 'blue', allowPersistentIPs: true },
    },
    {
      name: 'the flag inside any plugin of a list',
      given: { name: 'blue', plugins: [{ type: 'bridge' }, { type: 'x', allowPersistentIPs: true }] },
      expect: { name: 'blue', allowPersistentIPs: true },
    },
    {
      name: "no name: the NAD's own, as Multus fills it in",
      given: { type: 'bridge', allowPersistentIPs: true },
      expect: { name: 'blue-nad', allowPersistentIPs: true },
    },
    {
      name: 'null for what is left out',
      given: { name: 'blue', plugins: null, allowPersistentIPs: null },
      expect: { name: 'blue', allowPersistentIPs: false },
    },
    {
      name: 'false, which somebody decided',
      given: { name: 'blue', allowPersistentIPs: false },
      expect: { name: 'blue', allowPersistentIPs: false, deniesPersistentIPs: true },
    },
    {
      name: 'a primary user-defined network with its subnets',
      given: { name: 'blue', role: 'primary', subnets: '10.0.0.0/16' },
      expect: { name: 'blue', allowPersistentIPs: false, primary: { subnets: '10.0.0.0/16' } },
    },
    {
      name: 'a primary user-defined network without subnets',
      given: { name: 'blue', role: 'primary' },
      expect: { name: 'blue', allowPersistentIPs: false, primary: { subnets: '' } },
    },
    {
      name: 'roles and subnets of other plugins',
      given: { name: 'blue', role: { any: 'thing' }, subnets: [], plugins: [{ role: 'primary' }] },
      expect: { name: 'blue', allowPersistentIPs: false },
    },
  ];
  for (const { name, given, expect: expected } of usable) {
    it(`is read: ${name}`, () => {
      expect(parseNetworkConfig(nad(given))).to.deep.equal({ ok: true, network: expected });
    });
  }

  const absent = [
    { name: 'no spec', given: undefined },
    { name: 'no config', given: {} },
    { name: 'an empty config', given: { config: '' } },
    { name: 'a blank config', given: { config: ' \n' } },
  ];
  for (const { name, given } of absent) {
    it(`is a file on the nodes with the name of the NAD: ${name}`, () => {
      const object = { metadata: { name: 'blue-nad' }, ...(given && { spec: given }) };
      const network = { name: 'blue-nad', allowPersistentIPs: false };
      expect(parseNetworkConfig(object)).to.deep.equal({ ok: true, network });
    });
  }

  const unusable = [
    { name: 'broken JSON', given: '{"name":', field: 'spec.config', message: /^is not JSON \(/ },
    {
      name: 'a password without quotes, of which nothing is quoted',
      given: '{"name": "blue", "ipam": {"etcd_password": hunter2, "type": "whereabouts"}}',
      field: 'spec.config',
      message: /^is not JSON \(Unexpected token 'h'\): correct it$/,
    },
    { name: 'JSON that is no object', given: '[]', field: 'spec.config', message: /^is not a JSON object/ },
    { name: 'a name that is no string', given: { name: 5 }, field: 'spec.config.name', message: /^is 5: / },
    { name: 'plugins that are no list', given: { plugins: 'x' }, field: 'spec.config.plugins', message: /^is "x": / },
    {
      name: 'a flag in quotes',
      given: { allowPersistentIPs: 'true' },
      field: 'spec.config.allowPersistentIPs',
      message: /without quotes$/,
    },
    {
      name: 'subnets of a primary network that are no string',
      given: { role: 'primary', subnets: ['10.0.0.0/16'] },
      field: 'spec.config.subnets',
      message: /separated by commas, in one string$/,
    },
    {
      name: 'subnets of a primary network that are too long',
      given: { role: 'primary', subnets: '10.0.0.0/16,'.repeat(100) },
      field: 'spec.config.subnets',
      message: /^has 1200 characters: write at most 1024$/,
    },
    { name: 'an invalid plugin', given: { plugins: [{}, 3] }, field: 'spec.config.plugins[1]', message: /^is 3: / },
    {
      name: "a plugin's flag in quotes",
      given: { plugins: [{ allowPersistentIPs: 'yes' }] },
      field: 'spec.config.plugins[0].allowPersistentIPs',
      message: /^is "yes"/,
    },
  ];
  for (const { name, given, field, message } of unusable) {
    it(`is rejected with the field and the value: ${name}`, () => {
      const result = parseNetworkConfig(nad(given));
      expect(result.ok).to.be.false;
      if (result.ok) return;
      expect(result.problem.field).to.equal(field);
      expect(result.problem.message).to.match(message);
    });
  }

  it('never throws for any content of the object', () => {
    const spec = fc.oneof(fc.anything(), fc.record({ config: fc.oneof(fc.anything(), fc.string(), fc.json()) }));
    fc.assert(
      fc.property(spec, (given) => {
        const object = { metadata: { name: 'x' }, spec: given } as NetworkAttachmentDefinition;
        expect(parseNetworkConfig(object).ok).to.be.a('boolean');
      }),
    );
  });
});
