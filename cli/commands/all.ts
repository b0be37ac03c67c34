import { randomBytes } from 'node:crypto';
import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { type Command, defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { builtPage } from '../ui/html.js';
import { IPS, POOL, POOLS, RELEASE, RESERVE, UNRESERVE } from './addresses.js';
import { CONNECTIVITY, PREFLIGHT } from './before-and-after.js';
import { BUNDLE, DOCTOR, SHOW_VERSION, STATUS, TRACE_VM } from './diagnosis.js';
import { MIGRATE_WHEREABOUTS, UNINSTALL } from './installation.js';
import { WHO } from './who.js';

const COMPLETION = defineCommand({
  usage: 'completion <shell>',
  description:
    'print the program kubectl_complete-holdfast (kubectl), or a script that completes kubectl-holdfast (bash, zsh, fish, powershell)',
  read: ([shell = '']) => {
    const script = Object.hasOwn(COMPLETION_SCRIPTS, shell) ? COMPLETION_SCRIPTS[shell] : undefined;
    if (script !== undefined) return script;
    throw new UsageError(`"${shell}" is not supported: write one of ${Object.keys(COMPLETION_SCRIPTS).join(', ')}`);
  },
  run: (script, { terminal }) => {
    for (const line of script.trimEnd().split('\n')) terminal.print(line);
    return Promise.resolve(ExitCode.done);
  },
});

/** For `kubectl holdfast`: kubectl starts this program, which has to be in PATH as `kubectl_complete-holdfast`. */
const KUBECTL = `#!/bin/sh
exec kubectl-holdfast __complete "$@"
`;

const BASH = `_kubectl_holdfast() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == :* ]] || COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(kubectl-holdfast __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_holdfast kubectl-holdfast
`;

const ZSH = `#compdef kubectl-holdfast
_kubectl_holdfast() {
  local -a found
  found=("\${(@f)$(kubectl-holdfast __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found:#:*}")
  compadd -- "\${(@)found%%$'\\t'*}"
}
compdef _kubectl_holdfast kubectl-holdfast
`;

const FISH = `complete -c kubectl-holdfast -f -a '(kubectl-holdfast __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null | string match -v -r "^:")'
`;

const POWERSHELL = `Register-ArgumentCompleter -Native -CommandName kubectl-holdfast -ScriptBlock {
  param($word, $ast, $cursor)
  $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
  if ($word -eq '') { $words += '""' }
  kubectl-holdfast __complete @words 2>$null | Where-Object { $_ -notlike ':*' } | ForEach-Object {
    $value = ($_ -split "\`t")[0]
    [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $_)
  }
}
`;

/** What `kubectl holdfast completion` prints. */
export const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = {
  kubectl: KUBECTL,
  bash: BASH,
  zsh: ZSH,
  fish: FISH,
  powershell: POWERSHELL,
};

interface GivenOptions {
  readonly port?: string;
  readonly browser: boolean;
}

/** Serves the web page. Its code is loaded only for this command. */
const UI = defineCommand({
  usage: 'ui',
  description: 'show pools, addresses and VMs in the browser',
  options: [
    { flags: '--port <number>', description: 'port on 127.0.0.1; default: a free one' },
    { flags: '--no-browser', description: 'only print the address of the page' },
  ],
  common: { namespace: 'namespace to show if you may not read all' },
  read: (_args, { port = '0', browser }: GivenOptions, { namespace }) => {
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
      throw new UsageError(`--port: "${port}" is not a port: write a number from 1 to 65535`);
    }
    return { port: Number(port), opensBrowser: browser, namespace };
  },
  run: ({ namespace, ...options }, { terminal, connect }) =>
    connect(async ({ client, home, clusterFlags }) => {
      const { serveUi } = await import('../ui/serve-ui.js');
      const page = builtPage();
      const deps = { client, clusterFlags, clock: systemClock, random: Math.random, randomBytes, page };
      const input = process.stdin.isTTY ? process.stdin : undefined;
      await serveUi(deps, { ...options, namespace: namespace ?? home }, { print: terminal.print, input });
      return ExitCode.done;
    }),
});

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  PREFLIGHT,
  STATUS,
  DOCTOR,
  CONNECTIVITY,
  IPS,
  WHO,
  TRACE_VM,
  POOLS,
  POOL,
  UI,
  RESERVE,
  UNRESERVE,
  RELEASE,
  MIGRATE_WHEREABOUTS,
  UNINSTALL,
  BUNDLE,
  COMPLETION,
  SHOW_VERSION,
];

/** First words that several commands share. */
export const GROUPS: Readonly<Record<string, string>> = {
  migrate: 'migrate from another IPAM',
  trace: 'find out why something has no address',
};
