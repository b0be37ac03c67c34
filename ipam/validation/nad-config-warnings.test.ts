import { expect } from 'chai';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import { warnOfMisspelledFlag, warnOfUnreadableConfig } from './nad-config-warnings.js';

function network(config: unknown): NetworkAttachmentDefinition {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return { metadata: { name: 'n', namespace: 'vms' }, spec: { config: text } };
}

const OURS = { name: 'blue', type: 'bridge', ipam: { type: 'holdfast' } };

describe('a warning of a NAD’s text', () => {
  it('says that a config is no JSON where it names Holdfast', () => {
    const [warning, ...more] = warnOfUnreadableConfig(network('{"name": "blue", "ipam": {"type": "holdfast"}'));
    expect(warning).to.match(/^spec\.config is not JSON \(.+\): correct it\. It names "holdfast"/);
    expect(more).to.deep.equal([]);
  });

  it('says that a config is no object where it names Holdfast', () => {
    expect(warnOfUnreadableConfig(network('["holdfast"]')).join()).to.match(/^spec\.config is not a JSON object/);
  });

  for (const [name, config] of [
    ['a config that can be read', OURS],
    ['one that cannot, and names nobody', '{"name": "blue", "ipam": '],
    ['one that cannot, and names somebody else', '{"ipam": {"type": "host-local"}, "name": "holdfast-1"'],
    ['one that is empty', ''],
  ] as const) {
    it(`is not given of ${name}`, () => {
      expect(warnOfUnreadableConfig(network(config))).to.deep.equal([]);
    });
  }

  it('names each key that is the flag but for its case, and how it is written', () => {
    expect(warnOfMisspelledFlag(network({ ...OURS, allowPersistentIps: true }))).to.deep.equal([
      'spec.config.allowPersistentIps is without effect: write allowPersistentIPs, in these very letters',
    ]);
    const plugins = [{ ...OURS, ALLOWPERSISTENTIPS: true }, 7, { type: 'tuning', allowpersistentips: false }];
    expect(warnOfMisspelledFlag(network({ name: 'blue', plugins })).map((text) => text.split(' ')[0])).to.deep.equal([
      'spec.config.plugins[0].ALLOWPERSISTENTIPS',
      'spec.config.plugins[2].allowpersistentips',
    ]);
  });

  for (const [name, config] of [
    ['the flag itself', { ...OURS, allowPersistentIPs: true }],
    ['other keys', { ...OURS, persistentIPs: true }],
    ['a config that cannot be read', '{'],
    ['no config', ' '],
  ] as const) {
    it(`has nothing to say of ${name}`, () => {
      expect(warnOfMisspelledFlag(network(config))).to.deep.equal([]);
    });
  }
});
