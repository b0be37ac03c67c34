import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { HOLDFAST_IPAM } from '../../api/networks/ipam-delegation.js';
import { CLAIM_REFERENCE_KEY } from '../../api/names.js';
import { readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';

interface Conditions {
  matchConditions: { name: string; expression: string }[];
}

/** Lets each letter of a text be written as JSON lets it be written. */
function spellings(text: string, letters: (letter: string) => readonly string[]): fc.Arbitrary<string> {
  const spelt = text.split('').map((letter) => fc.constantFrom(...letters(letter).flatMap(writtenBy)));
  return fc.tuple(...spelt).map((parts) => `"${parts.join('')}"`);
}

function writtenBy(letter: string): string[] {
  const code = letter.charCodeAt(0).toString(16).padStart(4, '0');
  return [letter, `\\u${code}`, `\\u${code.toUpperCase()}`];
}

/** The letters that Go's decoder accepts for a letter of a key, by simple case folding. */
function folded(letter: string): string[] {
  const others: Record<string, string[]> = { s: ['ſ'], k: ['\u212a'] };
  return [...new Set([letter, letter.toUpperCase(), ...(others[letter] ?? [])])];
}

async function conditionOf(file: string, name: string): Promise<string> {
  const [manifest] = await readManifests(join(MANIFESTS, file));
  const { spec, webhooks = [] } = manifest as unknown as { spec?: Conditions; webhooks?: Conditions[] };
  const found = [...webhooks, ...(spec === undefined ? [] : [spec])]
    .flatMap(({ matchConditions }) => matchConditions)
    .find((condition) => condition.name === name);
  return found!.expression;
}

describe('a match condition on JSON in a string', () => {
  it('matches every JSON spelling of "holdfast" in the config of a NAD', async () => {
    const expression = await conditionOf('base/ipam/validating-webhook.yaml', 'names-holdfast');
    const parts = [...expression.matchAll(/contains\('([^']+)'\)/g)].map(([, text = '']) => text.replace('\\\\', '\\'));
    expect(parts).to.have.length(3);
    fc.assert(
      fc.property(
        spellings(HOLDFAST_IPAM, (letter) => [letter]),
        (spelt) => {
          expect(JSON.parse(spelt)).to.equal(HOLDFAST_IPAM);
          expect(parts.some((part) => spelt.includes(part))).to.equal(true);
        },
      ),
      { examples: [['"hold\\u0066ast"'], ['"holdfast"']] },
    );
  });

  it('matches every spelling that Go accepts as the key of a claim reference', async () => {
    const expression = await conditionOf('base/claims/policies/claim-reference.yaml', 'refers-to-a-claim-anew');
    const source = /matches\(r'\(\?i\)(.+?)'\)/.exec(expression)?.[1] ?? '';
    const pattern = new RegExp(source, 'iu');
    fc.assert(
      fc.property(spellings(CLAIM_REFERENCE_KEY, folded), (spelt) => {
        expect(String(JSON.parse(spelt)).toLowerCase()).to.equal(CLAIM_REFERENCE_KEY);
        expect(pattern.test(spelt)).to.equal(true);
      }),
      { numRuns: 1000 },
    );
    expect(pattern.test('{"cni-args":{"a":"\\u003c"}}')).to.equal(false);
  });
});
