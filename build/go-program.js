// Compiles Go programs of the image for the nodes' architectures, once for each version of the sources; then it copies
// from the cache.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

const ARCHITECTURES = ['amd64', 'arm64'];
const FLAGS = ['-trimpath', '-buildvcs=false', '-ldflags=-s -w'];
// Static, so that it runs on hosts without a C library.
const SETTINGS = { CGO_ENABLED: '0', GOOS: 'linux', GOFLAGS: '-mod=readonly', GOTOOLCHAIN: 'local', GOWORK: 'off' };

const run = promisify(execFile);

/**
 * @param program
 *   name: in the cache; title: in messages; sources: the folder of its module;
 *   binary: the name of the file, to which `-linux-<architecture>` is added; tags: build tags, if any
 * @param architectures of nodes; none: all
 * @returns the paths of the binaries, in `folder`
 */
export async function buildGoProgram(program, folder, architectures = []) {
  const unknown = architectures.filter((name) => !ARCHITECTURES.includes(name));
  if (unknown.length > 0)
    throw new Error(`no ${program.title} for ${unknown.join(', ')}; available: ${ARCHITECTURES.join(', ')}`);
  const hash = await hashOfSources(program, await goVersion(program));
  await mkdir(folder, { recursive: true });
  const wanted = architectures.length === 0 ? ARCHITECTURES : architectures;
  return Promise.all(wanted.map((architecture) => buildFor(program, architecture, folder, hash)));
}

async function buildFor(program, architecture, folder, hash) {
  const name = `${program.binary}-linux-${architecture}`;
  const cached = join(cacheFolder(), `${program.name}-${architecture}-${hash}`);
  if (!existsSync(cached)) await compileInto(cached, program, architecture, name);
  return install(join(cached, name), join(folder, name));
}

function cacheFolder() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast', 'bin');
}

async function goVersion({ title }) {
  try {
    return (await run('go', ['env', 'GOVERSION'], { env: { ...process.env, ...SETTINGS } })).stdout.trim();
  } catch (error) {
    throw new Error(`cannot run "go", which compiles the ${title}: install Go 1.24 or newer (https://go.dev/dl)`, {
      cause: error,
    });
  }
}

async function hashOfSources({ sources: folder, tags = [] }, version) {
  const hash = createHash('sha256').update(JSON.stringify([version, FLAGS, SETTINGS, ...tags]));
  const isSource = (name) => /^go\.(mod|sum)$|\.go$/.test(name) && !name.endsWith('_test.go');
  for (const file of (await readdir(folder)).filter(isSource).sort()) {
    hash.update(`${file}\n`).update(await readFile(join(folder, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

/** Compiles in a temporary folder and renames it, so that parallel builds never see an incomplete folder. */
async function compileInto(folder, program, architecture, name) {
  await mkdir(dirname(folder), { recursive: true });
  const scratch = await mkdtemp(join(dirname(folder), '.build-'));
  try {
    await compile(program, architecture, join(scratch, name));
    await rename(scratch, folder).catch((error) => {
      if (!existsSync(folder)) throw error; // else a parallel build has compiled the same
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function compile({ sources, tags = [] }, architecture, output) {
  const args = ['build', ...FLAGS, `-tags=${tags.join(',')}`, '-o', output, '.'];
  await run('go', args, { cwd: sources, env: { ...process.env, ...SETTINGS, GOARCH: architecture } });
}

/** Installs by renaming, because the old file may be running. */
async function install(from, to) {
  const scratch = `${to}.${process.pid}`;
  await copyFile(from, scratch);
  await rename(scratch, to);
  return to;
}

/** Prints the sizes of binaries. */
export async function printSizes(paths) {
  for (const path of paths) {
    console.log(`${((await stat(path)).size / 1024).toFixed(0).padStart(6)} KiB  ${relative('.', path)}`);
  }
}
