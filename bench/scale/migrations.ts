import { setTimeout as pause } from 'node:timers/promises';
import { PODS, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import type { Figure } from '../report.js';
import { launcherNameOf, placeOf } from './cluster.js';
import { type Served, startPart } from './part-process.js';
import { PREPARED_MS, SERVED_SECONDS, SERVICES, untilEmpty } from './takeover.js';

const MIGRATIONS_AT_ONCE = 500;
/** All writes have ended when nothing has waited for so long. */
const WRITTEN_MS = 5_000;

/** Measures a leader while many VMs migrate at the same moment, as when a rack of nodes is drained. */
export async function measureMigrations(name: 'controller' | 'ipam', vms: number, served: Served): Promise<Figure[]> {
  const { tracker, server } = served;
  const { child, ready, metricsUrl } = await startPart(name, served);
  await ready();
  await pause(PREPARED_MS);
  await untilEmpty(metricsUrl);
  server.requests.clear();
  const first = name === 'controller' ? 0 : MIGRATIONS_AT_ONCE; // a VM migrates once
  const numbers = Array.from({ length: MIGRATIONS_AT_ONCE }, (_, n) => first + n).filter((n) => n < vms);
  const began = performance.now();
  for (const n of numbers) beginMigration(tracker, n);
  await SERVICES[name].serve(tracker);
  const servedSeconds = (performance.now() - began) / 1000;
  for (const n of numbers) endMigration(tracker, n);
  const emptySeconds = ((await untilEmpty(metricsUrl, WRITTEN_MS)) - began) / 1000;
  const { writes } = server;
  await child.stop();
  const title = `scale: ${name}, ${vms} VMs, ${numbers.length} migrations at once`;
  return [
    {
      name: `${title}: ${SERVICES[name].what} after`,
      value: servedSeconds,
      unit: 's',
      target: { atMost: SERVED_SECONDS },
    },
    { name: `${title}: the queue is empty after`, value: emptySeconds, unit: 's' },
    { name: `${title}: writes`, value: writes, unit: '' },
  ];
}

/** As virt-controller does: a launcher on the target, and the state of the migration. */
function beginMigration(tracker: ObjectTracker, n: number): void {
  const { namespace, name } = placeOf(n);
  const [sourcePod, targetPod] = [launcherNameOf(name), `${launcherNameOf(name)}-target`];
  const source = tracker.get(PODS, { namespace, name: sourcePod });
  const { uid: _uid, resourceVersion: _version, ...metadata } = source.metadata;
  tracker.create(PODS, {
    ...source,
    metadata: { ...metadata, name: targetPod },
    spec: { ...source.spec, nodeName: 'node-2' },
  });
  tracker.change(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, ({ status = {} }) => {
    const state = { sourcePod, targetPod, sourceNode: 'node-1', targetNode: 'node-2', migrationUid: `migration-${n}` };
    Object.assign(status, { migrationState: state });
  });
}

function endMigration(tracker: ObjectTracker, n: number): void {
  const { namespace, name } = placeOf(n);
  tracker.change(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, ({ status = {} }) => {
    Object.assign(status, { nodeName: 'node-2', migrationState: { ...status.migrationState, completed: true } });
  });
  tracker.remove(PODS, { namespace, name: launcherNameOf(name) });
}
