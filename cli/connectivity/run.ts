import { PROCESS_PODS, type ProcessPod } from '../installation.js';
import type { KubeObject } from '../../api/meta.js';
import { isTerminal } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { StatusError, isRejected } from '../../kube/errors.js';
import { EVENTS } from '../../kube/events.js';
import { VIRTUAL_MACHINES } from '../../kube/resources.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { type CheckReport, reportCheck } from '../doctor/check-report.js';
import { describeForbidden } from '../forbidden.js';
import { readEvent } from '../reader.js';
import type { Terminal } from '../terminal.js';
import { checkMigration } from './migration.js';
import type { TestedNetwork } from './network.js';
import { TestObjects } from './objects.js';
import { type NodePair, pairsOf } from './pairs.js';
import {
  DEADLINE_S,
  type PodRequest,
  attachmentOf,
  connectivityPod,
  isRunning,
  resultOf,
  waitingReasonOf,
} from './pods.js';
import { failedPair, nameOfPair, reportPair } from './report.js';

/** Pairs at a time: each needs two addresses of the network. */
const PARALLEL_PAIRS = 4;
/** How long the program asks and pings, and the pod takes to end. */
const CHECK_MS = 60_000;

export interface ConnectivityOptions {
  readonly network: TestedNetwork;
  /** At least two. */
  readonly nodes: readonly string[];
  readonly maxPairs: number;
  readonly image: string;
  /** How long a pod may take to start. */
  readonly timeoutMs: number;
  readonly withMigration: boolean;
}

interface ConnectivityDeps extends Pick<Terminal, 'printStatus' | 'showProgress'> {
  readonly client: Client;
  readonly clock: Clock;
  /** Of this run, for names. */
  readonly run: string;
  /** Ends it: the objects are removed anyway. */
  readonly signal: AbortSignal;
}

/** Tests the network between nodes with pods, and removes them. */
export async function testConnectivity(options: ConnectivityOptions, deps: ConnectivityDeps): Promise<CheckReport[]> {
  const { nad } = options.network;
  const objects = new TestObjects(deps.client, deps.clock, { namespace: nad.namespace, signal: deps.signal });
  const { pairs, total } = pairsOf(options.nodes, options.maxPairs);
  const network = `NetworkAttachmentDefinition ${nad.namespace}/${nad.name}`;
  const reports = [reportCheck('network', `${network}: ${pairs.length} of ${total} pairs of nodes`)];
  const failures: unknown[] = [];
  let done = 0;
  const check = async ([index, pair]: [number, NodePair]) => {
    if (failures.length > 0) return;
    deps.showProgress(`${++done} of ${pairs.length}: ${nameOfPair(pair)}…`);
    const checked = checkPair(pair, `holdfast-connectivity-${deps.run}-${index}`, { options, deps, objects });
    await checked.then(
      (report) => reports.push(report),
      (error: unknown) => failures.push(error),
    );
  };
  try {
    await removeLeftovers(options, deps, objects);
    await forEachParallel([...pairs.entries()], PARALLEL_PAIRS, check, deps.signal);
    if (failures.length === 0 && options.withMigration) {
      deps.showProgress('migrating a VM…');
      reports.push(await checkMigration(options, { ...deps, objects }));
    }
  } catch (error) {
    failures.push(error);
  } finally {
    deps.showProgress('removing the pods…');
    for (const left of await objects.remove()) deps.printStatus(left);
  }
  if (failures.length > 0) throw failures[0];
  return reports;
}

/** Removes old objects only: younger ones may be of a run that goes on, and has not read the results of its pods. */
async function removeLeftovers(
  { timeoutMs }: ConnectivityOptions,
  { clock, printStatus }: ConnectivityDeps,
  objects: TestObjects,
): Promise<void> {
  const before = clock.wall() - timeoutMs - DEADLINE_S * 1000;
  const isOld = ({ metadata }: KubeObject) => Date.parse(metadata.creationTimestamp ?? '') < before;
  const left = await Promise.all([
    objects.removeLeftovers(PROCESS_PODS, (pod) => isOld(pod) && isTerminal(pod)),
    objects.removeLeftovers(VIRTUAL_MACHINES, isOld),
  ]);
  for (const each of left.flat()) printStatus(each);
}

interface PairContext {
  readonly options: ConnectivityOptions;
  readonly deps: ConnectivityDeps;
  readonly objects: TestObjects;
}

async function checkPair(pair: NodePair, prefix: string, context: PairContext): Promise<CheckReport> {
  const { options, deps, objects } = context;
  const { network, image, timeoutMs } = options;
  const { namespace } = objects;
  const names = [`${prefix}-to`, `${prefix}-from`];
  const base = { namespace, run: deps.run, nad: network.nad, image };
  try {
    const target = await startPod({ ...base, name: `${prefix}-to`, node: pair.to, peers: [] }, isRunning, context);
    if (typeof target === 'string') return failedPair(pair, 'address', `the pod on ${pair.to} does not run: ${target}`);
    const to = attachmentOf(target);
    if (to === undefined || to.addresses.length === 0)
      return failedPair(pair, 'address', `the pod on ${pair.to} got no address on the network`);
    const asking = { ...base, name: `${prefix}-from`, node: pair.from, peers: to.addresses };
    const asker = await startPod(asking, isTerminal, context, timeoutMs + CHECK_MS);
    if (typeof asker === 'string') return failedPair(pair, 'address', `the pod on ${pair.from} does not run: ${asker}`);
    const [from, result] = [attachmentOf(asker), resultOf(asker)];
    if (from !== undefined && result !== undefined) return reportPair(pair, { from, to, result });
    const problem = `the pod on ${pair.from} ended without a result: ${image} must be Holdfast's image`;
    return failedPair(pair, 'connectivity', problem);
  } finally {
    // the addresses are for the next pair
    await objects.remove(names);
  }
}

/** Creates a pod and waits. @returns why it did not start */
async function startPod(
  request: PodRequest,
  isReady: (pod: ProcessPod) => boolean,
  { objects, deps, options: { timeoutMs } }: PairContext,
  waitMs = timeoutMs,
): Promise<ProcessPod | string> {
  const { name } = request;
  try {
    await objects.create(PROCESS_PODS, connectivityPod(request));
  } catch (error) {
    // a policy or a quota, and not a right of the user
    if (isRejected(error) && describeForbidden(error) === undefined)
      return `${error.message}. Name a NAD in a namespace that allows the capability NET_RAW and root`;
    throw error;
  }
  const read = () => objects.get(PROCESS_PODS, name);
  const { value, isRight } = await objects.wait(read, (pod) => isReady(pod) || isTerminal(pod), waitMs);
  if (isRight && isReady(value)) return value;
  return (
    (await lastWarning(deps.client, request)) ?? waitingReasonOf(value) ?? `it is ${value.status?.phase ?? 'unknown'}`
  );
}

/** Of the kubelet: why Multus or a plugin refused the pod. */
async function lastWarning(client: Client, { namespace, name }: PodRequest): Promise<string | undefined> {
  const fieldSelector = `involvedObject.name=${name},type=Warning`;
  try {
    const { items } = await client.list(EVENTS, { namespace, fieldSelector });
    const last = items.at(-1);
    return last && readEvent(last).message;
  } catch (error) {
    if (error instanceof StatusError) return undefined;
    throw error;
  }
}
