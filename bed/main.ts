import { parseArgs } from 'node:util';
import { startBed } from './bed.js';
import { openGate } from './real-nodes/forwarder.js';
import { gateOfProgram, runIsolated } from './real-nodes/isolated-program.js';
import { reasonAgainstRealNodes } from './real-nodes/isolation.js';
import { startRealCluster } from './real-nodes/real-cluster.js';

const USAGE = `usage: npm run bed -- [--nodes N] [--work-dir FOLDER] [--keep-logs]

Starts a KubeVirt cluster on loopback and runs it until Ctrl-C.
  --nodes N           number of nodes (default 2)
  --work-dir FOLDER   folder for data, logs and kubeconfigs (default: a new temporary folder)
  --keep-logs         do not delete the logs at the end

Environment:
  NODES=real                      nodes with kubelet and containerd, and Holdfast in their pods; needs Linux and root
  HOLDFAST_BED_NETWORK=simulated  no real pod networks, as on machines that do not allow them
  BED_KUBERNETES=1.36             minor version of Kubernetes (default: the newest that the bed has)
  BED_KUBEVIRT=1.7                minor version of KubeVirt (the same)
`;

/** Runs a bed for use with kubectl. */
async function main(): Promise<void> {
  const started = Date.now();
  const say = (line: string) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  const options = readOptions();
  const gate = gateOfProgram();
  if (process.env.NODES === 'real' && gate === undefined) {
    const reason = reasonAgainstRealNodes();
    if (reason !== undefined) throw new Error(reason);
    process.exitCode = await runIsolated(import.meta.filename, process.argv.slice(2), say);
    return;
  }
  const farewell = untilAskedToEnd();
  const start = gate ? startRealCluster : startBed;
  const bed = await Promise.race([start({ ...options, progress: say }), farewell]);
  if (bed === undefined) process.exit(130); // its processes end with this one
  const kubeconfig = gate ? await openGate(bed, gate) : bed.kubeconfig;
  say('the bed is ready; press Ctrl-C to stop it');
  console.log(`\nlogs: ${bed.logDir}\nexport KUBECONFIG=${kubeconfig}\n`);
  await farewell;
  say('stopping the bed');
  await bed.stop();
}

/** Ctrl-C may arrive twice, from the terminal and from the parent process. The second one must not kill this process. */
function untilAskedToEnd(): Promise<undefined> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve(undefined));
  });
}

function readOptions(): { nodes: number; workDir?: string; keepLogs: boolean } {
  const { values } = parseArgs({
    options: {
      nodes: { type: 'string', default: '2' },
      'work-dir': { type: 'string' },
      'keep-logs': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const nodes = Number(values.nodes);
  if (!Number.isInteger(nodes) || nodes < 1)
    throw new Error(`--nodes must be an integer of at least 1, not "${values.nodes}"`);
  const workDir = values['work-dir'];
  return { nodes, keepLogs: values['keep-logs'], ...(workDir === undefined ? {} : { workDir }) };
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
