import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { GO_TOOL_TIMEOUT_MS, goTool } from '../test/go-tools.js';
import { ROOT, findFiles } from '../test/source-files.js';
import { PLUGIN_PLATFORMS } from './platforms.js';

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly strategy?: { readonly matrix: { readonly node?: readonly string[]; readonly runner?: readonly string[] } };
  readonly needs?: string | readonly string[];
  readonly 'timeout-minutes'?: number;
  readonly uses?: string;
  readonly steps?: readonly Step[];
}

interface Workflow {
  readonly path: string;
  readonly text: string;
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions?: object;
  readonly jobs: Readonly<Record<string, Job>>;
}

const FOLDER = '.github/workflows';
/** Jobs that write to the repository: the release, and the branch of the documents. */
const WRITERS = ['announce', 'publish-docs'];

describe('the workflows', () => {
  let workflows: Workflow[] = [];
  let steps: Step[] = [];

  before(async () => {
    const paths = await findFiles('.yaml', join(ROOT, FOLDER));
    workflows = await Promise.all(
      paths.map(async (path) => {
        const text = await readFile(join(ROOT, path), 'utf8');
        return { ...(parse(text) as Workflow), path, text };
      }),
    );
    steps = workflows.flatMap(({ jobs }) => Object.values(jobs).flatMap((job) => job.steps ?? []));
  });

  function jobsOf(file: string): Workflow['jobs'] {
    return workflows.find(({ path }) => path.endsWith(`/${file}`))!.jobs;
  }

  it('are clean for actionlint', async function () {
    this.timeout(GO_TOOL_TIMEOUT_MS);
    const lint = spawnSync(await goTool('actionlint'), [], { cwd: ROOT, encoding: 'utf8' });
    expect(lint.status, lint.stdout + lint.stderr).to.equal(0);
  });

  it('use actions by the hash of a commit, with the version beside it', () => {
    const uses = workflows.flatMap(({ text }) => text.match(/\buses: .*$/gm) ?? []);
    expect(uses.length).to.be.greaterThan(10);
    const loose = uses.filter((line) => !/uses: ([\w.-]+\/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\.\/.*)$/.test(line));
    expect(loose).to.deep.equal([]);
    const versions = new Map(uses.map((line) => [/uses: ([^@]*)@/.exec(line)?.[1], line]));
    expect(new Set(uses.filter((line) => line.includes('@'))).size, 'versions of one action differ').to.equal(
      [...versions.keys()].filter((name) => name !== undefined).length,
    );
  });

  it('call only targets of make, and a script where make may be missing', async () => {
    const makefile = await readFile(join(ROOT, 'Makefile'), 'utf8');
    const others = ['sudo chown -R "$USER" ~/.cache/holdfast', 'release/try-plugin.sh'];
    const commands = steps.flatMap(({ run }) => run ?? []).filter((command) => !others.includes(command));
    expect(commands.length).to.be.greaterThan(5);
    for (const command of commands) {
      const [, target] =
        /^(?:sudo env (?:"\w+=\$\w+" )+|\w+="\$HOME[^"]*" )?make ([a-z0-9-]+)( \w+=\S+)*$/.exec(command) ?? [];
      expect(makefile, command).to.include(`\n${String(target)}:`);
    }
  });

  it('put no text that others write into a command', () => {
    expect(steps.filter(({ run }) => run?.includes('${{'))).to.deep.equal([]);
    for (const { on } of workflows)
      expect(on).not.to.have.any.keys('pull_request_target', 'workflow_run', 'issue_comment');
  });

  it('give each job its own rights, and only those that publish the right to write', () => {
    for (const { path, permissions, jobs } of workflows) {
      expect(permissions, path).to.deep.equal({});
      for (const [name, job] of Object.entries(jobs)) {
        expect(job.permissions, `${path}: ${name}`).to.include({ contents: WRITERS.includes(name) ? 'write' : 'read' });
        if (job.uses === undefined) expect(job['timeout-minutes'], `${path}: ${name}`).to.be.a('number');
      }
    }
    for (const job of Object.values(jobsOf('ci.yaml'))) expect(job.permissions).to.deep.equal({ contents: 'read' });
    const writing = Object.entries(jobsOf('release.yaml')).flatMap(([name, { permissions = {} }]) =>
      Object.values(permissions).includes('write') ? [name] : [],
    );
    expect(writing).to.deep.equal(['publish', 'announce']);
  });

  it('check, test and build on each change, and attest files and image of a release', () => {
    const targets = Object.values(jobsOf('ci.yaml')).flatMap(({ steps: own = [] }) =>
      own.flatMap(({ run }) => /\bmake ([a-z0-9-]+)/.exec(run ?? '')?.[1] ?? []),
    );
    expect(new Set(targets)).to.deep.equal(
      new Set(['check', 'unit', 'api', 'e2e', 'matrix', 'chaos', 'image', 'kind']),
    );
    const attested = (jobsOf('release.yaml').publish?.steps ?? []).filter(({ uses }) =>
      uses?.startsWith('actions/attest@'),
    );
    expect(attested).to.have.length(2);
  });

  it('publish nothing before the kubectl plugin has started on the platforms that no other test has', () => {
    const { plugin, publish } = jobsOf('release.yaml');
    expect(publish?.needs).to.include('plugin');
    expect(plugin?.strategy?.matrix.runner).to.have.length(PLUGIN_PLATFORMS.length - 1);
  });

  it('run no npm package in a job that may write', () => {
    const jobs = { ...jobsOf('release.yaml'), ...jobsOf('docs.yaml') };
    for (const name of ['publish', ...WRITERS]) {
      const run = (jobs[name]?.steps ?? []).flatMap((step) => step.run ?? []);
      expect(run).to.deep.equal([`make ${name}`]);
    }
  });

  it('test the oldest Node.js of package.json and that of the image', async () => {
    const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };
    const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8');
    const ofImage = /\bnode:(\d+)/.exec(dockerfile)?.[1];
    expect(jobsOf('ci.yaml').unit?.strategy?.matrix.node).to.deep.equal([engines.node.replace('>=', ''), ofImage]);
  });
});
