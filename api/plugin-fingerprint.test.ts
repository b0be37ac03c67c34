import { expect } from 'chai';
import fc from 'fast-check';
import { delegatingPluginFingerprints, pluginFingerprint } from './plugin-fingerprint.js';

const BRIDGE = { type: 'bridge', bridge: 'br1', ipam: { type: 'holdfast', subnets: [{ cidr: '10.0.0.0/24' }] } };

function pluginsOf(config: unknown): readonly string[] | undefined {
  return delegatingPluginFingerprints({
    metadata: { name: 'blue' },
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  });
}

/** The same value with the keys of all objects in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, each]) => [key, reversed(each)]),
  );
}

describe("the fingerprint of a plugin's config", () => {
  it('does not depend on the order of the keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (config) => {
        expect(pluginFingerprint(reversed(config) as typeof config)).to.equal(pluginFingerprint(config));
      }),
    );
  });

  it('differs if any value differs that the runtime does not change', () => {
    expect(pluginFingerprint({ ...BRIDGE, bridge: 'br2' })).not.to.equal(pluginFingerprint(BRIDGE));
    expect(pluginFingerprint({ ...BRIDGE, vlan: 1 })).not.to.equal(pluginFingerprint(BRIDGE));
    expect(pluginFingerprint({ a: ['b', 'c'] })).not.to.equal(pluginFingerprint({ a: ['c', 'b'] }));
    expect(pluginFingerprint({ a: { keys: [], values: [] } })).not.to.equal(pluginFingerprint({ a: {} }));
  });

  it('is undefined for a config that is too deep, without more work', () => {
    const deep = JSON.parse(`{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`) as Record<string, unknown>;
    expect(pluginFingerprint(deep)).to.equal(undefined);
  });
});

describe('the plugins of a NAD that delegate to Holdfast', () => {
  const ours = pluginFingerprint(BRIDGE);

  it('are the config itself, or plugins of its list', () => {
    expect(pluginsOf({ cniVersion: '1.0.0', name: 'blue', ...BRIDGE })).to.deep.equal([ours]);
    const list = { name: 'blue', plugins: [{ type: 'tuning' }, BRIDGE, { type: 'x', ipam: { type: 'static' } }] };
    expect(pluginsOf(list)).to.deep.equal([ours]);
  });

  it('are none if the config delegates to others, or cannot be read', () => {
    expect(pluginsOf({ type: 'bridge', ipam: { type: 'static' } })).to.deep.equal([]);
    expect(pluginsOf('{')).to.deep.equal([]);
  });

  it('are unknown if the config is a file on the nodes', () => {
    expect(pluginsOf('')).to.equal(undefined);
  });
});
