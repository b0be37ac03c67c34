import { createHash } from 'node:crypto';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../../bed/build/cache.js';
import { capture } from '../../bed/processes/processes.js';
import { IPAM_EXTENSIONS_SRC } from '../../bed/ipam-extensions/program.js';
import { EDITS, applyEdits } from './edits.js';

/** Builds the tests of kubevirt/ipam-extensions with our edits. @returns the path of the executable */
export async function buildSuite(workDir: string): Promise<string> {
  const [commit, go] = await Promise.all([
    capture('git', ['rev-parse', '--short=16', 'HEAD'], { cwd: IPAM_EXTENSIONS_SRC }),
    capture('go', ['env', 'GOVERSION'], { cwd: IPAM_EXTENSIONS_SRC }),
  ]);
  const edits = createHash('sha256').update(JSON.stringify(EDITS)).digest('hex').slice(0, 16);
  const name = `ipam-extensions-e2e-${commit.trim()}-${go.trim()}-${edits}`;
  const folder = await cachedFolder(name, async (scratch) => {
    const source = join(workDir, 'ipam-extensions-test');
    await cp(join(IPAM_EXTENSIONS_SRC, 'test'), source, { recursive: true });
    await applyEdits(source);
    await capture('go', ['test', '-c', '-o', join(scratch, 'e2e.test'), './e2e'], { cwd: source });
  });
  return join(folder, 'e2e.test');
}

/** Writes a `virtctl` that knows the commands of the suite. @returns its folder, for PATH */
export async function writeVirtctl(workDir: string): Promise<string> {
  const folder = join(workDir, 'virtctl');
  await mkdir(folder, { recursive: true });
  const tsx = import.meta.resolve('tsx');
  const script = `#!/bin/sh\nexec '${process.execPath}' --import '${tsx}' '${join(import.meta.dirname, 'virtctl.ts')}' "$@"\n`;
  await writeFile(join(folder, 'virtctl'), script, { mode: 0o755 });
  return folder;
}
