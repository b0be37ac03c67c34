import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import type { KubeObject } from '../api/meta.js';
import type { ListOptions } from '../kube/client.js';
import type { Resource } from '../kube/resource.js';
import { buildProgram } from './command-line.js';
import { COMPLETION_SCRIPTS } from './commands/all.js';
import { type ConnectForCompletion, answerCompletion } from './completion.js';

/** A plugin that shows the words that it gets. */
const ANSWER = '#!/bin/sh\nprintf "%b\\n" "$*|" "b c\\ttext" ":4"\n';

/** A cluster with two objects of each kind, whose names say how they were asked for. */
const CLUSTER: ConnectForCompletion = ({ context = 'current' }, run) => {
  async function* pages(resource: Resource, { namespace = 'all' }: ListOptions = {}) {
    const named = (name: string): KubeObject => ({ metadata: { name: `${name}.${resource.plural}.${namespace}` } });
    yield await Promise.resolve({ items: ['blue', context].map(named), resourceVersion: '1' });
  }
  return run({ client: { pages } as never, home: 'home' });
};

async function answer(words: readonly string[], connect = CLUSTER, signal = new AbortController().signal) {
  const text = await answerCompletion(
    buildProgram(() => undefined),
    words,
    connect,
    signal,
  );
  const lines = text.split('\n');
  // kubectl reads the last line as cobra's directive
  expect(lines.slice(-2)).to.deep.equal([':4', '']);
  return lines.slice(0, -2).map((line) => line.split('\t')[0]);
}

function isInstalled(shell: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, shell)));
}

describe('completion', () => {
  const cases: { words: readonly string[]; expect: readonly string[] }[] = [
    { words: ['tr'], expect: ['trace'] },
    { words: ['trace', ''], expect: ['vm'] },
    { words: ['migrate', ''], expect: ['whereabouts'] },
    { words: ['trace', 'vm', 'b'], expect: ['blue.virtualmachines.home'] },
    { words: ['-n', 'lab', 'trace', 'vm', 'b'], expect: ['blue.virtualmachines.lab'] },
    { words: ['trace', 'vm', '--namespace=lab', '--context', 'c', 'c'], expect: ['c.virtualmachines.lab'] },
    { words: ['pool', 'b'], expect: ['blue.addresspools.all'] },
    { words: ['reserve', 'b'], expect: ['blue.addresspools.all'] },
    { words: ['reserve', 'blue', ''], expect: [] },
    { words: ['release', '--pool', 'b'], expect: ['blue.addresspools.all'] },
    { words: ['ips', '-n', 'b'], expect: ['blue.namespaces.all'] },
    { words: ['ips', '-o', ''], expect: ['table', 'wide', 'json', 'yaml'] },
    { words: ['ips', '--output=j'], expect: ['--output=json'] },
    { words: ['ips', '--output', '=', 'j'], expect: ['json'] },
    { words: ['ips', '--all'], expect: ['--all-namespaces'] },
    { words: ['unreserve', '--al'], expect: [] },
  ];
  for (const { words, expect: expected } of cases) {
    it(`of ${JSON.stringify(words)} is ${expected.join(' ') || 'nothing'}`, async () => {
      expect(await answer(words)).to.deep.equal(expected);
    });
  }

  it('asks with the rights of all groups of --as-group', async () => {
    const asked: object[] = [];
    const connect: ConnectForCompletion = (options, run) => {
      asked.push(options);
      return CLUSTER(options, run);
    };
    await answer(['pool', '--as', 'jane', '--as-group', 'admins', '--as-group=all', ''], connect);
    expect(asked).to.deep.equal([{ as: 'jane', asGroup: ['admins', 'all'] }]);
  });

  it('is silent if the cluster cannot be asked, or does not answer in time', async () => {
    expect(await answer(['pool', ''], () => Promise.reject(new Error('no cluster')))).to.deep.equal([]);
    const hanging = new AbortController();
    const answered = answer(['pool', ''], () => new Promise(() => undefined), hanging.signal);
    hanging.abort();
    expect(await answered).to.deep.equal([]);
  });

  describe('in a shell', () => {
    let folder: string;
    beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'holdfast-completion-'))));
    afterEach(() => rm(folder, { recursive: true }));

    async function program(name: string, text: string): Promise<string> {
      const path = join(folder, name);
      await writeFile(path, text);
      await chmod(path, 0o755);
      return path;
    }

    const run = (command: string, args: readonly string[]) =>
      execFileSync(command, args, { env: { PATH: `${folder}${delimiter}${process.env.PATH}` } }).toString();

    it('of bash is asked for the words before the cursor, and shows values without descriptions', async () => {
      await program('kubectl-holdfast', ANSWER);
      const typed = 'COMP_WORDS=(kubectl-holdfast pool "" after); COMP_CWORD=2; _kubectl_holdfast';
      const script = `${COMPLETION_SCRIPTS.bash}${typed}; printf '<%s>' "\${COMPREPLY[@]}"`;
      expect(run('bash', ['--norc', '-c', script])).to.equal('<__complete pool |><b c>');
    });

    it('of zsh is asked for the words before the cursor, and shows values without descriptions', async function () {
      if (!isInstalled('zsh')) this.skip();
      await program('kubectl-holdfast', ANSWER);
      // compdef and compadd are what the completion system of zsh has
      const typed = 'words=(kubectl-holdfast pool "" after); CURRENT=3; _kubectl_holdfast';
      const script = `compdef() { }; compadd() { shift; printf '<%s>' "$@" }; ${COMPLETION_SCRIPTS.zsh}${typed}`;
      expect(run('zsh', ['-f', '-c', script])).to.equal('<__complete pool |><b c>');
    });

    it('of fish is asked for the words before the cursor, and shows descriptions beside values', async function () {
      if (!isInstalled('fish')) this.skip();
      await program('kubectl-holdfast', ANSWER);
      const script = `${COMPLETION_SCRIPTS.fish}complete -C 'kubectl-holdfast pool '`;
      const lines = run('fish', ['--no-config', '-c', script]).trim().split('\n');
      expect(lines.sort()).to.deep.equal(['__complete pool |', 'b c\ttext']);
    });

    it('of kubectl gets the words that kubectl passes', async () => {
      await program('kubectl-holdfast', '#!/bin/sh\nprintf "<%s>" "$@"\n');
      const path = await program('kubectl_complete-holdfast', COMPLETION_SCRIPTS.kubectl!);
      expect(run(path, ['trace', 'vm', ''])).to.equal('<__complete><trace><vm><>');
    });
  });
});
