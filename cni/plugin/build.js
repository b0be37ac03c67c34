// Compiles the CNI plugin for the nodes' architectures: `node cni/plugin/build.js [folder]`, by default into dist/cni/.
// It compiles once for each version of the sources, and then copies from the cache.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';

const SOURCES = import.meta.dirname;
const ARCHITECTURES = ['amd64', 'arm64'];
const FLAGS = ['-trimpath', '-buildvcs=false', '-ldflags=-s -w'];
// Static, so that it runs on hosts without a C library.
const SETTINGS = { CGO_ENABLED: '0', GOOS: 'linux', GOFLAGS: '-mod=readonly', GOTOOLCHAIN: 'local', GOWORK: 'off' };

const run = promisify(execFile);

/**
 * @param architectures of nodes; none: all
 * @returns the paths of the binaries, in `folder`
 */
export async function buildPlugin(folder, architectures = []) {
  const unknown = architectures.filter((name) => !ARCHITECTURES.includes(name));
  if (unknown.length > 0)
    throw new Error(`no CNI plugin for ${unknown.join(', ')}; available: ${ARCHITECTURES.join(', ')}`);
  const hash = await hashOfSources(await goVersion());
  await mkdir(folder, { recursive: true });
  const wanted = architectures.length === 0 ? ARCHITECTURES : architectures;
  return Promise.all(wanted.map((architecture) => buildFor(architecture, folder, hash)));
}

async function buildFor(architecture, folder, hash) {
  const name = `holdfast-linux-${architecture}`;
  const cached = join(cacheFolder(), `plugin-${architecture}-${hash}`);
  if (!existsSync(cached)) await compileInto(cached, architecture, name);
  return install(join(cached, name), join(folder, name));
}

function cacheFolder() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast', 'bin');
}

async function goVersion() {
  try {
    return (await run('go', ['env', 'GOVERSION'], { env: { ...process.env, ...SETTINGS } })).stdout.trim();
  } catch (error) {
    throw new Error('cannot run "go", which compiles the CNI plugin: install Go 1.24 or newer (https://go.dev/dl)', {
      cause: error,
    });
  }
}

async function hashOfSources(version) {
  const hash = createHash('sha256').update(JSON.stringify([version, FLAGS, SETTINGS]));
  for (const file of ['go.mod', 'main.go']) hash.update(await readFile(join(SOURCES, file)));
  return hash.digest('hex').slice(0, 16);
}

/** Compiles in a temporary folder and renames it, so that parallel builds never see an incomplete folder. */
async function compileInto(folder, architecture, name) {
  await mkdir(dirname(folder), { recursive: true });
  const scratch = await mkdtemp(join(dirname(folder), '.build-'));
  try {
    await compile(architecture, join(scratch, name));
    await rename(scratch, folder).catch((error) => {
      if (!existsSync(folder)) throw error; // else a parallel build has compiled the same
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function compile(architecture, output) {
  const args = ['build', ...FLAGS, '-o', output, '.'];
  await run('go', args, { cwd: SOURCES, env: { ...process.env, ...SETTINGS, GOARCH: architecture } });
}

/** Installs by renaming, because the old file may be running. */
async function install(from, to) {
  const scratch = `${to}.${process.pid}`;
  await copyFile(from, scratch);
  await rename(scratch, to);
  return to;
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename) {
  const root = join(SOURCES, '..', '..');
  for (const path of await buildPlugin(process.argv[2] ?? join(root, 'dist', 'cni'))) {
    console.log(`${((await stat(path)).size / 1024).toFixed(0).padStart(6)} KiB  ${relative('.', path)}`);
  }
}
