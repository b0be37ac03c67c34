import type { Client } from '../../kube/client.js';
import { CommandError } from '../command-error.js';
import { observeInstallation } from './observe.js';
import { type UninstallOptions, type UninstallPlan, planUninstall } from './plan.js';
import { formatUninstallPlan, formatRemainder } from './print.js';
import { removeData } from './remove-data.js';
import { type RemovalDeps, removeStage, withRetriedReads } from './remove.js';
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
 * Removes an installation, and with `everything` all of its objects too. If it is killed, a second run continues.
 * @returns false if nothing was removed because of the state of the cluster, or because the user did not confirm
 * @throws {CommandError} if something cannot be removed
 */
export async function uninstall(options: UninstallOptions, deps: UninstallDeps): Promise<boolean> {
  const observed = await observeInstallation(deps.client, options.everything);
  const plan = planUninstall(observed, options);
  if (plan.isEmpty) {
    deps.print(`There is nothing to remove on ${deps.server}.`);
    return true;
  }
  for (const line of formatUninstallPlan(plan)) deps.print(line);
  for (const refusal of plan.refusals) deps.printStatus(`refused: ${refusal}`);
  if (plan.refusals.length > 0) return false;
  await requireRights(plan, deps.client);
  if (options.dryRun) {
    deps.print('Nothing has been removed because of --dry-run.');
    return true;
  }
  if (!(await isConfirmed(options, deps))) return false;
  await remove(plan, observed.namespaces, withRetriedReads(deps));
  for (const line of formatRemainder(plan, observed.pluginFolder)) deps.print(line);
  return true;
}

async function remove(
  { stages, data }: UninstallPlan,
  namespaces: ReadonlySet<string>,
  deps: RemovalDeps,
): Promise<void> {
  // Holdfast's processes would write the data again, and its policies protect claims
  for (const stage of stages) await removeStage(stage, namespaces, deps);
  if (data !== undefined) await removeData(deps);
}

async function isConfirmed({ yes, everything }: UninstallOptions, deps: UninstallDeps): Promise<boolean> {
  if (yes) return true;
  if (deps.ask === undefined) {
    throw new CommandError('nothing was removed: there is no terminal to confirm on, so add --yes');
  }
  const word = everything ? 'everything' : 'uninstall';
  const loss = everything ? ' This cannot be undone.' : '';
  const answer = await deps.ask(`Remove this from ${deps.server}?${loss} Type "${word}" to continue: `);
  if (answer.trim() === word) return true;
  deps.printStatus('nothing was removed: you did not confirm');
  return false;
}
