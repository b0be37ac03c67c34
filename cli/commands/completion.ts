import { UsageError } from '../../process/read-arguments.js';
import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';

export const COMPLETION = defineCommand({
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
