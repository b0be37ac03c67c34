import { readFile, writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import type { Client } from '../../../kube/client.js';
import { requestToken } from '../../control-plane/service-accounts.js';

interface Kubeconfig {
  'current-context': string;
  contexts: { name: string; context: { cluster: string; user: string; namespace?: string } }[];
  users: unknown[];
}

/** Writes a kubeconfig for an existing service account, with its namespace as the default. */
export async function writeUserKubeconfig(
  file: string,
  admin: { client: Client; kubeconfig: string },
  account: { namespace: string; name: string },
): Promise<void> {
  const token = await requestToken(admin.client, account);
  const config = parse(await readFile(admin.kubeconfig, 'utf8')) as Kubeconfig;
  const current = config.contexts.find(({ name }) => name === config['current-context']) ?? config.contexts[0]!;
  const context = { cluster: current.context.cluster, user: account.name, namespace: account.namespace };
  const users = [{ name: account.name, user: { token } }];
  const contexts = [{ name: current.name, context }];
  await writeFile(file, stringify({ ...config, 'current-context': current.name, contexts, users }), { mode: 0o600 });
}
