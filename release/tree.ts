import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { notesOf } from './changelog.js';
import { PREVIOUS } from '../bed/holdfast/release.js';
import { isPrerelease, readVersion, setVersion } from './version.js';

/** A commit, as git shows it in a work tree. */
export interface TreeState {
  readonly commit: string;
  /** Of the commit, in seconds since 1970. */
  readonly time: number;
  /** Files that differ from the commit. */
  readonly changed: readonly string[];
  /** The commit of the version's tag. */
  readonly tagged: string | undefined;
  /** The newest release before this version in the history; undefined before the first one. */
  readonly previous: { readonly tag: string; readonly commit: string } | undefined;
  /** What package.json says. */
  readonly version: string;
  readonly changelog: string;
}

function git(root: string, ...args: string[]): string {
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', maxBuffer: 1 << 26 }).trimEnd();
}

/** @returns the newest version first */
function readTags(root: string, pattern: string, ...options: string[]): { tag: string; commit: string }[] {
  // an annotated tag has an object of its own
  const format = '--format=%(refname:short) %(objectname) %(*objectname)';
  const lines = git(root, 'for-each-ref', '--sort=-version:refname', format, ...options, pattern).split('\n');
  return lines.filter(Boolean).map((line) => {
    const [tag = '', ...objects] = line.trim().split(' ');
    return { tag, commit: objects.at(-1)! };
  });
}

export async function readTree(root: string, version: string): Promise<TreeState> {
  return {
    commit: git(root, 'rev-parse', 'HEAD'),
    time: Number(git(root, 'log', '-1', '--format=%ct')),
    changed: git(root, 'status', '--porcelain').split('\n').filter(Boolean),
    tagged: readTags(root, `refs/tags/v${version}`)[0]?.commit,
    previous: readTags(root, 'refs/tags/v*', '--merged=HEAD').find(
      ({ tag }) => tag !== `v${version}` && !isPrerelease(tag),
    ),
    version: await readVersion(root),
    changelog: await readFile(join(root, 'CHANGELOG.md'), 'utf8'),
  };
}

/**
 * Finds why a version cannot be released from a tree, and what to do.
 * @param upgradesFrom the commit from which tests of upgrades begin
 */
export function problemsOfTree(
  { commit, changed, tagged, previous, ...tree }: TreeState,
  version: string,
  upgradesFrom: string = PREVIOUS.commit,
): string[] {
  const problems: string[] = [];
  const prepare = `run \`make version VERSION=${version}\`, and commit the result`;
  if (changed.length > 0)
    problems.push(
      `${changed.length} files differ from the commit (${changed[0] ?? ''} …): commit or remove the changes`,
    );
  if (tagged !== undefined && tagged !== commit)
    problems.push(
      `the tag v${version} is on commit ${tagged}, not on ${commit}: check the tag out, or choose a new version`,
    );
  if (previous !== undefined && previous.commit !== upgradesFrom)
    problems.push(
      `tests of upgrades begin with commit ${upgradesFrom}, and the previous release ${previous.tag} is ${previous.commit}: write that into PREVIOUS in bed/holdfast/release.ts`,
    );
  if (tree.version !== version) problems.push(`package.json says ${tree.version}: ${prepare}`);
  if (notesOf(tree.changelog, version) === undefined)
    problems.push(`CHANGELOG.md has no text for ${version}: ${prepare}`);
  return problems;
}

/**
 * Copies a tree without the files that git ignores, and sets its version.
 * @returns the new folder; its `node_modules` is that of the tree
 */
export async function stageTree(root: string, version: string): Promise<string> {
  const stage = await mkdtemp(join(tmpdir(), 'holdfast-release-'));
  const paths = listFiles(root);
  // Copying each file by itself takes ten times as long.
  const archive = tar(['--create', '--directory', root, '--null', '--files-from=-'], paths.join('\0'));
  tar(['--extract', '--directory', stage], archive);
  await symlink(join(root, 'node_modules'), join(stage, 'node_modules'));
  await setVersion(stage, paths, version);
  return stage;
}

function tar(args: readonly string[], input: string | Buffer): Buffer {
  return execFileSync('tar', args, { input, maxBuffer: Infinity });
}

/** The files of a work tree that git has or would add. */
export function listFiles(root: string): string[] {
  const paths = git(root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard').split('\0');
  return paths.filter((path) => path !== '' && existsSync(join(root, path)));
}
