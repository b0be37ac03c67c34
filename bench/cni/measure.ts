import { type Percentiles, percentilesOf, runLoad } from '../load.js';
import type { Figure } from '../report.js';
import { usageOf } from '../usage.js';
import type { PluginRun } from './plugin-caller.js';
import type { CniCluster } from './cluster.js';
import { codeOf } from './interfaces.js';
import { sum } from './sum.js';

/** The duration and results of many calls. */
export interface CallResults {
  readonly seconds: number;
  readonly ran: readonly PluginRun[];
}

/** The results and costs of many calls. */
export interface WorkResults extends CallResults {
  /** Requests of all agents to the API server. */
  readonly reads: number;
  readonly writes: number;
  readonly agentCpuMs: number;
  /** CPU time of API server, etcd, ipam, agents, and plugin processes. */
  readonly cpuMs: number;
}

export interface Load {
  readonly count: number;
  readonly concurrency: number;
}

/** Runs calls in parallel. @param call gets its number, from 0 */
export async function runCalls(call: (n: number) => Promise<PluginRun>, load: Load): Promise<CallResults> {
  const ran: PluginRun[] = [];
  const { seconds } = await runLoad(async (n) => {
    ran[n] = await call(n);
  }, load);
  return { seconds, ran };
}

/** Runs calls as {@link runCalls} and measures their costs. Nothing else may run meanwhile. */
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

/** Joins the results of repeated runs. */
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

/** Returns the latencies as seen by the runtime: from the start of the process to its end. */
export function latenciesOf({ ran }: CallResults): Percentiles {
  return percentilesOf(ran.map(({ ms }) => ms));
}

/** Returns the figures of the latencies. @param name gets the name of the percentile */
export function latencyFigures(name: (what: string) => string, calls: CallResults): Figure[] {
  const { p50Ms, p95Ms, p99Ms } = latenciesOf(calls);
  return [
    { name: name('p50'), value: p50Ms, unit: 'ms' },
    { name: name('p95'), value: p95Ms, unit: 'ms' },
    { name: name('p99'), value: p99Ms, unit: 'ms' },
  ];
}

/** Prints the first failure. @returns the number of failures */
export function failuresOf({ ran }: CallResults): number {
  const failed = ran.filter(({ exit }) => exit !== 0);
  const [first] = failed;
  if (first !== undefined) progress(`failed with code ${String(codeOf(first))}: ${first.output}`);
  return failed.length;
}

/** Prints progress, because a measurement takes some time. */
export function progress(line: string): void {
  process.stderr.write(`  ${line}\n`);
}

/** Returns the RSS of the largest agent in MiB. */
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
