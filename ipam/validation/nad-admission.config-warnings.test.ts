import { expect } from 'chai';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { transformNad } from '../../cluster/transforms.js';
import { warnOfPersistence, warnOfUnreadableConfig } from './nad-admission.js';

function network(config: unknown): NetworkAttachmentDefinition {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return { metadata: { name: 'n', namespace: 'vms' }, spec: { config: text } };
}

function persistenceWarnings(config: unknown): string[] {
  return warnOfPersistence(transformNad(network(config)));
}

const OURS = { name: 'blue', type: 'bridge', ipam: { type: 'holdfast' } };

describe('a warning about the config of a NAD', () => {
  it('says that a config is not JSON if it names Holdfast', () => {
    const [warning, ...more] = warnOfUnreadableConfig(network('{"name": "blue", "ipam": {"type": "holdfast"}'));
    expect(warning).to.match(/^spec\.config is not JSON \(.+\): correct it\. It names "holdfast"/);
    expect(more).to.deep.equal([]);
  });

  it('says that a config is not an object if it names Holdfast', () => {
    expect(warnOfUnreadableConfig(network('["holdfast"]')).join()).to.match(/^spec\.config is not a JSON object/);
  });

  for (const [name, config] of [
    ['a readable config', OURS],
    ['an unreadable config that names no IPAM', '{"name": "blue", "ipam": '],
    ['an unreadable config that names another IPAM', '{"ipam": {"type": "host-local"}, "name": "holdfast-1"'],
    ['an empty config', ''],
  ] as const) {
    it(`is not given for ${name}`, () => {
      expect(warnOfUnreadableConfig(network(config))).to.deep.equal([]);
    });
  }

  it('names each key that differs from the flag in case only, and the correct spelling', () => {
    expect(persistenceWarnings({ ...OURS, allowPersistentIps: true })).to.deep.equal([
      'spec.config.allowPersistentIps has no effect: write allowPersistentIPs, with exactly these capitals',
    ]);
    const plugins = [
      { ...OURS, ALLOWPERSISTENTIPS: true },
      { type: 'tuning', allowpersistentips: false },
    ];
    expect(persistenceWarnings({ name: 'blue', plugins }).map((text) => text.split(' ')[0])).to.deep.equal([
      'spec.config.plugins[0].ALLOWPERSISTENTIPS',
      'spec.config.plugins[1].allowpersistentips',
    ]);
  });

  it('names keys that are nearly the flag, also of NADs without IPAM', () => {
    for (const key of ['allowPersistentIP', 'allow-persistent-ips', 'alowPersistantIPs', 'allowPersistentIPSs']) {
      const warning = `spec.config.${key} has no effect: write allowPersistentIPs, with exactly these capitals`;
      expect(persistenceWarnings({ name: 'blue', type: 'ovs', [key]: true })).to.deep.equal([warning]);
    }
    const crowded = Object.fromEntries('abcdefgh'.split('').map((letter) => [`allowPersistentIP${letter}`, true]));
    expect(persistenceWarnings(crowded)).to.have.lengthOf(4);
  });

  it('says that VMs lose their addresses if the NAD delegates to Holdfast and does not decide about the flag', () => {
    expect(persistenceWarnings(OURS)).to.deep.equal([
      'spec.config has no "allowPersistentIPs": set it to true, or to false if VMs are to get another address at each start',
    ]);
    expect(persistenceWarnings({ name: 'blue', type: 'bridge', ipam: { type: 'host-local' } })).to.deep.equal([]);
  });

  for (const [name, config] of [
    ['the flag itself', { ...OURS, allowPersistentIPs: true }],
    ['other keys', { ...OURS, allowPersistentIPs: false, persistentIPs: true }],
    ['an unreadable config', '{'],
    ['no config', ' '],
  ] as const) {
    it(`does not name ${name}`, () => {
      expect(persistenceWarnings(config)).to.deep.equal([]);
    });
  }
});
