import { expect } from 'chai';
import fc from 'fast-check';
import { withoutManagedFields } from './managed-fields.js';

/** As an API server writes it: managedFields are never the first field of metadata. */
function listOf(managed: readonly unknown[], data: unknown): { items: object[] } {
  const fields = (managedFields: unknown) => ({ labels: {}, managedFields, name: 'a' });
  return { items: managed.map((each) => ({ metadata: fields([each]), data })) };
}

function parsedWithout(text: string): unknown {
  return JSON.parse(withoutManagedFields(Buffer.from(text)).toString());
}

describe('withoutManagedFields', () => {
  it('removes the managedFields of each object, also with quotes and brackets in their texts, and nothing else', () => {
    const texts = fc.string({ unit: fc.constantFrom('"', '\\', '[', ']', ',', '{', '}', 'ü', '"managedFields":[') });
    const value = fc.oneof(fc.jsonValue(), texts, fc.dictionary(texts, fc.array(texts)));
    fc.assert(
      fc.property(fc.array(value), value, (managed, data) => {
        const text = JSON.stringify(listOf(managed, data));
        const expected = managed.map(() => ({ metadata: { labels: {}, name: 'a' }, data }));
        expect(parsedWithout(text)).to.deep.equal(JSON.parse(JSON.stringify({ items: expected })));
      }),
    );
  });

  it('keeps a text that looks like managedFields', () => {
    const object = { metadata: { name: ',"managedFields":[' }, data: [',"managedFields":[{}]', '\\'] };
    expect(parsedWithout(JSON.stringify(object))).to.deep.equal(object);
  });

  it('returns no valid JSON for an answer that is cut off', () => {
    const whole = JSON.stringify(listOf([{ manager: 'a\\"', fieldsV1: { 'k:{"name":"[a"}': ['x'] } }], 'b'));
    for (let length = 1; length < whole.length; length++)
      expect(() => parsedWithout(whole.slice(0, length)), String(length)).to.throw(SyntaxError);
  });
});
