import { UsageError } from '../../process/read-arguments.js';
import { defineCommand } from '../command.js';
import { COMPLETION_SCRIPTS } from '../completion/scripts.js';
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
