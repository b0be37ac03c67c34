import { expect } from 'chai';
import fc from 'fast-check';
import { isRecord } from '../../api/json.js';
import { withoutManagedFields } from './managed-fields.js';

/** As an API server writes it: managedFields are never the first field of metadata. */
function listOf(managed: readonly unknown[], data: unknown): { items: object[] } {
  const fields = (managedFields: unknown) => ({ labels: {}, managedFields, name: 'a' });
  return { items: managed.map((each) => ({ metadata: fields([each]), data })) };
}

const text = fc.string({ unit: fc.constantFrom('"', '\\', '[', ']', ',', '{', '}', 'ü', '"managedFields":[') });
const { object } = fc.letrec<{ object: object; value: unknown }>((tie) => ({
  object: fc
    .array(fc.tuple(fc.oneof(text, fc.constant('managedFields')), tie('value')), { minLength: 2, maxLength: 4 })
    .map((fields) => Object.fromEntries(fields)),
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.double({ noNaN: true }),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
}));

function expectedOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(expectedOf);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(
    ([name, each], index) => index === 0 || name !== 'managedFields' || !Array.isArray(each),
  );
  return Object.fromEntries(kept.map(([name, each]) => [name, expectedOf(each)]));
}

function parsedWithout(text: string): unknown {
  return JSON.parse(withoutManagedFields(Buffer.from(text)).toString());
}

describe('withoutManagedFields', () => {
  it('removes the lists of this name that are not first in their object, also with quotes and brackets, and nothing else', () => {
    fc.assert(
      fc.property(fc.array(object), (objects) => {
        const text = JSON.stringify(objects);
        expect(parsedWithout(text)).to.deep.equal(expectedOf(JSON.parse(text)));
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
