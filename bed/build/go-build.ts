import { spawn } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { createInterface } from 'node:readline';
import { capture } from '../processes/processes.js';

/** Takes one line of progress for a human. */
export type Progress = (line: string) => void;

/** CPU time to compile one package, on average over the packages of the bed. */
const SECONDS_PER_PACKAGE = 0.2;
const PROGRESS_EVERY_MS = 15_000;

/** Packages in which etcd and the API server spend their time. */
const HOT = [
  'std k8s.io/apimachinery/... k8s.io/apiserver/... sigs.k8s.io/... go.etcd.io/... google.golang.org/... golang.org/x/net/...',
  'github.com/gogo/... github.com/json-iterator/... github.com/google/cel-go/...',
].flatMap((line) => line.split(' '));
/**
 * The compiler writes no debugging information, which the linker would strip, and does not inline functions outside of
 * {@link HOT}: half of the time to compile generated code is inlining.
 */
const FLAGS = [
  ...['-trimpath', '-ldflags=-s -w', '-gcflags=all=-dwarf=false -l'],
  ...HOT.map((packages) => `-gcflags=${packages}=-dwarf=false`),
];

/** Goes into the key of a cached binary: other flags make other binaries. */
export const BUILD_FLAGS = FLAGS.join(' ');

/** Go with one set of flags in all builds, so that they share what they compile. */
function environment(): NodeJS.ProcessEnv {
  const perCompiler = Math.floor((0.6 * totalmem()) / cpus().length / 2 ** 20);
  // The compiler's own garbage collection costs a fifth of the time. It starts only where memory gets scarce.
  const memory = { GOGC: 'off', GOMEMLIMIT: `${String(Math.max(perCompiler, 256))}MiB` };
  return { ...process.env, ...memory, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly' };
}

/** Counts the packages that `go build -v` names when it begins to compile them, and keeps its other lines. */
export class PackageCount {
  readonly #total: number | undefined;
  readonly #compiled = new Set<string>();
  readonly #messages: string[] = [];

  /** @param total undefined if it is not known */
  constructor(total?: number) {
    this.#total = total;
  }

  read(line: string): void {
    if (/^[\w.~/+-]+$/.test(line)) this.#compiled.add(line);
    else if (!line.startsWith('go: downloading ')) this.#messages.push(line);
  }

  /** The share that is compiled. Packages that Go has cached are never named: then it ends below 100 %. */
  get text(): string {
    if (this.#total === undefined) return `${String(this.#compiled.size)} packages`;
    const done = Math.min(this.#compiled.size, this.#total);
    const percent = Math.floor((100 * done) / Math.max(this.#total, 1));
    return `${String(done)} of ${String(this.#total)} packages (${String(percent)} %)`;
  }

  /** The end of what the compiler said. */
  get messages(): string {
    return this.#messages.join('\n').slice(-4000);
  }
}

/** Commands that are built together. */
export interface BuildTarget {
  /** For people. */
  readonly title: string;
  readonly packages: readonly string[];
  /** Default `go.mod`. */
  readonly modfile?: string;
  readonly tags?: string;
  /** Receives the commands. */
  readonly folder: string;
}

/** @returns the line to show before a build of so many packages */
export function announcement(titles: readonly string[], packages: number, cores = cpus().length): string {
  const minutes = Math.ceil((packages * SECONDS_PER_PACKAGE) / cores / 60);
  return [
    `building ${titles.join(', ')} from source, which happens only once:`,
    `${String(packages)} packages, about ${String(minutes)} min on ${String(cores)} cores`,
  ].join(' ');
}

/**
 * Compiles commands of the Go module in `source`.
 * @throws {Error} with the messages of the compiler
 */
export async function goBuild(source: string, targets: readonly BuildTarget[], progress: Progress): Promise<void> {
  const options = { cwd: source, env: environment() };
  const titles = targets.map(({ title }) => title);
  progress(`reading the Go modules of ${titles.join(', ')}`);
  const lists = await Promise.all(
    targets.map((target) => capture('go', ['list', '-deps', ...moduleFlags(target), ...target.packages], options)),
  );
  // the same package of two versions is compiled twice, but named once
  const total = new Set(lists.flatMap((list) => list.trim().split('\n'))).size;
  const count = new PackageCount(total);
  progress(announcement(titles, total));
  await withTicker(count, progress, async (elapsed) => {
    for (const target of targets) {
      const { title, packages, folder } = target;
      const flags = [...moduleFlags(target), ...FLAGS];
      const code = await run(['build', '-v', ...flags, '-o', `${folder}/`, ...packages], options, count);
      if (code !== 0) throw new Error(`go build of ${title} ended with ${code ?? 'a signal'}:\n${count.messages}`);
      progress(`built ${title}, ${elapsed()} after the start`);
    }
  });
}

function moduleFlags({ modfile, tags }: BuildTarget): string[] {
  return [...(modfile === undefined ? [] : [`-modfile=${modfile}`]), ...(tags === undefined ? [] : [`-tags=${tags}`])];
}

/**
 * Compiles a command of any Go module with the versions that the module itself names.
 * @param command its package and version
 * @param folder receives the executable
 * @throws {Error} with the messages of the compiler
 */
export async function goInstall(command: string, folder: string, progress: Progress, tags = ''): Promise<void> {
  const count = new PackageCount();
  progress(`building ${command} from source, which happens only once`);
  await withTicker(count, progress, async (elapsed) => {
    const options = { cwd: folder, env: { ...environment(), GOBIN: folder } };
    const code = await run(['install', '-v', `-tags=${tags}`, ...FLAGS, command], options, count);
    if (code !== 0) throw new Error(`go install ${command} ended with ${code ?? 'a signal'}:\n${count.messages}`);
    progress(`built ${command} in ${elapsed()}`);
  });
}

/** @param work receives a function that says how long the build has taken */
async function withTicker(count: PackageCount, progress: Progress, work: (elapsed: () => string) => Promise<void>) {
  const started = Date.now();
  const elapsed = () => `${((Date.now() - started) / 1000).toFixed(0)} s`;
  const ticker = setInterval(() => progress(`  built ${count.text} in ${elapsed()}`), PROGRESS_EVERY_MS);
  try {
    await work(elapsed);
  } finally {
    clearInterval(ticker);
  }
}

/** @returns the exit code; null after a signal */
function run(
  args: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
  count: PackageCount,
): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn('go', args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    createInterface({ input: child.stderr }).on('line', (line) => count.read(line));
    child.once('error', reject);
    child.once('close', resolve);
  });
}
