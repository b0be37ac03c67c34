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
