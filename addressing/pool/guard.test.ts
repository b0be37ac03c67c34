import { expect } from 'chai';
import { adminPool } from '../../test/objects/pool-objects.js';
import { parseAddress } from '../address/address.js';
import { type Pool, compilePool } from './pool.js';

function compile(guard: unknown): Pool | readonly string[] {
  const pool = adminPool('blue');
  const compiled = compilePool({ ...pool, spec: { ...pool.spec, guard: guard as never } });
  return compiled.ok ? compiled.pool : compiled.problems.map(({ field, message }) => `${field}: ${message}`);
}

describe('the guard of a pool', () => {
  for (const off of [undefined, null, {}, { mode: 'Off' }, { mode: 'Off', migrationHold: false }]) {
    it(`is absent for ${JSON.stringify(off)}`, () => {
      expect(compile(off)).not.to.have.property('guard');
    });
  }

  it('holds the targets of migrations unless the pool says otherwise', () => {
    expect(compile({ mode: 'Observe' })).to.have.deep.property('guard', {
      mode: 'Observe',
      holdsMigrations: true,
      allow: [],
    });
    const guard = { mode: 'Enforce', holdsMigrations: false, allow: [] };
    expect(compile({ mode: 'Enforce', migrationHold: false })).to.have.deep.property('guard', guard);
  });

  it('allows addresses, ranges and MAC addresses to some claims', () => {
    const allow = [{ addresses: ['10.1.0.100', '10.1.0.4/30'], macs: ['00:00:5E:00:01:0A'], claims: ['vms/a.blue'] }];
    const [address, first, last] = ['10.1.0.100', '10.1.0.4', '10.1.0.7'].map((text) => parseAddress(text).value);
    const allowed = {
      addresses: [
        { family: 4, first: address, last: address },
        { family: 4, first, last },
      ],
      macs: ['00:00:5e:00:01:0a'],
      claims: new Set(['vms/a.blue']),
    };
    const guard = { mode: 'Enforce', holdsMigrations: true, allow: [allowed] };
    expect(compile({ mode: 'Enforce', allow })).to.have.deep.property('guard', guard);
  });

  const invalid: [guard: unknown, says: string][] = [
    ['Enforce', 'spec.guard: "Enforce" is not an object: write it like {mode: Enforce}'],
    [{ mode: 'enforce' }, 'spec.guard.mode: "enforce" is not a mode'],
    [{ mode: false }, 'spec.guard.mode: false is not a mode: write "Off"'],
    [{ mode: 'Enforce', migrationHold: 'no' }, 'spec.guard.migrationHold'],
    [{ allow: [{ addresses: ['10.1.0.1'] }] }, 'spec.guard.allow: has no effect while mode is Off'],
    [
      { mode: 'Enforce', allow: [{ addresses: ['10.1.0.1'], onRequest: 'yes' }] },
      'spec.guard.allow[0].onRequest: "yes"',
    ],
    [{ mode: 'Enforce', allow: [{}] }, 'spec.guard.allow[0].addresses: has no address'],
    [{ mode: 'Enforce', allow: [{ addresses: ['all'] }] }, 'spec.guard.allow[0].addresses[0]'],
    [
      { mode: 'Enforce', allow: [{ addresses: ['10.1.0.1'], macs: ['01:00:5e:00:00:01'] }] },
      'spec.guard.allow[0].macs[0]: "01:00:5e:00:00:01" is not the MAC address of an interface',
    ],
  ];
  for (const [guard, says] of invalid) {
    it(`is invalid as ${JSON.stringify(guard)}, and never counts as absent`, () => {
      expect(compile(guard)).to.be.an('array');
      expect((compile(guard) as string[]).join('\n')).to.include(says);
    });
  }
});
