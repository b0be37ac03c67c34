import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { capture } from './processes.js';

/** Takes one line of progress for a human. */
export type Progress = (line: string) => void;

/** Paths of the bed's binaries. */
export interface Binaries {
  /** `controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler`. */
  readonly controlplane: string;
  readonly virtApi: string;
  /** `virt-controller`, and `virt-controller manifests`. */
  readonly virtController: string;
}

const SOURCES = join(import.meta.dirname, 'go');
const OLDEST_GO = [1, 24] as const;
const PROGRESS_EVERY_MS = 15_000;

/**
 * The bed's binaries, built with Go where the cache lacks them (minutes the first time, nothing afterwards).
 * @throws {Error} without a recent Go, or with the compiler's own words
 */
export async function ensureBinaries(progress: Progress): Promise<Binaries> {
  const controlplane = await ensureControlPlaneBinary(progress);
  const kubevirt = await ensureModule(join(SOURCES, 'kubevirt'), progress);
  return { controlplane, virtApi: join(kubevirt, 'virt-api'), virtController: join(kubevirt, 'virt-controller') };
}

/** Only etcd and the Kubernetes processes, for tests that need no KubeVirt. */
export async function ensureControlPlaneBinary(progress: Progress): Promise<string> {
  return join(await ensureModule(join(SOURCES, 'controlplane'), progress), 'controlplane');
}

/** The folder of Multus, the CNI plugins, and what holds the namespaces they work in (`netbed`, `hotplug`). */
export function ensureNetworkBinaries(progress: Progress): Promise<string> {
  return ensureModule(join(SOURCES, 'network'), progress);
}

/**
 * @param source folder of a Go module
 * @returns the folder that holds the module's binaries, which is there only as a whole
 */
export async function ensureModule(source: string, progress: Progress): Promise<string> {
  const goVersion = await findGo();
  const folder = join(cacheFolder(), `${basename(source)}-${await hashOfSources(source, goVersion)}`);
  if (!existsSync(folder)) await build(source, folder, progress);
  return folder;
}

function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast', 'bin');
}

async function findGo(): Promise<string> {
  const wanted = `Go ${OLDEST_GO.join('.')} or newer builds the test bed (https://go.dev/dl)`;
  let version: string;
  try {
    version = (await capture('go', ['env', 'GOVERSION'])).trim();
  } catch (error) {
    throw new Error(`${wanted}; "go" did not run`, { cause: error });
  }
  const [, major = '0', minor = '0'] = /^go(\d+)\.(\d+)/.exec(version) ?? [];
  const isRecent = Number(major) > OLDEST_GO[0] || (Number(major) === OLDEST_GO[0] && Number(minor) >= OLDEST_GO[1]);
  if (!isRecent) throw new Error(`${wanted}; this is ${version}`);
  return version;
}

async function hashOfSources(source: string, goVersion: string): Promise<string> {
  const hash = createHash('sha256').update(`${goVersion} ${process.platform} ${process.arch}\n`);
  const files = (await readdir(source, { recursive: true })).filter((file) => /\.go$|^go\.(mod|sum)$/.test(file));
  for (const file of files.sort()) hash.update(`${file}\n`).update(await readFile(join(source, file)));
  return hash.digest('hex').slice(0, 16);
}

/** Builds elsewhere and renames, so that builders running at once never see half a folder. */
async function build(source: string, folder: string, progress: Progress): Promise<void> {
  const module = basename(source);
  await mkdir(dirname(folder), { recursive: true });
  const scratch = await mkdtemp(join(dirname(folder), '.build-'));
  const started = Date.now();
  const elapsed = () => `${((Date.now() - started) / 1000).toFixed(0)} s`;
  progress(`building ${module} (once; some minutes with cold Go caches)`);
  const ticker = setInterval(() => progress(`  still building ${module}, ${elapsed()}`), PROGRESS_EVERY_MS);
  try {
    await compile(source, scratch);
    await moveInto(scratch, folder);
    progress(`built ${module} in ${elapsed()}`);
  } finally {
    clearInterval(ticker);
    await rm(scratch, { recursive: true, force: true });
  }
}

async function moveInto(scratch: string, folder: string): Promise<void> {
  try {
    await rename(scratch, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error; // else somebody else has built the same in the meantime
  }
}

/** Builds the commands of a module, and those of other modules that it names as its tools. */
function compile(source: string, folder: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('go', ['build', '-trimpath', '-ldflags=-s -w', '-o', `${folder}/`, './...', 'tool'], {
      cwd: source,
      env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let complaints = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints = (complaints + text).slice(-4000)));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`go build in ${source} ended with ${code ?? 'a signal'}:\n${complaints}`));
    });
  });
}
