import { expect } from 'chai';
import fc from 'fast-check';
import type { KubeObject } from '../../api/meta.js';
import { Cache } from './cache.js';

interface Thing extends KubeObject {
  colours: string[];
}

function thing(name: string, colours: string[]): Thing {
  return { metadata: { name, namespace: 'n' }, colours };
}

function names(things: readonly Thing[]): string[] {
  return things.map((each) => each.metadata.name).sort();
}

describe('Cache', () => {
  it('finds an object under every current value of an index, and under no old value', () => {
    const cache = new Cache<Thing>({ colour: (each) => each.colours });
    cache.set(thing('a', ['red', 'blue']));
    cache.set(thing('b', ['red']));
    expect(names(cache.byIndex('colour', 'red'))).to.deep.equal(['a', 'b']);
    cache.set(thing('a', ['green']));
    expect(names(cache.byIndex('colour', 'red'))).to.deep.equal(['b']);
    expect(names(cache.byIndex('colour', 'blue'))).to.deep.equal([]);
    expect(names(cache.byIndex('colour', 'green'))).to.deep.equal(['a']);
    cache.delete('n/a');
    expect(names(cache.byIndex('colour', 'green'))).to.deep.equal([]);
  });

  it('returns the object that was replaced or deleted', () => {
    const cache = new Cache<Thing>();
    const first = thing('a', []);
    const second = thing('a', ['red']);
    expect(cache.set(first)).to.equal(undefined);
    expect(cache.set(second)).to.equal(first);
    expect(cache.delete('n/a')).to.equal(second);
    expect(cache.delete('n/a')).to.equal(undefined);
    expect(cache.size).to.equal(0);
  });

  it('rejects an unknown index, and names the known ones', () => {
    const cache = new Cache<Thing>({ colour: (each) => each.colours });
    expect(() => cache.byIndex('color', 'red')).to.throw('no index "color"; there are: colour');
  });

  it('does not change if an indexer throws', () => {
    const cache = new Cache<Thing>({
      colour: (each) => {
        if (each.colours.includes('none')) throw new Error('no such colour');
        return each.colours;
      },
    });
    cache.set(thing('a', ['red']));
    expect(() => cache.set(thing('a', ['none']))).to.throw('no such colour');
    expect(names(cache.byIndex('colour', 'red'))).to.deep.equal(['a']);
  });

  it('finds objects under their keys and by their namespace, also those of the cluster', () => {
    const cache = new Cache<KubeObject>();
    const [a, b, other, node] = [
      { metadata: { namespace: 'n', name: 'a' } },
      { metadata: { namespace: 'n', name: 'b' } },
      { metadata: { namespace: 'other', name: 'a' } },
      { metadata: { name: 'a' } },
    ];
    for (const each of [a, b, other, node]) cache.set(each);
    expect(cache.inNamespace('n')).to.deep.equal([a, b]);
    expect(['other/a', 'a', 'n/c', 'none/a'].map((key) => cache.get(key))).to.deep.equal([other, node, undefined, undefined]); // oxfmt-ignore
    expect([...cache.keys()]).to.have.members(['n/a', 'n/b', 'other/a', 'a']);
    expect([cache.list().length, cache.size]).to.deep.equal([4, 4]);
    expect(cache.delete('a')).to.equal(node);
    expect([cache.get('a'), cache.get('other/a')]).to.deep.equal([undefined, other]);
    cache.delete('n/a');
    cache.delete('n/b');
    expect([cache.inNamespace('n'), cache.keys(), cache.size]).to.deep.equal([[], ['other/a'], 1]);
  });

  for (const [given, valueOf] of [
    ['as a text', (namespace: string, name: string) => `${namespace}/${name}`],
    ['in parts', (namespace: string, name: string) => ({ namespace, name })],
  ] as const) {
    it(`finds objects by a value with a namespace that the index gives ${given}`, () => {
      const cache = new Cache<Thing>({
        colour: ({ metadata: { namespace = '' }, colours }) => colours.map((name) => valueOf(namespace, name)),
      });
      const [here, too] = [thing('a', ['red', '', 'red/dark']), thing('b', ['red'])];
      const there = { ...thing('a', ['red']), metadata: { namespace: 'm', name: 'a' } };
      for (const each of [here, too, there]) cache.set(each);
      const found = (value: string) => cache.byIndex('colour', value);
      expect([found('n/red'), found('m/red')]).to.deep.equal([[here, too], [there]]);
      expect([found('n/'), found('n/red/dark'), found('red')]).to.deep.equal([[here], [here], []]);
      cache.delete('n/a');
      expect([found('n/red'), cache.countByIndex('colour', 'n/red')]).to.deep.equal([[too], 1]);
      expect([found('n/'), cache.countByIndex('colour', 'm/red')]).to.deep.equal([[], 1]);
    });
  }

  it('returns the same for every index as a search through all objects', () => {
    const colour = fc.constantFrom('red', 'green', 'blue');
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      colours: fc.option(fc.uniqueArray(colour), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const cache = new Cache<Thing>({ colour: (each) => each.colours });
        const model = new Map<string, Thing>();
        for (const { name, colours } of steps) {
          if (colours === undefined) {
            cache.delete(`n/${name}`);
            model.delete(name);
          } else {
            cache.set(thing(name, colours));
            model.set(name, thing(name, colours));
          }
          for (const value of ['red', 'green', 'blue']) {
            const expected = [...model.values()].filter((each) => each.colours.includes(value));
            expect(names(cache.byIndex('colour', value))).to.deep.equal(names(expected));
            expect(cache.countByIndex('colour', value)).to.equal(expected.length);
          }
          expect(names(cache.list())).to.deep.equal([...model.keys()].sort());
        }
      }),
    );
  });
});
