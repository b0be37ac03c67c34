import { expect } from 'chai';
import fc from 'fast-check';
import { TransportError } from '../errors.js';
import { readJsonLines, withoutManagedFields } from './responses.js';
import { isRecord } from '../../api/json.js';

async function* chunksOf(bytes: Buffer, sizes: number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (const size of sizes) {
    yield await Promise.resolve(bytes.subarray(at, at + size));
    at += size;
  }
  yield bytes.subarray(at);
}

async function read(text: string, sizes: number[] = []): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of readJsonLines(chunksOf(Buffer.from(text), sizes))) values.push(value);
  return values;
}

async function faultOf(text: string): Promise<string> {
  try {
    await read(text);
  } catch (error) {
    if (error instanceof TransportError) return error.message;
    throw error;
  }
  return 'none';
}

describe('readJsonLines', () => {
  it('returns the same values for any split of the bytes, also within a character', async () => {
    const line = fc.jsonValue();
    const sizes = fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 50 });
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 8 }), sizes, async (values, cuts) => {
        const text = values.map((value) => `${JSON.stringify(value)}\n`).join('');
        const expected = values.map((value) => JSON.parse(JSON.stringify(value)) as unknown);
        expect(await read(text, cuts)).to.deep.equal(expected);
      }),
    );
  });

  it('skips empty lines', async () => {
    expect(await read('\n1\n\r\n2\n')).to.deep.equal([1, 2]);
  });

  it('reads a line in very many pieces in time that is proportional to its length', async () => {
    const pieces = 64_000;
    const piece = Buffer.alloc(64, 'x');
    let yielded = 0;
    async function* slowly(): AsyncGenerator<Buffer> {
      yield await Promise.resolve(Buffer.from('"'));
      while (yielded++ < pieces) yield piece;
      yield Buffer.from('"\n');
    }
    const values: unknown[] = [];
    // Copying what is there with every piece would move 130 GB, far beyond the time limit of a test.
    for await (const value of readJsonLines(slowly())) values.push(value);
    expect((values[0] as string).length).to.equal(64 * pieces);
  });

  const faults = [
    { name: 'broken JSON', given: '{"a":1}\n{"a":\n', expect: 'the response is not JSON: {"a":' },
    { name: 'an end within a line', given: '{"a":1}\n{"a"', expect: 'the stream ended within a line' },
  ];
  for (const { name, given, expect: expected } of faults) {
    it(`refuses ${name}`, async () => {
      expect(await faultOf(given)).to.equal(expected);
    });
  }
});

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
