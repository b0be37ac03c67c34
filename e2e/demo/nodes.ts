import type { Manifest } from '../../bed/control-plane/objects.js';
import { runIsolated } from '../../bed/real-nodes/isolated-program.js';
import { reasonAgainstRealNodes } from '../../bed/real-nodes/isolation.js';
import { onBed } from '../../bed/environment.js';
import { messageOf } from '../../kube/errors.js';
import type { Narrator } from './narrator.js';

/**
 * Runs the demo on real nodes, unless `NODES=simulated` asks for others. Says why if this machine does not allow them.
 * @returns its status; undefined if it did not run
 */
export async function runOnRealNodes(program: string, narrator: Narrator): Promise<number | undefined> {
  const { NODES = '' } = process.env;
  if (!['', 'real', 'simulated'].includes(NODES))
    throw new TypeError(`NODES=${NODES}: the demo has real and simulated nodes`);
  if (!onBed || NODES === 'simulated') return undefined;
  let reason = reasonAgainstRealNodes();
  if (reason === undefined) {
    try {
      return await runIsolated(program, [], (line) => narrator.progress(line));
    } catch (error) {
      reason = `real nodes lack programs: ${messageOf(error)}`;
    }
  }
  narrator.say(`The nodes are simulated: ${reason}.`);
  return undefined;
}

/** Agents and ipam must agree about the first: a released address cools down for twice that time. */
const QUICK = {
  'holdfast-agent': ['--max-staleness=2s'],
  'holdfast-ipam': ['--max-staleness=2s', '--pool-status-interval=1s'],
};

/** By default, a released address cools down for a minute at least, and counts are written as often. The demo shows both step by step. */
export function withQuickSettings(object: Manifest): Manifest {
  const { kind, metadata } = object;
  const more =
    kind === 'Deployment' || kind === 'DaemonSet' ? new Map(Object.entries(QUICK)).get(metadata.name) : undefined;
  if (more === undefined) return object;
  const copy = structuredClone(object) as Manifest & {
    spec: { template: { spec: { containers: { args: string[] }[] } } };
  };
  copy.spec.template.spec.containers[0]?.args.push(...more);
  return copy;
}
