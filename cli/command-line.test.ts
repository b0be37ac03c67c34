import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { codeOf } from '../test/repository/documents.js';
import { ROOT, findFiles } from '../test/source-files.js';
import { UsageError } from '../process/read-arguments.js';
import { COMMANDS } from './commands/all.js';
import { readCliCommandLine } from './command-line.js';

const FOLDERS = ['how-to', 'tutorials', 'runbooks'];
const ALL = { namespace: 'kube-system', output: 'table' };

describe('the command line of kubectl holdfast', () => {
  const rows: { given: string; expect: object }[] = [
    { given: 'migrate whereabouts', expect: { command: 'migrate whereabouts', cluster: {}, request: ALL } },
    {
      given: 'migrate whereabouts --apply --namespace w --network blue --skip-conflicts -o json --context lab',
      expect: {
        command: 'migrate whereabouts',
        cluster: { context: 'lab' },
        request: { apply: true, namespace: 'w', network: 'blue', skipConflicts: true, output: 'json' },
      },
    },
    {
      given: 'reserve blue 10.0.0.5 --mac 02:00:00:00:00:01 --kubeconfig k',
      expect: {
        command: 'reserve',
        cluster: { kubeconfig: 'k' },
        request: { pool: 'blue', address: '10.0.0.5', mac: '02:00:00:00:00:01' },
      },
    },
    { given: 'uninstall --context lab', expect: { command: 'uninstall', cluster: { context: 'lab' }, request: {} } },
    {
      given: 'uninstall --everything --ignore-running-pods --yes --dry-run',
      expect: {
        command: 'uninstall',
        cluster: {},
        request: { everything: true, ignoreRunningPods: true, yes: true, dryRun: true },
      },
    },
    { given: 'ips', expect: { command: 'ips', cluster: {}, request: { output: 'table', allNamespaces: false } } },
    {
      given: 'ips -n lab',
      expect: { command: 'ips', cluster: {}, request: { output: 'table', allNamespaces: false, namespace: 'lab' } },
    },
    {
      given: 'ips -n=lab -o=json',
      expect: { command: 'ips', cluster: {}, request: { output: 'json', allNamespaces: false, namespace: 'lab' } },
    },
    {
      given: 'ips -A -o json',
      expect: { command: 'ips', cluster: {}, request: { output: 'json', allNamespaces: true } },
    },
    {
      given: '-n lab --context c ips -o wide --kubeconfig k',
      expect: {
        command: 'ips',
        cluster: { context: 'c', kubeconfig: 'k' },
        request: { output: 'wide', allNamespaces: false, namespace: 'lab' },
      },
    },
    {
      given: 'unreserve blue fd00::5',
      expect: { command: 'unreserve', cluster: {}, request: { pool: 'blue', address: 'fd00::5' } },
    },
  ];
  for (const { given, expect: expected } of rows) {
    it(`parses ${given}`, () => {
      const { run: _run, ...parsed } = readCliCommandLine(given.split(' '))!;
      expect(parsed).to.deep.equal(expected);
    });
  }

  for (const [given, words] of [
    ['migrate', 'a command is missing; commands: whereabouts'],
    ['help calico', "unknown command 'calico'"],
    ['migrat whereabouts', 'Did you mean migrate?'],
    ['migrate calico', "unknown command 'calico'"],
    ['migrate whereabouts --aply', "unknown option '--aply'"],
    ['migrate whereabouts -o toml', 'Allowed choices are table, wide, json, yaml'],
    ['reserve blue 10.0.0.5 -n lab', 'this command has no option -n'],
    ['-A migrate whereabouts -o json', 'this command has no option -A'],
    ['uninstall -o json', 'this command has no option -o'],
    ['migrate whereabouts --skip-conflicts', '--skip-conflicts needs --apply'],
    ['uninstall --ignore-running-pods', '--ignore-running-pods needs --everything'],
    ['uninstall --yes', '--yes needs --everything'],
    ['reserve blue', "missing required argument 'address'"],
    ['unreserve blue 10.0.0.5 --mac x', "unknown option '--mac'"],
    ['reserve blue 10.0.0.300', '"10.0.0.300" is not an IP address'],
    ['reserve blue ::ffff:10.0.0.5', '"::ffff:10.0.0.5" is an IPv4 address in the form of IPv6: write 10.0.0.5'],
    ['who ::ffff:a00:5', '"::ffff:10.0.0.5" is an IPv4 address in the form of IPv6: write 10.0.0.5'],
    ['reserve blue 10.0.0.5 --mac 02:00', '"02:00" is not a MAC address'],
    ['unreserve blue 10.0.0.0/24', '"10.0.0.0/24"'],
    ['ips --namespace=', '-n: "" is not a name'],
    ['ips -n Nope_', '-n: "Nope_" is not a name of a namespace: write lower-case letters, digits and "-"'],
    ['bundle -n lab.x', '-n: "lab.x" is not a name of a namespace'],
    ['trace vm Nope_', 'the VM: "Nope_" is not a name: write lower-case letters'],
    [
      'trace vm lab/vm1',
      'the VM: "lab/vm1" is not a name: write lower-case letters, digits, "-" and ".", begin and end with a letter or digit, and write the namespace with -n',
    ],
    ['pool lab/blue', 'the pool: "lab/blue" is not a name: run kubectl holdfast pools to list all pools'],
    ['reserve .. 10.0.0.5', 'the pool: ".." is not a name'],
    ['release 10.0.0.5 --pool lab/blue', '--pool: "lab/blue" is not a name'],
    [
      'release Claim_',
      '"Claim_" is neither an address nor a claim: write an address like 10.0.0.5, or a claim as NAMESPACE/NAME',
    ],
    ['release Lab/claim', '"Lab/claim" is neither an address nor a claim'],
    ['connectivity --network a/b/c', '--network: "a/b/c" is not a name of a NAD: write it like blue or lab/blue'],
    ['connectivity --nodes n1 --nodes N_2', '--nodes: "N_2" is not a name'],
    ['migrate whereabouts --namespace=', '-n: "" is not a name'],
    ['migrate whereabouts --network=', '--network: "" is not a name'],
  ] as const) {
    it(`rejects ${given}`, () => {
      expect(() => readCliCommandLine(given.split(' '), { writeOut: () => undefined })).to.throw(UsageError, words);
    });
  }

  it('parses every command in the documents', async () => {
    const pages = await Promise.all(FOLDERS.map((folder) => findFiles('.md', join(ROOT, 'docs', folder))));
    const texts = await Promise.all(pages.flat().map((path) => readFile(join(ROOT, path), 'utf8')));
    const commands = texts
      .flatMap((text) => codeOf(text).flatMap(({ text: code }) => code.split('\n')))
      .flatMap((line) => /^\s*(?:\$ )?kubectl holdfast (.*)$/.exec(line)?.[1] ?? [])
      .map((command) => command.replace(/<address>|ADDRESS/, '10.0.0.5').replace(/ >.*$/, ''))
      // NAMESPACE, NAME and <name> stand for names
      .map((command) => command.replaceAll(/\b[A-Z]{2,}\b|<[a-z]+>/g, 'x'))
      // a page also mentions a command by its name alone
      .filter((command) => command.includes(' '));
    expect(commands).to.have.length.greaterThan(25);
    for (const command of commands) readCliCommandLine(command.split(' '), { writeOut: () => undefined });
  });

  for (const given of [
    'migrate whereabouts --help',
    'migrate whereabouts -h',
    'migrate help whereabouts',
    'migrate whereabouts --bla -h',
  ]) {
    it(`prints help for ${given}`, () => {
      let printed = '';
      const output = { writeOut: (text: string) => (printed += text) };
      expect(readCliCommandLine(given.split(' '), output)).to.equal(undefined);
      expect(printed).to.match(/^Usage: kubectl holdfast migrate whereabouts /);
      expect(printed).to.include('without --apply, print the');
    });
  }

  it('prints the help if no argument is given, with the exit codes', () => {
    let printed = '';
    expect(readCliCommandLine([], { writeOut: (text) => (printed += text) })).to.equal(undefined);
    expect(printed).to.match(/^Usage: kubectl holdfast /);
    expect(printed).to.include('Exit codes:').and.to.include('reserve [options] <pool> <address>');
  });

  for (const [given, helpCommand] of [
    ['frob blue', 'kubectl holdfast --help'],
    ['migrate', 'kubectl holdfast migrate --help'],
    ['migrate whereabouts extra', 'kubectl holdfast migrate whereabouts --help'],
    ['ips -o toml', 'kubectl holdfast --help'],
    ['-n lab uninstall', 'kubectl holdfast uninstall --help'],
  ] as const) {
    it(`names the help command for ${given}`, () => {
      let error: unknown;
      try {
        readCliCommandLine(given.split(' '));
      } catch (thrown) {
        error = thrown;
      }
      expect(error).to.be.instanceOf(UsageError).and.include({ helpCommand });
    });
  }

  it('has JSON that the reference describes, of each command with -o', async () => {
    const page = await readFile(join(ROOT, 'docs/reference/kubectl-holdfast.md'), 'utf8');
    const [, section = ''] = /## JSON and YAML\n([^]*?)\n## /.exec(page) ?? [];
    const described = [...section.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
      cell.match(/[a-z][a-z ]+/g),
    );
    const withOutput = COMMANDS.filter(({ common }) => common?.output === true);
    expect(described).to.include.members(withOutput.map(({ usage }) => usage.replace(/ [<[].*/, '')));
  });
});
