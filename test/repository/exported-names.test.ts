import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { isTestCode } from './layers.js';
import { ROOT, findFiles } from '../source-files.js';

/** Names that two shipped files may export. */
const ALLOWED: Readonly<Record<string, string>> = {
  plan: 'the pure function of each reconciler, by the same name everywhere',
  STATEFUL_SETS: 'the command line reads other fields of the kind than the process guest writes',
};
const EXPORTED =
  /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) ([A-Za-z_]\w*)/gm;

describe('the names that files export', () => {
  it('have one meaning: no two shipped files export the same one', async () => {
    const filesOf = new Map<string, string[]>();
    // the page runs in the browser: a program of its own
    const files = (await findFiles('.ts')).filter((file) => !isTestCode(file) && !file.startsWith('cli/ui/page/'));
    for (const file of files) {
      const text = await readFile(join(ROOT, file), 'utf8');
      // a value and its type are one name
      const names = new Set([...text.matchAll(EXPORTED)].map(([, name = '']) => name));
      for (const name of names) filesOf.set(name, [...(filesOf.get(name) ?? []), file]);
    }
    const found = [...filesOf].filter(([name, { length }]) => length > 1 && !(name in ALLOWED));
    expect(found.map(([name, where]) => `${name}: ${where.join(', ')}`)).to.deep.equal([]);
    expect(Object.keys(ALLOWED).filter((name) => (filesOf.get(name)?.length ?? 0) < 2)).to.deep.equal([]);
  });
});
