import { dirname } from 'node:path';
import { expect } from 'chai';
import { findFiles } from '../source-files.js';

/** Files beside tests in a folder. Nobody finds a file by its name among more. */
const MOST = 22;

/** Folders with more files. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'docs/adr': 'a list, with one record for each decision',
  'docs/how-to': 'a list, with one page for each task',
  'docs/runbooks': 'a list, with one page for each alert, which links to it',
  'guest/packets': 'one Go package: most files have methods of one type, and a package of frames would export 55 names',
};

describe('the folders', () => {
  it(`have at most ${String(MOST)} files besides tests, with exceptions that are needed`, async () => {
    const counts = new Map<string, number>();
    for (const folder of (await findFiles('')).filter((path) => !/(\.test\.ts|_test\.go)$/.test(path)).map(dirname))
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    const full = [...counts].flatMap(([folder, count]) => (count > MOST ? [folder] : []));
    expect(full).to.have.members(Object.keys(EXCEPTIONS));
  });
});
