import { expect } from 'chai';
import { ensureVale, lint, passagesOf } from './prose.js';

describe('the prose linter', () => {
  it('reads comments, strings and test titles of TypeScript, and no code', () => {
    const source = [
      '/**',
      ' * Says what is free.',
      ' * @param pool of the addresses',
      ' */',
      'function free(pool: string): string {',
      '  // a short comment',
      '  log.info(`pool ${pool} is full of leases`, "key");',
      '}',
    ].join('\n');
    expect(passagesOf('a.ts', source)).to.deep.equal([
      { line: 1, text: 'Says what is free.' },
      { line: 1, text: 'of the addresses' },
      { line: 6, text: 'a short comment' },
      { line: 7, text: 'pool X is full of leases' },
    ]);
  });

  it('reads comments and descriptions of YAML, and comments of Go', () => {
    expect(
      passagesOf('a.yaml', '# One\n# two\nkind: Pod\n  description: >-\n    Three\n    four.\n  type: x'),
    ).to.deep.equal([
      { line: 1, text: 'One two' },
      { line: 4, text: ' Three four.' },
    ]);
    expect(passagesOf('a.go', 'package main\n\n// Five\n// six\nfunc main() {}')).to.deep.equal([
      { line: 3, text: 'Five six' },
    ]);
  });

  it('finds words that the guide rules out, American spelling and long sentences, with their line', async function () {
    this.timeout(600_000);
    const vale = await ensureVale();
    if (vale === undefined) return this.skip();
    const files = new Map([
      ['a/good.md', 'The agent releases the lease.\n'],
      ['a/bad.md', 'A good sentence.\n\nWhoever waits shall stand in a line.\n'],
      [
        'a/bad.ts',
        `const a = 1;\n/** A neighbor of the pool. */\nconst b = 'one ${'very '.repeat(40)}long sentence';\n`,
      ],
    ]);
    const alerts = await lint(files, vale);
    expect(alerts.map((alert) => alert.replace(/ is not.*| instead.*/, '')).sort()).to.deep.equal([
      "a/bad.md:3: 'Whoever'",
      "a/bad.md:3: 'shall'",
      "a/bad.md:3: 'stand in a line'",
      "a/bad.ts:2: Use British spelling: 'neighbour'",
      'a/bad.ts:3: A sentence has at most 38 words: split it',
    ]);
  });
});
