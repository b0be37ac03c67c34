// Makes a tree ready for a release: `make version VERSION=1.2.3`. Sets the version, and gives the changelog a section for it.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../test/source-files.js';
import { cutRelease } from './changelog.js';
import { listFiles } from './tree.js';
import { isPrerelease, parseVersion, setVersion } from './version.js';

try {
  const version = parseVersion(process.env.VERSION ?? '');
  await setVersion(ROOT, listFiles(ROOT), version);
  const changelog = join(ROOT, 'CHANGELOG.md');
  const today = new Date().toISOString().slice(0, 10);
  if (!isPrerelease(version)) await writeFile(changelog, cutRelease(await readFile(changelog, 'utf8'), version, today));
  console.log(`The tree says ${version}. Check it with git diff, commit it, and tag the commit v${version}.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
