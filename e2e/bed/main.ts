import { parseArgs } from 'node:util';
import { startBed } from './bed.js';

const USAGE = `usage: npm run bed -- [--nodes N] [--work-dir FOLDER] [--keep-logs]

Brings up a KubeVirt cluster on loopback and keeps it up until Ctrl-C.
  --nodes N           simulated nodes (2)
  --work-dir FOLDER   where data, logs and kubeconfigs go (a new folder below the temporary folder)
  --keep-logs         leave the logs in place at the end
HOLDFAST_BED_NETWORK=simulated in the environment gives pods no real networks, as on machines that do not allow them.
`;

/** Keeps a bed up for people who want to look at it with kubectl. */
async function main(): Promise<void> {
  const started = Date.now();
  const say = (line: string) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  const options = readOptions();
  const farewell = untilAskedToEnd();
  const bed = await Promise.race([startBed({ ...options, progress: say }), farewell]);
  if (bed === undefined) process.exit(130); // its processes end with this one
  say('the bed is ready; Ctrl-C ends it');
  console.log(`\nlogs: ${bed.logDir}\nexport KUBECONFIG=${bed.kubeconfig}\n`);
  await farewell;
  say('ending the bed');
  await bed.stop();
}

/** Ctrl-C may come twice, from the terminal and from whoever started this process: the second must not kill it. */
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
  if (!Number.isInteger(nodes) || nodes < 1) throw new Error(`--nodes is "${values.nodes}": give a number from 1 on`);
  const workDir = values['work-dir'];
  return { nodes, keepLogs: values['keep-logs'], ...(workDir === undefined ? {} : { workDir }) };
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
