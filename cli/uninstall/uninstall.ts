import type { Client } from '../../kube/client.js';
import { CommandError } from '../command-error.js';
import { observeInstallation } from './observe.js';
import { type UninstallOptions, isNothingLeft, findRefusals } from './plan.js';
import { formatInstallation, formatRemovalSteps, formatRemainder, formatRemoval } from './print.js';
import { removeData } from './remove-data.js';
import { type RemovalDeps, withRetriedReads } from './remove.js';
import { requireRights } from './rights.js';

export interface UninstallDeps extends RemovalDeps {
  readonly client: Pick<Client, 'listAs' | 'create' | 'patch' | 'delete'>;
  /** URL of the API server. */
  readonly server: string;
  /** Prints a line of the result. */
  readonly print: (line: string) => void;
  /** Asks the user; undefined without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
}

/**
 * Checks whether Holdfast can be removed, and says how. With `everything`, removes what is left afterwards; if it is killed, a second run continues.
 * @returns false if the state of the cluster prevents it, or if the user did not confirm
 * @throws {CommandError} if something cannot be removed
 */
export async function uninstall(options: UninstallOptions, deps: UninstallDeps): Promise<boolean> {
  const { everything, dryRun } = options;
  const observed = await observeInstallation(deps.client);
  if (isNothingLeft(observed)) {
    deps.print(`There is nothing to remove on ${deps.server}.`);
    return true;
  }
  for (const line of everything ? formatRemoval(observed) : formatInstallation(observed)) deps.print(line);
  const refusals = findRefusals(observed, options);
  for (const refusal of refusals) deps.printStatus(`refused: ${refusal}`);
  if (refusals.length > 0) return false;
  await requireRights(observed, everything, deps.client);
  if (!everything) {
    for (const line of formatRemovalSteps(observed)) deps.print(line);
    return true;
  }
  if (dryRun) {
    deps.print('Nothing has been removed because of --dry-run.');
    return true;
  }
  if (!(await isConfirmed(options, deps))) return false;
  await removeData(withRetriedReads(deps));
  for (const line of formatRemainder(observed)) deps.print(line);
  return true;
}

async function isConfirmed({ yes }: UninstallOptions, deps: UninstallDeps): Promise<boolean> {
  if (yes) return true;
  if (deps.ask === undefined) {
    throw new CommandError('nothing was removed: there is no terminal to confirm on, so add --yes');
  }
  const answer = await deps.ask(
    `Remove this from ${deps.server}? This cannot be undone. Type "everything" to continue: `,
  );
  if (answer.trim() === 'everything') return true;
  deps.printStatus('nothing was removed: you did not confirm');
  return false;
}
