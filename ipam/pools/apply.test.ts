import { expect } from 'chai';
import fc from 'fast-check';
import { mergePatch } from '../../test/merge-patch.js';
import { createMergePatch } from './apply.js';

/** Without nulls, which a merge patch cannot express. */
const { value: json } = fc.letrec<{ value: unknown; object: object }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(1, 'x', true, [1, 2], []),
    fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
  ),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
}));
const object = fc.dictionary(fc.constantFrom('a', 'b', 'c'), json, { maxKeys: 3 });

describe('a merge patch from one object to another', () => {
  it('sets removed keys to null, in nested objects as well', () => {
    expect(createMergePatch({ a: { x: 1, y: 2 }, b: 1, c: [1] }, { a: { y: 3 }, c: [2] })).to.deep.equal({
      a: { x: null, y: 3 },
      b: null,
      c: [2],
    });
  });

  it('turns any object into any other', () => {
    fc.assert(
      fc.property(object, object, (before, after) => {
        const target = structuredClone(before);
        mergePatch(target, createMergePatch(before, after));
        expect(target).to.deep.equal(after);
      }),
    );
  });
});
