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

  it('lists objects of all namespaces and of none, under their keys', () => {
    const cache = new Cache<KubeObject>();
    for (const namespace of ['n', 'm', undefined])
      cache.set({ metadata: { name: 'a', ...(namespace && { namespace }) } });
    expect(cache.keys()).to.have.members(['n/a', 'm/a', 'a']);
    expect(cache.list()).to.have.length(3);
    expect(cache.size).to.equal(3);
    expect(cache.get('m/a')?.metadata.namespace).to.equal('m');
    expect(cache.delete('a')?.metadata.namespace).to.equal(undefined);
    expect(cache.keys()).to.have.members(['n/a', 'm/a']);
    expect([cache.get('a'), cache.get('n/b'), cache.get('o/a')]).to.deep.equal([undefined, undefined, undefined]);
  });

  it('finds an object by a value with a namespace, given as a text or in parts', () => {
    const [namespace, name] = ['n', 'red'];
    const cache = new Cache<Thing>({ parts: () => [{ namespace, name }], text: () => ['n/red', 'n/a/b'] });
    cache.set(thing('a', []));
    cache.set(thing('b', []));
    for (const [index, value] of [
      ['parts', 'n/red'],
      ['text', 'n/red'],
      ['text', 'n/a/b'],
    ] as const)
      // prettier-ignore
      expect(names(cache.byIndex(index, value))).to.deep.equal(['a', 'b']);
    expect(cache.byIndex('parts', 'red')).to.deep.equal([]);
    cache.delete('n/a');
    expect(names(cache.byIndex('parts', 'n/red'))).to.deep.equal(['b']);
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

  it('finds objects by their namespace, and those of the cluster', () => {
    const cache = new Cache<KubeObject>();
    const [a, b, other, node] = [
      { metadata: { namespace: 'n', name: 'a' } },
      { metadata: { namespace: 'n', name: 'b' } },
      { metadata: { namespace: 'other', name: 'a' } },
      { metadata: { name: 'a' } },
    ];
    for (const each of [a, b, other, node]) cache.set(each);
    expect(cache.inNamespace('n')).to.deep.equal([a, b]);
    expect([cache.get('other/a'), cache.get('a'), cache.get('n/c'), cache.get('none/a')]).to.deep.equal([other, node, undefined, undefined]); // prettier-ignore
    expect([...cache.keys()]).to.have.members(['n/a', 'n/b', 'other/a', 'a']);
    cache.delete('n/a');
    cache.delete('n/b');
    expect([cache.inNamespace('n'), cache.size]).to.deep.equal([[], 2]);
  });

  it('finds an object by the parts of a key', () => {
    const cache = new Cache<Thing>({
      colour: ({ metadata: { namespace = '' }, colours }) => colours.map((name) => ({ namespace, name })),
    });
    const [here, there] = [
      thing('a', ['red', '']),
      { ...thing('a', ['red']), metadata: { namespace: 'm', name: 'a' } },
    ];
    cache.set(here);
    cache.set(there);
    expect([cache.byIndex('colour', 'n/red'), cache.byIndex('colour', 'm/red')]).to.deep.equal([[here], [there]]);
    expect([cache.byIndex('colour', 'n/'), cache.byIndex('colour', 'red')]).to.deep.equal([[here], []]);
    cache.delete('n/a');
    expect([cache.countByIndex('colour', 'n/red'), cache.countByIndex('colour', 'm/red')]).to.deep.equal([0, 1]);
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
