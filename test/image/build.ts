import { spawnSync } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { ROOT } from '../source-files.js';
import type { Dockerfile, Stage, Step } from './dockerfile.js';

/** The stage in which everything is built. */
const BUILD = 'build';

/**
 * Runs the stage `build` and copies what the final stage copies, without a container engine. The commands run on this
 * machine. The result of `npm ci` is taken from this tree, which comes from the same lock file.
 * @param folder receives `build/`, the working directory of the stage, and `root/`, the files that the image adds to its base
 * @returns the path of `root/`
 */
export async function buildImage(
  { stages, context }: Dockerfile,
  folder: string,
  architecture: string,
): Promise<string> {
  const [build, final] = [stages.find(({ name }) => name === BUILD), stages.at(-1)];
  if (build === undefined || final === undefined) throw new Error(`the Dockerfile has no stage ${BUILD}`);
  const source = join(folder, 'build');
  await mkdir(source, { recursive: true });
  for (const step of build.steps) await runBuildStep(step, { context, source, architecture });
  return assemble(final, { from: workdirOf(build), source }, join(folder, 'root'));
}

interface Build {
  readonly context: readonly string[];
  readonly source: string;
  readonly architecture: string;
}

async function runBuildStep(step: Step, { context, source, architecture }: Build): Promise<void> {
  if (step.kind === 'run' && /^npm ci\b/.test(step.command)) {
    // links, if the folders are in one file system
    run('sh', ['-c', 'cp -al "$1" "$2" 2>/dev/null || cp -a "$1" "$2"', 'sh', join(ROOT, 'node_modules'), source]);
  } else if (step.kind === 'run') {
    run('sh', ['-euc', step.command], { cwd: source, env: { ...process.env, TARGETARCH: architecture } });
  } else if (step.kind === 'copy' && step.from === undefined) {
    for (const path of step.sources.flatMap((name) => matches(context, name))) {
      await cp(join(ROOT, path), join(source, step.target, path));
    }
  }
}

/** @throws {Error} if the context has no such file, as BuildKit does */
function matches(context: readonly string[], name: string): string[] {
  const found = name === '.' ? [...context] : context.filter((path) => path === name || path.startsWith(`${name}/`));
  if (found.length === 0) throw new Error(`COPY ${name}: not in the build context`);
  return found;
}

/**
 * Copies what the final stage copies from the stage `build`.
 * @param from the working directory of that stage, which is the folder `source` here
 * @param root is created, and receives the files
 * @returns the path of `root`
 */
export async function assemble(
  stage: Pick<Stage, 'steps'>,
  { from, source }: { from: string; source: string },
  root: string,
): Promise<string> {
  await mkdir(root, { recursive: true });
  let workdir = '/';
  for (const step of stage.steps) {
    if (step.kind === 'workdir') workdir = resolve(workdir, step.target);
    if (step.kind !== 'copy') continue;
    if (step.from !== BUILD) throw new Error(`the final stage copies from ${String(step.from)}`);
    for (const path of step.sources) {
      const target = step.target.endsWith('/') ? join(step.target, basename(path)) : step.target;
      const copied = join(root, resolve(workdir, target));
      await mkdir(dirname(copied), { recursive: true });
      await cp(join(source, path.slice(from.length)), copied, { recursive: true, verbatimSymlinks: true });
    }
  }
  return root;
}

function workdirOf({ steps }: Stage): string {
  const step = steps.find(({ kind }) => kind === 'workdir');
  return step?.kind === 'workdir' ? step.target : '/';
}

function run(command: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { ...options, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? `${stdout}${stderr}`}`);
}
