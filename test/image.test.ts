import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT } from './source-files.js';

/** The entries of the root folder that `.dockerignore` leaves in the build context. */
async function entriesOfContext(): Promise<string[]> {
  const [first, ...exceptions] = (await readFile(join(ROOT, '.dockerignore'), 'utf8')).trim().split('\n');
  expect(first).to.equal('*');
  // this form alone is understood here: no pattern, no nested path, no comment
  for (const line of exceptions) expect(line).to.match(/^![\w-][\w.-]*$/);
  return exceptions.map((line) => line.slice(1));
}

describe('the build context of the container image', function () {
  this.timeout(5 * 60_000); // the first run compiles the CNI plugin
  let context: string;
  let entries: string[] = [];

  before(async () => {
    entries = await entriesOfContext();
    context = await mkdtemp(join(tmpdir(), 'holdfast-context-'));
    for (const entry of entries) await cp(join(ROOT, entry), join(context, entry), { recursive: true });
    // in the image `npm ci` makes it
    await symlink(join(ROOT, 'node_modules'), join(context, 'node_modules'));
  });

  after(() => rm(context, { recursive: true, force: true }));

  it('has everything that the Dockerfile copies from it by name', async () => {
    const lines = (await readFile(join(ROOT, 'Dockerfile'), 'utf8')).split('\n');
    const copied = lines.flatMap((line) => /^COPY (?!--from)(.*) \S+$/.exec(line)?.[1]?.split(' ') ?? []);
    expect(copied).to.include('package-lock.json');
    for (const path of copied) expect(existsSync(join(context, path)), path).to.equal(true);
  });

  it('builds the executable, the kubectl plugin and the CNI plugin', async () => {
    const build = spawnSync(process.execPath, ['build.js'], { cwd: context, encoding: 'utf8' });
    expect(build.status, build.stderr).to.equal(0);
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    for (const file of ['holdfast.js', 'kubectl-holdfast.cjs']) {
      const run = spawnSync(process.execPath, [join('dist', file), '--version'], { cwd: context, encoding: 'utf8' });
      expect(run.stdout, run.stderr).to.equal(`${version}\n`);
    }
    for (const architecture of ['amd64', 'arm64']) {
      expect(existsSync(join(context, 'dist', 'cni', `holdfast-linux-${architecture}`))).to.equal(true);
    }
  });
});
