import { expect } from 'chai';
import fc from 'fast-check';
import { TransportError } from '../errors.js';
import { readJsonLines } from './responses.js';

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
