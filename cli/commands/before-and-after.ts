import { randomBytes } from 'node:crypto';
import { describeValue } from '../../api/json.js';
import { isObjectKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { NODES } from '../../kube/resources.js';
import { UsageError } from '../../process/read-arguments.js';
import { addClusterFlags } from '../cluster-flags.js';
import { defineCommand, nonEmptyName, requireObjectName } from '../command.js';
import { findNetwork } from '../connectivity/network.js';
import { usableNodes } from '../connectivity/pairs.js';
import { testConnectivity } from '../connectivity/run.js';
import { exitCodeOf, formatChecks } from '../doctor/check-report.js';
import { CommandError } from '../exit-code.js';
import { DAEMON_SETS, findNamespacesOrDefault, isOwn, ofComponent } from '../installation.js';
import { printOutput } from '../output.js';
import { observeTarget } from '../preflight/observe.js';
import { preflight } from '../preflight/preflight.js';
import { readList, valueOf } from '../reader.js';

export const PREFLIGHT = defineCommand({
  usage: 'preflight',
  description:
    'say before an installation what stands in its way, and what it changes; it changes nothing. Exit code 3 if something fails',
  common: { output: true },
  read: (_args, _given, { output }) => output,
  run: (output, { terminal, connect }) =>
    connect(async ({ client, clusterFlags }) => {
      const reports = addClusterFlags(preflight(await observeTarget(client, terminal.showProgress)), clusterFlags);
      printOutput(output, formatChecks(reports, 'nothing stands in the way'), terminal.print);
      return exitCodeOf(reports);
    }),
});

interface GivenConnectivityOptions {
  readonly network?: string;
  readonly nodes?: readonly string[];
  readonly maxPairs?: string;
  readonly image?: string;
  readonly timeout?: string;
  readonly migrate?: true;
}

const MAX_PAIRS = 10;
const START_SECONDS = 60;

export const CONNECTIVITY = defineCommand({
  usage: 'connectivity',
  description:
    'test a network with short-lived pods on pairs of nodes: addresses, ARP and ND, ping, MTU and duplicates; exit code 3 if something does not work',
  options: [
    {
      flags: '--network <nad>',
      description:
        'NAD of the network, with its namespace if it is another one, like lab/blue; default: the only one that delegates to holdfast',
    },
    {
      flags: '--nodes <node>',
      description: 'node to test; may be given several times; default: all nodes that take pods',
      isList: true,
    },
    { flags: '--max-pairs <number>', description: `number of pairs of nodes to test; default: ${MAX_PAIRS}` },
    { flags: '--migrate', description: 'also start a VM without a disk and migrate it: it keeps its address' },
    {
      flags: '--image <image>',
      description: "image of the pods, which must be Holdfast's; default: that of the agents",
    },
    { flags: '--timeout <seconds>', description: `seconds that a pod may take to start; default: ${START_SECONDS}` },
  ],
  common: { namespace: 'namespace of the NAD and of the pods', output: true },
  read: (_args, given: GivenConnectivityOptions, { namespace, output }) => {
    const { nodes = [], migrate } = given;
    if (new Set(nodes).size === 1)
      throw new UsageError('--nodes: name at least two nodes, each with a flag of its own');
    const network = nonEmptyName(given.network, '--network');
    const nad = describeValue(network);
    if (network !== undefined && !isObjectKey(network))
      throw new UsageError(`--network: ${nad} is not a name of a NAD: write it like blue or lab/blue`);
    for (const node of nodes) requireObjectName(node, '--nodes');
    return {
      ...{ namespace, output, network, image: nonEmptyName(given.image, '--image'), nodes: [...new Set(nodes)] },
      maxPairs: positive(given.maxPairs, '--max-pairs', MAX_PAIRS),
      timeoutMs: 1000 * positive(given.timeout, '--timeout', START_SECONDS),
      withMigration: migrate === true,
    };
  },
  run: ({ namespace, output, ...request }, { terminal, connect }) =>
    connect(async ({ client, home, clusterFlags }) => {
      const network = await findNetwork(client, namespace ?? home, request.network);
      const image = request.image ?? (await imageOfAgents(client));
      const nodes = request.nodes.length > 0 ? request.nodes : usableNodes((await client.list(NODES)).items);
      const number = nodes.length === 0 ? 'no node takes' : 'only one node takes';
      if (nodes.length < 2) throw new CommandError(`${number} pods: a pair needs two`);
      const ended = new AbortController();
      const end = () => ended.abort();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
      const run = randomBytes(3).toString('hex');
      const deps = { client, clock: systemClock, run, signal: ended.signal, ...terminal };
      const tested = await testConnectivity({ ...request, network, image, nodes }, deps);
      const reports = addClusterFlags(tested, clusterFlags);
      printOutput(output, formatChecks(reports, 'all pairs are connected'), terminal.print);
      return exitCodeOf(reports);
    }),
});

function positive(text: string | undefined, flag: string, instead: number): number {
  if (text === undefined) return instead;
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  throw new UsageError(`${flag}: "${text}" is not a number from 1 to 99999`);
}

/** @throws {CommandError} if no agents are known */
async function imageOfAgents(client: Client): Promise<string> {
  const read = await readList(client, DAEMON_SETS, { labelSelector: ofComponent('agent') });
  const namespaces = await findNamespacesOrDefault(client);
  const own = valueOf(read, []).find((set) => isOwn(namespaces, set));
  const image = own?.spec?.template?.spec?.containers?.find(({ name }) => name === 'agent')?.image;
  if (image !== undefined) return image;
  const why = read.kind === 'found' ? 'no agents are installed' : read.kind === 'unserved' ? '' : read.why;
  throw new CommandError(`the image of the pods is not known: ${why}. Name Holdfast's image with --image`);
}
