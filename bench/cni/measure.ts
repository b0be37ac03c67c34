import { type Percentiles, percentilesOf, runLoad } from '../load.js';
import type { Figure } from '../report.js';
import { usageOf } from '../usage.js';
import type { PluginRun } from './plugin-caller.js';
import type { CniCluster } from './cluster.js';
import { codeOf } from './interfaces.js';
import { sum } from './sum.js';

/** What many calls took, and how they ended. */
export interface CallResults {
  readonly seconds: number;
  readonly ran: readonly PluginRun[];
}

/** The same, and what it cost. */
export interface WorkResults extends CallResults {
  /** Of all agents to the API server. */
  readonly reads: number;
  readonly writes: number;
  readonly agentCpuMs: number;
  /** Of all that runs: API server, etcd, ipam, agents, and the plugin's processes. */
  readonly cpuMs: number;
}

export interface Load {
  readonly count: number;
  readonly concurrency: number;
}

/** @param call gets its number, from 0 */
export async function runCalls(call: (n: number) => Promise<PluginRun>, load: Load): Promise<CallResults> {
  const ran: PluginRun[] = [];
  const { seconds } = await runLoad(async (n) => {
    ran[n] = await call(n);
  }, load);
  return { seconds, ran };
}

/** As {@link runCalls}; nothing else may happen meanwhile. */
export async function runWork(
  cluster: CniCluster,
  call: (n: number) => Promise<PluginRun>,
  load: Load,
): Promise<WorkResults> {
  const before = await currentCosts(cluster);
  const calls = await runCalls(call, load);
  const after = await currentCosts(cluster);
  const pluginCpuMs = sum(calls.ran, ({ cpuMs }) => cpuMs);
  return {
    ...calls,
    reads: after.reads - before.reads,
    writes: after.writes - before.writes,
    agentCpuMs: after.agentCpuMs - before.agentCpuMs,
    cpuMs: after.cpuMs - before.cpuMs + pluginCpuMs,
  };
}

/** The same work done again counts as one. */
export function joinedCalls(calls: readonly CallResults[]): CallResults {
  return { seconds: sum(calls, ({ seconds }) => seconds), ran: calls.flatMap(({ ran }) => ran) };
}

export function joinedWork(works: readonly WorkResults[]): WorkResults {
  return {
    ...joinedCalls(works),
    reads: sum(works, ({ reads }) => reads),
    writes: sum(works, ({ writes }) => writes),
    agentCpuMs: sum(works, ({ agentCpuMs }) => agentCpuMs),
    cpuMs: sum(works, ({ cpuMs }) => cpuMs),
  };
}

export function rateOf({ ran, seconds }: CallResults): number {
  return ran.length / seconds;
}

/** As the runtime waits: from before the process starts until it has ended. */
export function latenciesOf({ ran }: CallResults): Percentiles {
  return percentilesOf(ran.map(({ ms }) => ms));
}

/** @param name gets what is measured */
export function latencyFigures(name: (what: string) => string, calls: CallResults): Figure[] {
  const { p50Ms, p95Ms, p99Ms } = latenciesOf(calls);
  return [
    { name: name('p50'), value: p50Ms, unit: 'ms' },
    { name: name('p95'), value: p95Ms, unit: 'ms' },
    { name: name('p99'), value: p99Ms, unit: 'ms' },
  ];
}

/** Says what the first one failed of. @returns how many failed */
export function failuresOf({ ran }: CallResults): number {
  const failed = ran.filter(({ exit }) => exit !== 0);
  const [first] = failed;
  if (first !== undefined) progress(`failed with code ${String(codeOf(first))}: ${first.output}`);
  return failed.length;
}

/** For whoever waits: a cell takes a while. */
export function progress(line: string): void {
  process.stderr.write(`  ${line}\n`);
}

/** MiB of the largest agent. */
export async function agentRss({ nodes }: CniCluster): Promise<number> {
  const usages = await Promise.all(nodes.map(({ agent }) => agent.usage()));
  return Math.max(...usages.map(({ rssMiB }) => rssMiB));
}

async function currentCosts({ nodes, plane }: CniCluster): Promise<Omit<WorkResults, keyof CallResults>> {
  const agents = await Promise.all(nodes.map(({ agent }) => agent.usage()));
  const all = await Promise.all(plane.processes.list().map(({ pid }) => usageOf(pid)));
  const requests = await Promise.all(nodes.map(({ agent }) => agent.requests()));
  return {
    reads: sum(requests, ({ reads }) => reads),
    writes: sum(requests, ({ writes }) => writes),
    agentCpuMs: sum(agents, ({ cpuSeconds }) => cpuSeconds * 1000),
    cpuMs: sum(all, ({ cpuSeconds }) => cpuSeconds * 1000),
  };
}
