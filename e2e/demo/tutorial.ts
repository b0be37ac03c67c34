import { readFile } from 'node:fs/promises';
import type { Environment } from '../../bed/environment.js';
import { KUBEVIRT_NAMESPACE } from '../../bed/control-plane/kubevirt.js';
import type { Client } from '../../kube/client.js';
import { KUBEVIRTS } from '../../kube/resources.js';
import type { Narrator } from './narrator.js';
import { PAGE } from './page.js';
import { parsePage } from './page/document.js';
import { PageRunner } from './page/page-runner.js';
import { openTerminal } from './page/terminal.js';

/** The bridge that the page tells administrators to connect between their nodes. */
const BRIDGE = 'br-blue';

/** Runs the commands of the tutorial, and compares their output with the page. */
export async function followTutorial(environment: Environment, narrator: Narrator): Promise<void> {
  const { title, sections } = parsePage(await readFile(PAGE, 'utf8'));
  const terminal = await openTerminal(environment);
  narrator.part(title);
  narrator.say('These are the commands of docs/tutorials/bridge-in-five-minutes.md with their output.');
  if (!terminal.hasNetworks)
    narrator.say('Pod networks are simulated on this machine: no pings, and no addresses of ordinary pods.');
  for (const node of environment.realCluster?.nodes ?? []) await node.connect(BRIDGE);
  if (environment.realCluster) await leaveMigrationToUser(environment.realCluster.client);
  try {
    await new PageRunner(terminal, narrator).run(sections);
  } finally {
    await terminal.kubectl.close();
  }
}

/** As by default. Otherwise KubeVirt begins the migration that a second NIC needs within 30 s, maybe just before the page does. */
async function leaveMigrationToUser(client: Client): Promise<void> {
  const body = { spec: { workloadUpdateStrategy: { workloadUpdateMethods: [] } } };
  await client.patch(KUBEVIRTS, { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt' }, { type: 'merge', body });
}
